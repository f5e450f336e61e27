/* A file as one text, which the caller frees. Local. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_TEXT_FILE_H
#define TANDEM_LAUNCH_BENCH_REPORT_TEXT_FILE_H

#include "common/base/status.h"
#include <stddef.h>

/* *text has a NUL behind its *size bytes and is to be freed. STATUS_NOINPUT, logged. */
enum status text_file_read(const char *path, char **text, size_t *size);

#endif
