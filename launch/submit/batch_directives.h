/* The beginning of a batch script: its #SBATCH lines, by which SLURM is asked for nodes, tasks, signals and another start, and the checks of what a
 * batch job cannot have. Owns nothing. Invariant: a word that SLURM is told stands on its own line, quoted as sbatch reads it, and no line break gets
 * into the script. For batch_script.c alone; local. */
#ifndef TANDEM_LAUNCH_SUBMIT_BATCH_DIRECTIVES_H
#define TANDEM_LAUNCH_SUBMIT_BATCH_DIRECTIVES_H

#include "launch/submit/launch_ranks.h"
#include <stdio.h>

/* No #SBATCH line can hold a line break: what follows it would be run as a line of the script. Nor can it quote what a terminal would obey. */
int batch_directives_can_hold(const char *text);
/* STATUS_USAGE, with a line, for what a batch job cannot have. */
enum status batch_directives_check(const struct options *options);
/* Writes them, the script's first line included. folder: where the job was submitted */
void batch_directives_write(const struct launch_ranks *ranks, const char *folder, FILE *to);

#endif
