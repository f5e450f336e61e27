/* What each rank did in a mean round of a cell: its own time by phase. Invariant: spans that lie in others are taken from them, so that the phases of
 * a rank add up to its time. Plain numbers; pure, but for memory. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_BY_RANK_H
#define TANDEM_LAUNCH_BENCH_REPORT_BY_RANK_H

#include "launch/bench/report/measured.h"

struct by_rank {
    double us[TRACE_PHASES]; /* without what lies inside; TRACE_VERIFY without the sums */
    double reduce_us;        /* the sums inside of verifying */
    double idle_us;          /* waits, and what no span has */
};

/* Means over the rounds of the cell's measured passes, prompts included; steps: how many rounds there were. STATUS_INTERNAL. */
enum status by_rank_sum(const struct run_placement *placement, const struct run_rank *rank, int cell, double steps, struct by_rank *means);

#endif
