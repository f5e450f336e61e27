/* The command that starts the ranks of a job, by mpirun or by srun: for a shell to run as it stands, or as a part of a batch script, which has the
 * programs' folder in $bin and their options in the array `options`. Owns nothing. Invariant: every word is quoted for the shell; options that ranks
 * are not to have (column for_ranks of the table) are left out. */
#ifndef TANDEM_LAUNCH_SUBMIT_LAUNCH_RANKS_H
#define TANDEM_LAUNCH_SUBMIT_LAUNCH_RANKS_H

#include "common/options/options.h"
#include <stdio.h>

struct launch_ranks {
    const struct options *options;
    int drafters, verifiers;
    int argc; /* the programs' options; NULL: a batch script has them */
    char **argv;
};

/* What shapes the command, not what the ranks do: STATUS_USAGE, with a line, where it is wrong or does not go together. */
enum status launch_ranks_check(const struct options *options, int drafters);
/* Without a newline at the end. */
void launch_ranks_write(const struct launch_ranks *ranks, FILE *to);

struct option_entry;
/* An argument of the command line that goes on to the ranks. */
struct launch_option {
    const char *text;  /* "--name" or "--name=value" */
    const char *value; /* the next argument where that is the value, else NULL */
    const struct option_entry *entry;
};
/* 1 and the next one from argv[*at] on, or 0 at the end. */
int launch_ranks_next(int argc, char **argv, int *at, struct launch_option *option);
/* As one or two words of a shell. */
void launch_ranks_write_option(const struct launch_option *option, FILE *to);

#endif
