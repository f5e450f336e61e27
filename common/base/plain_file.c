#include "common/base/plain_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *take(int fd, const char *mode)
{
    struct stat found;
    FILE *file = NULL;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &found) == 0) {
        errno = EINVAL;
        file = S_ISREG(found.st_mode) ? fdopen(fd, mode) : NULL;
    }
    if (file == NULL) {
        int why = errno;

        close(fd);
        errno = why;
    }
    return file;
}

const char *plain_file_fault(void)
{
    if (errno == EINVAL || errno == ENXIO) /* of these the second is a pipe that nobody reads */
        return "not a regular file";
    return errno == ELOOP ? "a link, which is not followed here" : strerror(errno);
}

FILE *plain_file_read(const char *path)
{
    return take(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), "rb");
}

FILE *plain_file_write(const char *path)
{
    return take(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666), "w");
}
