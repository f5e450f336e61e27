/* What was predicted before anything was drafted, beside what was measured: the sentences of both forms of the report. Owns nothing; pure. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_FORECAST_TABLE_H
#define TANDEM_LAUNCH_BENCH_REPORT_FORECAST_TABLE_H

#include "launch/bench/report/table.h"

/* How many predictions were within a tenth. */
struct forecast_score {
    int cells, near;  /* with drafts: tokens per second */
    int near_speedup; /* of them: the speedup over solo, which what the whole machine did does not change */
    int others;       /* with drafts, of which nothing was predicted */
    int solo_cells, solo_near;
    double farthest; /* share that the worst is off by */
};

/* The assumptions of a prediction, of which one may have failed. */
enum forecast_part { FORECAST_ACCEPTANCE, FORECAST_STEP, FORECAST_HITS, FORECAST_WAIT, FORECAST_REST, FORECAST_OUTSIDE, FORECAST_PARTS };

struct forecast_score forecast_score(const struct run *run, const struct measured_placement *all);
/* By how much each part's miss alone makes the measured speed another than the predicted, as a share of it: negative is slower. part:
 * [FORECAST_PARTS] */
void forecast_blame(const struct measured *measured, double *part);
/* Where the calibrating prompts are from; "" where nothing was predicted. */
const char *forecast_prompts(const struct run *run);
/* The share within a tenth, and for each cell that is not which assumption failed. */
void forecast_verdict(const struct run *run, const struct measured_placement *all, const char *begin, const char *end, FILE *to);
extern const char forecast_why[], forecast_hits_why[];

#endif
