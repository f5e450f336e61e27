/* To be preloaded: from the n-th call on, one kind of call that writes a job's results fails. Only calls about FILE.journal, FILE.partial and
 * their folder count, so that the rest of the process (MPI has files, too) goes on.
 *
 *   FAILING_CALL=write|short|fdatasync|fsync|rename FAILING_AT=3 FAILING_ERRNO=28
 *
 * FAILING_CALL=stop fails nothing: the process stops behind the n-th write, and a test that wants to do something to a job at that place has all the
 * time. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_named(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);

    return length > tail && strcmp(name + length - tail, end) == 0;
}

static int is_of_results(int fd)
{
    char link[64], path[PATH_MAX] = "";
    struct stat found;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) < 0)
        return 0;
    return is_named(path, ".journal") || is_named(path, ".partial") || (fstat(fd, &found) == 0 && S_ISDIR(found.st_mode));
}

/* 0: it goes through; 1: it is the first that fails; 2: a later one. */
static int fails(const char *call)
{
    static int count;
    const char *wanted = getenv("FAILING_CALL"), *at = getenv("FAILING_AT"), *error = getenv("FAILING_ERRNO");

    if (wanted == NULL || at == NULL || error == NULL || strcmp(wanted, call) != 0 || ++count < atoi(at))
        return 0;
    errno = atoi(error);
    return count == atoi(at) ? 1 : 2;
}

typedef ssize_t write_function(int fd, const void *bytes, size_t count);
typedef int sync_function(int fd);
typedef int rename_function(const char *from, const char *to);

/* The real function. POSIX lets a data pointer hold one, ISO C has no cast for it. */
static void find(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);

    memcpy(function, &found, sizeof found);
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    write_function *real;
    ssize_t written;
    int failing;

    find("write", &real);
    if (fd <= STDERR_FILENO || !is_of_results(fd))
        return real(fd, bytes, count);
    if (fails("write"))
        return -1;
    failing = fails("short");
    if (failing == 2)
        return -1;
    written = real(fd, bytes, failing && count > 1 ? count / 2 : count);
    if (written >= 0 && fails("stop") == 1)
        raise(SIGSTOP);
    return written;
}

int fdatasync(int fd)
{
    sync_function *real;

    find("fdatasync", &real);
    return is_of_results(fd) && fails("fdatasync") ? -1 : real(fd);
}

int fsync(int fd)
{
    sync_function *real;

    find("fsync", &real);
    return is_of_results(fd) && fails("fsync") ? -1 : real(fd);
}

int rename(const char *from, const char *to)
{
    rename_function *real;

    find("rename", &real);
    return is_named(from, ".partial") && fails("rename") ? -1 : real(from, to);
}
