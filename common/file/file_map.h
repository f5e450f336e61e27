/* One file of a checkpoint, mapped read-only. Its size is taken from the open descriptor and is the only size that anything is
 * checked against; a file that is cut short after that cannot be guarded against by a mapping, so model files must not be
 * rewritten in place while a job runs. */
#ifndef TANDEM_COMMON_MODEL_CHECKPOINT_FILE_H
#define TANDEM_COMMON_MODEL_CHECKPOINT_FILE_H

#include "common/base/status.h"
#include <stddef.h>

struct checkpoint_file {
    char *path;
    const unsigned char *bytes; /* [size], NULL when empty */
    size_t size;
    int descriptor;
};

/* STATUS_NOINPUT when it is missing or cannot be mapped, STATUS_DATA when it is not a regular file. */
enum status checkpoint_file_open(const char *path, struct checkpoint_file *file);
/* Whether there is something of that name; STATUS_NOINPUT when that cannot be told. */
enum status checkpoint_file_exists(const char *path, int *there);
/* That the file still has the size that was checked. STATUS_DATA. */
enum status checkpoint_file_recheck(const struct checkpoint_file *file);
void checkpoint_file_close(struct checkpoint_file *file);

#endif
