/* A whole file in memory as it is on disk, to be read: for files of which only a part is looked at. */
#ifndef TANDEM_COMMON_FILE_FILE_MAP_H
#define TANDEM_COMMON_FILE_FILE_MAP_H

#include "common/base/status.h"
#include <stddef.h>

struct file_map {
    const void *bytes; /* [size] */
    size_t size;
};

/* `what` is expected ("a GGUF file"). STATUS_NOINPUT, or STATUS_DATA where it is empty or not a regular file; logged. */
enum status file_map_open(const char *path, const char *what, struct file_map *map);
void file_map_close(struct file_map *map);

#endif
