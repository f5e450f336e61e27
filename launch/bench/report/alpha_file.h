/* What `tandem alpha --json` wrote, read for predictions. The file is untrusted: whatever is wrong is one line that names it. Owns nothing but what
 * it returns. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_ALPHA_FILE_H
#define TANDEM_LAUNCH_BENCH_REPORT_ALPHA_FILE_H

#include "common/base/status.h"
#include "launch/bench/report/forecast.h"
#include <jansson.h>

/* *json is to be given back. STATUS_NOINPUT, STATUS_DATA, logged. */
enum status alpha_file_read(const char *path, json_t **json);
/* Refuses one of another target than this, or without this draft, both as a command names them. STATUS_USAGE, logged. */
enum status alpha_file_check(const char *path, const json_t *json, const char *target, const char *draft);
/* Is it of this temperature and, above 0, of this rule? */
int alpha_file_is_of(const json_t *json, double temperature, const char *accept);
/* The figures of the draft of that name; 0: it has none. */
int alpha_file_draft(const json_t *json, const char *draft, struct forecast_draft *figures);

#endif
