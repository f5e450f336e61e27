/* What a rank wrote of its rounds (common/base/trace.h), and how its clock is made the lead's. Owns nothing: spans belong to the run. Invariant:
 * after the clocks are read all spans have times of the lead's clock. The files are untrusted. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_RANK_FILE_H
#define TANDEM_LAUNCH_BENCH_REPORT_RANK_FILE_H

#include "launch/bench/report/run_file.h"

/* rank-NNNN.csv. STATUS_NOINPUT, STATUS_DATA. */
enum status rank_file_read(const char *path, struct run_rank *rank);
/* clocks.csv; from here on the spans of all ranks have times of the lead's clock, and passes say whether they are in all traces. */
enum status rank_file_read_clocks(struct run_placement *placement);

#endif
