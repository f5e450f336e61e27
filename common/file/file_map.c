#include "common/file/file_map.h"

#include "common/base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum status file_map_open(const char *path, const char *what, struct file_map *map)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    enum status status = STATUS_NOINPUT;
    struct stat about;
    void *bytes;

    if (file < 0 || fstat(file, &about) != 0) {
        log_error("%s: %s", path, strerror(errno));
        goto close_file;
    }
    if (!S_ISREG(about.st_mode) || about.st_size == 0) {
        log_error("%s: empty or not a regular file, expected %s", path, what);
        status = STATUS_DATA;
        goto close_file;
    }
    bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (bytes == MAP_FAILED) {
        log_error("%s: cannot be mapped: %s", path, strerror(errno));
        goto close_file;
    }
    *map = (struct file_map){.bytes = bytes, .size = (size_t)about.st_size};
    status = STATUS_OK;
close_file:
    if (file >= 0)
        close(file);
    return status;
}

void file_map_close(struct file_map *map)
{
    munmap((void *)map->bytes, map->size);
}
