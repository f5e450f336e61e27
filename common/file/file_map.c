#include "common/file/file_map.h"

#include "common/base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status map_open_file(struct file_map *file)
{
    struct stat entry;
    void *bytes;

    if (fstat(file->descriptor, &entry) != 0 || !S_ISREG(entry.st_mode)) {
        log_error("%s: not a regular file", file->path);
        return STATUS_DATA;
    }
    file->size = (size_t)entry.st_size;
    if (file->size == 0)
        return STATUS_OK; /* mmap refuses empty files; the readers say what they expected */
    bytes = mmap(NULL, file->size, PROT_READ, MAP_SHARED, file->descriptor, 0);
    if (bytes == MAP_FAILED) {
        log_error("%s: cannot be mapped: %s", file->path, strerror(errno));
        return STATUS_NOINPUT;
    }
    file->bytes = bytes;
    return STATUS_OK;
}

enum status file_map_open(const char *path, struct file_map *file)
{
    struct file_map opened = {.path = strdup(path), .descriptor = -1};
    enum status status;

    if (opened.path == NULL) {
        log_error("%s: no memory for its name", path);
        return STATUS_INTERNAL;
    }
    opened.descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* without O_NONBLOCK a pipe of that name would block here */
    if (opened.descriptor < 0) {
        log_error("%s: %s", path, strerror(errno));
        status = STATUS_NOINPUT;
    } else {
        status = map_open_file(&opened);
    }
    if (status != STATUS_OK) {
        file_map_close(&opened);
        return status;
    }
    *file = opened;
    return STATUS_OK;
}

enum status file_map_exists(const char *path, int *there)
{
    *there = access(path, F_OK) == 0;
    if (*there || errno == ENOENT || errno == ENOTDIR)
        return STATUS_OK;
    log_error("%s: %s", path, strerror(errno));
    return STATUS_NOINPUT;
}

enum status file_map_recheck(const struct file_map *file)
{
    struct stat entry;

    if (fstat(file->descriptor, &entry) == 0 && (size_t)entry.st_size == file->size)
        return STATUS_OK;
    log_error("%s: its size changed while it was read, from %zu bytes", file->path, file->size);
    return STATUS_DATA;
}

void file_map_close(struct file_map *file)
{
    if (file->bytes != NULL)
        munmap((void *)(uintptr_t)file->bytes, file->size);
    if (file->descriptor >= 0)
        close(file->descriptor);
    free(file->path);
}
