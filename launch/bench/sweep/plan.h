/* What a sweep measures: its own options, the cells that follow from them, and the order in which passes visit the cells. Plain data; pure.
 * Invariant: every cell with drafts has a baseline, solo under the same terms. */
#ifndef TANDEM_LAUNCH_BENCH_SWEEP_PLAN_H
#define TANDEM_LAUNCH_BENCH_SWEEP_PLAN_H

#include "common/base/status.h"
#include "common/sample/rule.h"
#include <jansson.h>

enum {
    PLAN_MOST = 16, /* values of a list */
    PLAN_MOST_CELLS = 1024,
    PLAN_AUTO = -1, /* the draft length that the lead chooses */
    PLAN_TEXT = 512
};

struct plan_list {
    int count;
    double value[PLAN_MOST];
};

struct plan_rules {
    int count;
    struct rule_asked rule[PLAN_MOST];
};

/* The options of `tandem bench` that are not those of a run. */
struct plan_options {
    int quick;
    int synthetic; /* verdicts are drawn: there is nothing for rules to differ in */
    int repetitions;
    int prompts;    /* of a pass */
    int max_tokens; /* of each */
    double noise_limit; /* largest standard error of a speedup, as a share */
    double extra_s; /* how long cells beyond the limit get further repetitions, in each placement */
    struct plan_list draft_lengths, temperatures, batches;
    struct plan_rules accepts; /* those that are lossless unless others are asked for; at temperature 0 those coincide */
    int length_for_batches;
    int batch_everywhere; /* several sequences at every temperature and rule, not at the first alone */
    enum tree_kind shape; /* of drafts: of a tree no length is chosen, and rules that do not decide about it are left out */
    int fill;             /* prompts of a pass for each of its sequences at least */
};

/* One way to decode. */
struct plan_cell {
    int solo;
    int draft_length; /* PLAN_AUTO; of a solo cell: rows beside that of the newest token that each sequence has in a step, in place of drafts */
    double temperature;
    struct rule_asked rule;
    int sequences;
    int baseline; /* the cell that decodes solo under the same terms; itself where it does */
};

struct plan {
    struct plan_options options;
    struct plan_cell cell[PLAN_MOST_CELLS];
    int cells;
};

/* The defaults, of the quick form or the whole one. */
void plan_defaults(int quick, struct plan_options *options);
/* Sets a list from "1,2,auto": whole numbers or not, each from low to high; `auto` where it may stand. STATUS_USAGE, logged. */
enum status plan_read_list(const char *name, const char *text, double low, double high, int whole, int may_be_auto, struct plan_list *list);
/* The same for "rejection,lenience=0.5". */
enum status plan_read_rules(const char *name, const char *text, struct plan_rules *rules);
/* STATUS_USAGE when there are too many. */
enum status plan_make(const struct plan_options *options, struct plan *plan);
/* What is timed before any draft is made, for predictions: the target alone, at each temperature and rule with as many sequences at once and as many
 * rows of each as the cells of `plan` have; where the lead chooses lengths, with those of 0, 1, 2, 4 and 8 drafts, too. */
void plan_calibration(const struct plan *plan, struct plan *calibration);
/* The rules and temperatures that have no cells, as such a rule does not decide about the shape of drafts there: "rejection at 1"; none: "".  text:
 * [PLAN_TEXT] */
void plan_left_out(const struct plan *plan, char *text);
int plan_most_sequences(const struct plan *plan);
/* Of a pass with so many sequences: one with many gets more, so that it lasts as long as the others and its slots are seldom empty. */
int plan_prompts(const struct plan *plan, int sequences);
/* By the rules of its cells, and whether verdicts are drawn. */
int plan_is_lossless(const struct plan *plan);

/* The cells, and the file for --sweep: a warm-up pass of every cell, then the cells forward and backward in turns, so that what drifts falls on
 * all; and how long those beyond the noise limit are to be repeated. NULL without memory. */
json_t *plan_cells(const struct plan *plan);
json_t *plan_passes(const struct plan *plan, const char *results);

#endif
