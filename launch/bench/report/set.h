/* Several tasks and drafts in one report: the paper's tables (Leviathan et al. 2023) by task, draft and temperature, from the summaries of the parts,
 * each a folder of a bench with a report of its own. It owns what it read until set_release. The files are untrusted. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_SET_H
#define TANDEM_LAUNCH_BENCH_REPORT_SET_H

#include "launch/bench/report/table.h"

enum { SET_MOST_PARTS = 128, SET_MOST_ROWS = 512, SET_MOST_SHAPES = 4096 };

/* One task, draft, temperature and rule: the fixed draft length that was fastest for one sequence. */
struct set_row {
    const char *folder, *task, *draft, *tree, *accept; /* tree: the shape that was named, NULL: none was */
    int is_tree;                                       /* it is no chain, of which the theory is */
    double temperature;
    int gamma;
    double alpha, offline, distance;      /* counted; of the other prompts, without drafting; D_LK. -1: not known */
    double c, speed, expected, predicted; /* expected: theorem 3.8, of chains; predicted: before it was measured, 0: not */
    double solo, tokens_per_second, tokens_per_round;
    int noisy;
};

/* What so many drafts of one shape give to one sequence. */
struct set_shape {
    const char *task, *draft, *tree, *accept;
    double temperature, tokens_per_round, speed, tokens_per_second;
    int part, drafts, noisy;
};

struct set {
    json_t *json; /* set.json */
    json_t *summary[SET_MOST_PARTS];
    int parts;
    struct set_row row[SET_MOST_ROWS];
    int rows;
    struct set_shape shape[SET_MOST_SHAPES]; /* those of one task, draft, temperature and rule behind each other, by their number of drafts */
    int shapes, has_trees;                   /* has_trees: some shape was named, or is a drafter's own */
    int cells, near; /* with drafts: predicted, and within a tenth of it */
};

/* Is it a folder of several? */
int set_is_one(const char *folder);
/* The names of its parts, to be reported before set_read. STATUS_NOINPUT, STATUS_DATA. What was read is given back by set_release in any case. */
enum status set_open(const char *folder, struct set *set);
const char *set_part(const struct set *set, int part);
/* The summaries of all parts, and the rows that they make. */
enum status set_read(const char *folder, struct set *set);
void set_release(struct set *set);

/* The tables, and the whole pages. */
void set_write_tables(const struct set *set, enum table_form form, FILE *to);
void set_write_md(const struct set *set, FILE *to);
void set_write_html(const struct set *set, FILE *to);
void set_write_json(const struct set *set, FILE *to);

#endif
