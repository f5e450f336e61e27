/* A file in memory as it is on disk, mapped read-only: a model's weights, or a file of which only a part is looked at. It owns the mapping until it
 * is closed. Invariant: its size is taken from the open descriptor and is the only size that anything is checked against. A file that is cut short
 * after that cannot be guarded against by a mapping, so model files must not be rewritten in place while a job runs. Any thread may read. */
#ifndef TANDEM_COMMON_FILE_FILE_MAP_H
#define TANDEM_COMMON_FILE_FILE_MAP_H

#include "common/base/status.h"
#include <stddef.h>

struct file_map {
    char *path;
    const unsigned char *bytes; /* [size], NULL when empty */
    size_t size;
    int descriptor;
};

/* STATUS_NOINPUT when it is missing or cannot be mapped, STATUS_DATA when it is not a regular file. */
enum status file_map_open(const char *path, struct file_map *file);
/* Whether there is something of that name; STATUS_NOINPUT when that cannot be told. */
enum status file_map_exists(const char *path, int *there);
/* That the file still has the size that was checked. STATUS_DATA. */
enum status file_map_recheck(const struct file_map *file);
void file_map_close(struct file_map *file);

#endif
