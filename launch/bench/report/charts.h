/* The pictures of a report, each a figure of HTML with its legend. Owns nothing: the run and its figures are borrowed and not changed. A picture
 * whose figures were not measured is left out; nothing is computed here that measured.h does not have. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_CHARTS_H
#define TANDEM_LAUNCH_BENCH_REPORT_CHARTS_H

#include "launch/bench/report/measured.h"
#include <stdio.h>

/* Speedup against draft length, measured, by theorem 3.8, and with v and wire: one for each group. */
void charts_speedup(const struct run *run, const struct measured_placement *all, FILE *to);
/* The share of drafts that are accepted, by their place in the proposal. */
void charts_acceptance(const struct run *run, const struct measured_placement *all, FILE *to);
/* Where a round's time goes, stacked. */
void charts_round(const struct run *run, const struct measured_placement *all, FILE *to);
/* Percentiles of the time between arrivals. */
void charts_latency(const struct run *run, const struct measured_placement *all, FILE *to);
/* Tokens a second by sequences at once. */
void charts_batch(const struct run *run, const struct measured_placement *all, FILE *to);
/* Latency of messages and collectives by size, both logarithmic. */
void charts_messages(const struct run_placement *placement, FILE *to);
/* What was measured of chains of a fixed length, one sequence. */
struct charts_point {
    double alpha, tokens, speedup; /* tokens: of a round */
    double best_gamma;             /* by theorem 3.8, for this alpha and c */
    int is_fastest;                /* of its temperature and rule */
};
/* The paper's figures 2 to 4, by alpha: expected tokens of a round for several gamma; the best gamma for several c; improvement and operations for
 * several gamma, with drafts that cost nothing; with what was measured in them. */
void charts_theory(const struct charts_point *points, int count, FILE *to);
/* Some rounds of all ranks in time, with what they sent each other: as the paper's figure 5. */
void charts_timeline(const struct run *run, const struct run_placement *placement, const struct measured_placement *all, FILE *to);

/* A figure's begin: its title and legend, names with | between, whose colours are k0, k1, ..., or k4 for
 * "4:name"; dashed (d), dotted (t) or a block (b) where the letter of `how` says so. */
void charts_begin(FILE *to, const char *size, const char *title, const char *names, const char *how);
void charts_end(FILE *to, const char *below);

#endif
