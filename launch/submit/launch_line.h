/* The line, of mpirun or srun, that would run a job, written once the checks before a job (verifier/job/launch_check.h, launch_look.h) have passed.
 * Owns nothing. It starts no rank: the launcher, a shell script, runs the line. */
#ifndef TANDEM_LAUNCH_SUBMIT_LAUNCH_LINE_H
#define TANDEM_LAUNCH_SUBMIT_LAUNCH_LINE_H

#include "launch/submit/launch_ranks.h"
#include <stdio.h>

/* Checks, and chooses what was left open. argv: the program's own, borrowed. */
enum status launch_line_open(const struct options *options, int argc, char **argv, struct launch_ranks *ranks);
/* Checks, then writes the line, quoted for a shell. argv: the program's own, passed on. */
enum status launch_line_print(const struct options *options, int argc, char **argv, FILE *to);
/* What a launcher must know of the options, as one line that sets variables of a shell: dry_run and from_stdin (whether the prompts are stdin's),
 * 0 or 1, ranks_here (those that mpirun starts on this host; 0 where hosts are named), recorder (a folder, or nothing) and line, which is checked
 * and made only where it is to be run. A launcher that looked itself would take a prompt's words for options. */
enum status launch_line_facts(const struct options *options, int argc, char **argv, FILE *to);

#endif
