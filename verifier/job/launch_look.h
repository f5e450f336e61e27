/* What a job will find, looked at by one process before anything is started or submitted: the lines of --prompts, the memory that each rank will
 * need, the devices that SLURM is asked for. Owns nothing; to be called behind launch_check, before MPI starts. It reserves nothing: what is there
 * may be gone when the job begins. */
#ifndef TANDEM_VERIFIER_JOB_LAUNCH_LOOK_H
#define TANDEM_VERIFIER_JOB_LAUNCH_LOOK_H

#include "common/options/options.h"

/* Says how many lines of --prompts are wrong, and why the first ones are; a file without a good one is refused (65). With --verbose it says
 * what each rank will need. Refuses (64) verifiers for which SLURM is asked for too few devices, and ranks of the CPU for which it is asked
 * for too little memory, and (70) ranks of this host alone that need more memory than it has. The models have been looked at. */
enum status launch_look(const struct options *options, int drafters, int verifiers);

#endif
