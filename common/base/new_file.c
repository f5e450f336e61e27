#include "common/base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *new_file_open(const char *beside, const char *like, mode_t mode)
{
    struct stat before;
    FILE *file;
    int fd, why;

    if (unlink(beside) != 0 && errno != ENOENT)
        return NULL;
    fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return NULL;
    if (lstat(like, &before) == 0 && S_ISREG(before.st_mode)) /* a link is replaced, and what it leads to says nothing */
        (void)!fchmod(fd, before.st_mode & 0777);
    file = fdopen(fd, "w");
    if (file != NULL)
        return file;
    why = errno;
    close(fd);
    unlink(beside);
    errno = why;
    return NULL;
}

int new_file_put(FILE *file, int whole, const char *beside, const char *path)
{
    int why;

    whole = whole && fflush(file) == 0 && fsync(fileno(file)) == 0;
    why = errno;
    if (fclose(file) != 0 && whole) {
        whole = 0;
        why = errno;
    }
    if (whole && rename(beside, path) == 0)
        return 1;
    if (whole)
        why = errno;
    unlink(beside);
    errno = why;
    return 0;
}
