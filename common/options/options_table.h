/* The table of options: a constant row for each, with where its value lies in struct options. Invariant: a row says of itself whether results depend
 * on it and whether ranks are given it, so that journals, launch lines and help follow from the table. For options*.c, and for whoever goes through
 * all rows; what one option was set to is read from struct options. */
#ifndef TANDEM_COMMON_OPTIONS_OPTIONS_TABLE_H
#define TANDEM_COMMON_OPTIONS_OPTIONS_TABLE_H

#include "common/options/options.h"
#include <stddef.h>

/* A text of a config file, or the path that a name stands for. */
struct options_text {
    struct options_text *next;
    char text[];
};

enum option_kind {
    OPTION_FLAG, OPTION_INT, OPTION_U64, OPTION_DOUBLE, OPTION_TEXT, OPTION_TEXTS, OPTION_IDS, OPTION_BIAS, OPTION_CHOICE, OPTION_PRINT
};
enum option_group {
    OPTION_MODELS, OPTION_RANKS, OPTION_CLUSTER, OPTION_INPUT, OPTION_SAMPLING, OPTION_SPECULATION, OPTION_REPORT, OPTION_CHECK, OPTION_OTHER,
    OPTION_HIDDEN
};

/* Whether results depend on the option's value, so that no job goes on from the results of one that had another. Zero is no answer: each row gives
 * one. */
enum option_results {
    RESULTS_UNSAID,
    RESULTS_NEVER,
    RESULTS_ALWAYS,
    RESULTS_DRAFTED,    /* where drafts decide what is drawn */
    RESULTS_BY_CONTENT, /* on what it names, a model or prompts, which is compared itself */
    RESULTS_FROM_0,     /* where the value is at least 0; below it, it changes nothing */
    RESULTS_FROM_1,
    RESULTS_FROM_2,
};
/* Whether ranks are given the option, or it shapes what starts them. Zero is no answer here, either. */
enum option_ranks {
    RANKS_UNSAID,
    RANKS_NEVER,
    RANKS_ALWAYS,
    RANKS_BY_SCRIPT, /* but a batch script gives a value of its own */
};

struct option_entry {
    const char *name;
    const char *value; /* what stands for the value in help, in brackets where it may be left out; NULL for a flag */
    enum option_kind kind;
    enum option_group group;
    size_t at; /* offset in struct options */
    double low, high;    /* of a text that may be given several times: high is how often */
    const char *choices; /* "none|q8_0": the value is the index; of a number whose range has an open end: the range in words, or NULL */
    int per_request;     /* may stand in a line of --prompts */
    enum option_results affects_results;
    enum option_ranks for_ranks;
    const char *help;
};

extern const struct option_entry option_table[];
extern const int option_count;
extern const struct options options_default; /* but sampling, whose own is sampling_default */
extern const char *const option_group_title[];

enum { OPTION_NAME = 64 };
/* Of a word that begins with "--", "--name" or "--name=VALUE", the name, cut where it is too long. Returns VALUE, or NULL.  name: [OPTION_NAME] */
const char *option_cut(const char *word, char *name);
/* The entry of that name ('-' and '_' are the same), or NULL. */
const struct option_entry *option_find(const char *name);
/* Is argv[at], which follows an option without '=', its value? Where the value may be left out, a word that is an option is not; otherwise any
 * word is taken as it stands. */
int option_takes_next(const struct option_entry *entry, int argc, char **argv, int at);
/* The known name that is nearest to `name`. */
const char *option_nearest(const char *name);
/* Sets the value from text; logs and returns STATUS_USAGE when it does not fit. `where` is "--" or "FILE:LINE: ". */
enum status option_set(struct options *options, const struct option_entry *entry, const char *text, const char *where);
/* A copy of the text that lives until options_release, or NULL (logged). */
const char *option_keep(struct options *options, const char *text);
/* Sets what the file says. STATUS_NOINPUT, STATUS_USAGE, each with one logged line. */
enum status option_read_config(struct options *options, const char *path);
/* Shows each pair of the file, in its order, to `show`. The same statuses. */
enum status option_show_config(const char *path, void (*show)(void *state, const struct option_entry *entry, const char *value), void *state);

#endif
