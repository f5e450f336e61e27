/* The prediction of a bench: made from the folder's calibration before its cells are measured, kept in prediction.json, and read by the report. It
 * owns that file; what it reads is untrusted. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_FORECAST_FILE_H
#define TANDEM_LAUNCH_BENCH_REPORT_FORECAST_FILE_H

#include "launch/bench/report/run_file.h"

/* From FOLDER/calibration, its alpha files and FOLDER/raw/PLACEMENT/latency.jsonl: FOLDER/prediction.json. STATUS_NOINPUT, STATUS_DATA, STATUS_IO,
 * logged. */
enum status forecast_make(const char *folder);
/* Of that cell of a placement, from what run_read read; NULL where nothing was predicted. */
const json_t *forecast_of(const struct run *run, const char *placement, int cell);

#endif
