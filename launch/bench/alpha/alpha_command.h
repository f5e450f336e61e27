/* What the command lines of `tandem alpha` and `tandem layers` have in common: neither runs a job, and both may write what they found as JSON. Pure
 * but for the file that is named. */
#ifndef TANDEM_LAUNCH_BENCH_ALPHA_ALPHA_COMMAND_H
#define TANDEM_LAUNCH_BENCH_ALPHA_ALPHA_COMMAND_H

#include "common/options/options_table.h"
#include <jansson.h>

/* The options that are a command's own, beside those of a run, each with a value. */
struct alpha_command_own {
    const char *command;
    const char *const *name; /* NULL behind the last one */
    enum status (*take)(void *state, const char *name, char *value);
    void (*kept)(void *state, const struct option_entry *entry); /* of each option of a run; or NULL */
    void *state;
};
/* Takes them out of the command line; the rest, the program's name first, stays in the given order.  left: [argc]. STATUS_USAGE, with a line; for an
 * option of a run, too, that promises something else than this command does. */
enum status alpha_command_take(const struct alpha_command_own *own, int argc, char **argv, char **left, int *count);
/* A whole number from `low` to `most`. STATUS_USAGE, with a line. */
enum status alpha_command_read(const char *name, const char *text, int low, int most, int *value);
/* STATUS_USAGE, with a line, for such an option of a config, and for prompts from stdin. */
enum status alpha_command_check(const struct options *options, const char *command);
/* Says which options about drafts, ranks and, where `greedy`, sampling change nothing here; those of `used`, NULL behind the last one, do. */
void alpha_command_say_idle(const struct options *options, const char *command, const char *const *used, int greedy);
/* Whether the file can be written, before what may take long; NULL: none is asked for. It leaves none behind. STATUS_USAGE for -, and for a file that
 * is read by any of the options, of each draft its own; STATUS_IO; with a line. */
enum status alpha_command_check_json(const char *path, const struct options *const *options, int count);
/* Writes it, and releases `root`. */
enum status alpha_command_write_json(const char *path, json_t *root);
/* null where there is none: JSON has no NaN. */
json_t *alpha_command_number(double value);
/* In six columns; a dash where there is none. */
void alpha_command_print(double value);

#endif
