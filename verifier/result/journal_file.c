#include "verifier/result/journal_file.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "common/world/signals.h"
#include "verifier/result/journal_scan.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS ((int64_t)100 * 1000000) /* between two looks at a lock that another job holds */

static void let_go(struct journal_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

static enum status cannot(const char *what, const char *path)
{
    log_error("cannot %s %s: %s", what, path, strerror(errno));
    return STATUS_IO;
}

static enum status open_or_create(struct journal_file *file)
{
    struct stat found;

    for (;;) { /* between the two looks it may come or go */
        file->fd = open(file->path, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (file->fd >= 0)
            break;
        if (errno != ENOENT)
            return cannot("open", file->path);
        file->fd = open(file->path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file->fd >= 0)
            break;
        if (errno != EEXIST) {
            log_error("--output %s: %s (its journal, %s, cannot be created)", file->output, strerror(errno), file->path);
            return STATUS_IO;
        }
    }
    if (fstat(file->fd, &found) == 0 && S_ISREG(found.st_mode))
        return STATUS_OK;
    log_error("%s is not a file, expected a journal or nothing", file->path);
    let_go(file);
    return STATUS_IO;
}

/* Who holds it, for people: from the last header. */
static void describe_holder(const struct journal_file *file, char *text, size_t size)
{
    struct journal_scan scan = {0};
    char *bytes = NULL;
    size_t count;

    snprintf(text, size, "another job");
    if (journal_file_read(file, &bytes, &count) == STATUS_OK && journal_scan_open(&scan, bytes, count) == STATUS_OK && scan.header.kind != 0)
        snprintf(text, size, "another job, process %u on %s", scan.header.pid, scan.header.host);
    journal_scan_close(&scan);
    free(bytes);
}

/* Does the path still name the file that is open? A job that ended has removed its journal. */
static int is_still_there(const struct journal_file *file)
{
    struct stat open, named;

    return fstat(file->fd, &open) == 0 && lstat(file->path, &named) == 0 && open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

/* Locked, or another job has it. */
static void lock(const struct journal_file *file, int *locked)
{
    *locked = flock(file->fd, LOCK_EX | LOCK_NB) == 0;
    if (*locked || errno == EWOULDBLOCK)
        return;
    log_warn("%s cannot be locked (%s): see to it that no other job writes %s", file->path, strerror(errno), file->output);
    *locked = 1; /* without a lock only the fencing number tells jobs apart */
}

enum status journal_file_claim(struct journal_file *file, const char *output, int patience_s)
{
    int64_t started = clock_ns(), patience = (int64_t)patience_s * 1000000000;
    char holder[160];
    int locked, told = 0, waited_long;

    *file = (struct journal_file){.fd = -1, .output = output};
    if (asprintf(&file->path, "%s.journal", output) < 0) {
        file->path = NULL;
        log_error("no memory for a path");
        return STATUS_INTERNAL;
    }
    for (;;) {
        progress_made("waiting for another job to end");
        if (signals_ask_to_drain()) {
            log_info("drained: nothing was begun");
            return STATUS_DRAINED;
        }
        TRY(open_or_create(file));
        lock(file, &locked);
        if (locked && is_still_there(file))
            return STATUS_OK;
        describe_holder(file, holder, sizeof holder);
        let_go(file); /* another job's journal is not removed */
        waited_long = clock_ns() - started >= patience;
        if (!locked && waited_long) {
            log_error("--output %s is being written by %s", output, holder);
            return STATUS_IO;
        }
        if (!locked && !told)
            log_info("%s is being written by %s: waiting up to %d s for its end", output, holder, patience_s);
        told |= !locked;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
}

enum status journal_file_remove(struct journal_file *file)
{
    enum status status = unlink(file->path) == 0 ? STATUS_OK : cannot("remove", file->path);

    let_go(file);
    return status;
}

void journal_file_close(struct journal_file *file)
{
    let_go(file);
    free(file->path);
    file->path = NULL;
}

enum status journal_file_read(const struct journal_file *file, char **bytes, size_t *count)
{
    struct stat found;
    size_t used = 0;
    ssize_t part;
    char *all;

    if (fstat(file->fd, &found) != 0)
        return cannot("look at", file->path);
    all = malloc((size_t)found.st_size + 1);
    if (all == NULL) {
        log_error("no memory to read %s (%lld bytes)", file->path, (long long)found.st_size);
        return STATUS_INTERNAL;
    }
    while (used < (size_t)found.st_size) {
        part = pread(file->fd, all + used, (size_t)found.st_size - used, (off_t)used);
        if (part == 0)
            break; /* it became shorter */
        if (part < 0 && errno != EINTR) {
            free(all);
            return cannot("read", file->path);
        }
        used += part > 0 ? (size_t)part : 0;
    }
    *bytes = all;
    *count = used;
    return STATUS_OK;
}

enum status journal_file_cut(struct journal_file *file, uint64_t count)
{
    if (ftruncate(file->fd, (off_t)count) != 0)
        return cannot("shorten", file->path);
    file->end = count;
    return STATUS_OK;
}

/* A lock may not hold everywhere (NFS). A file that has grown or is gone says that somebody else is at work. */
static enum status look(const struct journal_file *file)
{
    struct stat found;

    if (fstat(file->fd, &found) != 0)
        return cannot("look at", file->path);
    if (found.st_nlink > 0 && (uint64_t)found.st_size == file->end)
        return STATUS_OK;
    log_error("%s was %s: this job stops writing to it", file->path,
              found.st_nlink == 0 ? "removed" : "changed by another job, which has a higher fencing number");
    return STATUS_IO;
}

enum status journal_file_append(struct journal_file *file, const char *bytes, size_t count)
{
    size_t used = 0;

    TRY(look(file));
    while (used < count) {
        ssize_t part = write(file->fd, bytes + used, count - used);

        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0) {
            errno = part == 0 ? EIO : errno;
            log_error("cannot write to %s: %s; what it holds stays", file->path, strerror(errno));
            if (used > 0 && ftruncate(file->fd, (off_t)file->end) != 0)
                log_warn("%s ends in a part of a line", file->path); /* which the next job drops */
            return STATUS_IO;
        }
        used += (size_t)part;
    }
    file->end += count;
    return STATUS_OK;
}

enum status journal_file_sync(const struct journal_file *file)
{
    return fdatasync(file->fd) == 0 ? STATUS_OK : cannot("make results durable in", file->path);
}

enum status journal_file_sync_folder(const char *path)
{
    char copy[PATH_MAX];
    enum status status = STATUS_OK;
    int fd;

    snprintf(copy, sizeof copy, "%s", path);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL)) /* EINVAL: this file system cannot sync, and has nothing to sync */
        status = cannot("make durable the name of", path);
    if (fd >= 0)
        close(fd);
    return status;
}
