/* The script of `tandem sbatch`: a job over a file of prompts that SLURM may stop at any time, and that goes on where it was. Every line that is not
 * plain says why it is there, for its reader is who runs the cluster's job. Owns nothing. Invariant: words of the user are quoted, so nothing in them
 * is run. It writes the script and never submits it. */
#ifndef TANDEM_LAUNCH_SUBMIT_BATCH_SCRIPT_H
#define TANDEM_LAUNCH_SUBMIT_BATCH_SCRIPT_H

#include "common/options/options.h"
#include <stdio.h>

/* Checks what can be checked before the job, then writes the script. argv: the program's own. STATUS_USAGE, with a line, for what a batch
 * job cannot have. */
enum status batch_script_print(const struct options *options, int argc, char **argv, FILE *to);

#endif
