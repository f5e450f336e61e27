/* trace.json: a timeline of the first rounds of each cell, in the trace format that Chrome and Perfetto read. Owns nothing; the run is borrowed. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_TRACE_JSON_H
#define TANDEM_LAUNCH_BENCH_REPORT_TRACE_JSON_H

#include "launch/bench/report/measured.h"
#include <stdio.h>

void trace_json_write(const struct run *run, const struct measured_placement *all, FILE *to);

#endif
