/* summary.json: all figures of a run under their names, for programs. vLLM's names where it has them (milliseconds; rates in percent as there). Owns
 * nothing. Invariant: a figure that cannot be told is null, so that no program reads a zero for it. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_SUMMARY_H
#define TANDEM_LAUNCH_BENCH_REPORT_SUMMARY_H

#include "launch/bench/report/measured.h"

/* NULL without memory. */
json_t *summary_make(const struct run *run, const struct measured_placement *all);
/* "T 0, 4 drafted, 2 sequences": what a cell is, for people and for comparing runs. */
void summary_name(const struct run_cell *cell, char *name, size_t size);

#endif
