/* Two runs beside each other: which figures changed by more than both of them spread. Owns nothing; it reads the summaries alone, not what they were
 * made of. Whether a change is noise, compare_bar decides for all figures. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_COMPARE_H
#define TANDEM_LAUNCH_BENCH_REPORT_COMPARE_H

#include "common/base/status.h"
#include <jansson.h>
#include <stdio.h>

/* Reads summary.json of both folders and writes a table. *code: 1 where some cell of B is slower beyond noise. STATUS_NOINPUT, STATUS_DATA. */
enum status compare_runs(const char *a, const char *b, FILE *to, int *code);
/* The same of two summaries; returns how many figures of cells are worse beyond noise. */
int compare_summaries(const json_t *a, const json_t *b, FILE *to);
/* The change of a figure that counts, as a share: three standard errors of the difference of two medians, each 1.2533 spread / sqrt(repetitions) as
 * where values are normal; at least 1 %. */
double compare_bar(double spread_a, double repetitions_a, double spread_b, double repetitions_b);

#endif
