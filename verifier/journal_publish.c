#include "verifier/journal_publish.h"

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/world/watchdog.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct publishing {
    const struct journal_file *file;
    char partial[PATH_MAX];
    FILE *to;
    char *line;
    size_t room;
};

static enum status cannot_write(const struct publishing *publishing)
{
    log_error("cannot write %s: %s; all results are in %s, and --resume writes them", publishing->partial, strerror(errno), publishing->file->path);
    return STATUS_IO;
}

static enum status read_line(struct publishing *publishing, const struct journal_place *place, struct journal_line *line)
{
    const char *wrong;
    ssize_t count;

    if (place->bytes > publishing->room) {
        free(publishing->line);
        publishing->room = 2 * place->bytes;
        publishing->line = malloc(publishing->room);
        if (publishing->line == NULL) {
            publishing->room = 0;
            log_error("no memory for a result of %llu bytes", (unsigned long long)place->bytes);
            return STATUS_INTERNAL;
        }
    }
    count = pread(publishing->file->fd, publishing->line, place->bytes, (off_t)place->offset);
    if (count < 0) {
        log_error("cannot read %s: %s", publishing->file->path, strerror(errno));
        return STATUS_IO;
    }
    wrong = journal_line_read(publishing->line, (size_t)count, place->offset, line);
    if (wrong == NULL)
        return STATUS_OK;
    log_error("%s is damaged at byte %llu: %s", publishing->file->path, (unsigned long long)place->offset, wrong);
    return STATUS_IO;
}

static enum status copy_lines(struct publishing *publishing, const struct journal_place *place, int count)
{
    struct journal_line line;

    for (int i = 0; i < count; i++) {
        watchdog_progress("writing the output");
        TRY(read_line(publishing, &place[i], &line));
        if (fwrite(line.text, 1, line.length, publishing->to) != line.length || fputc('\n', publishing->to) == EOF)
            return cannot_write(publishing);
    }
    return fflush(publishing->to) == 0 && fsync(fileno(publishing->to)) == 0 ? STATUS_OK : cannot_write(publishing);
}

/* Opens a file of ours alone: what lies there is left over from a job that was killed, for we have the lock. */
static enum status open_partial(struct publishing *publishing)
{
    struct stat before;
    int fd;

    if (unlink(publishing->partial) != 0 && errno != ENOENT)
        return cannot_write(publishing);
    fd = open(publishing->partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return cannot_write(publishing);
    if (stat(publishing->file->output, &before) == 0)
        (void)!fchmod(fd, before.st_mode & 0777); /* who could read it before may still */
    publishing->to = fdopen(fd, "w");
    if (publishing->to != NULL)
        return STATUS_OK;
    close(fd);
    return cannot_write(publishing);
}

enum status journal_publish_write(const struct journal_file *file, const struct journal_place *place, int count)
{
    struct publishing publishing = {.file = file};
    enum status status;

    snprintf(publishing.partial, sizeof publishing.partial, "%s.partial", file->output);
    TRY(open_partial(&publishing));
    status = copy_lines(&publishing, place, count);
    free(publishing.line);
    if (fclose(publishing.to) != 0 && status == STATUS_OK)
        status = cannot_write(&publishing);
    TRY_TO(status, remove_partial);
    if (rename(publishing.partial, file->output) != 0)
        TRY_TO(cannot_write(&publishing), remove_partial);
    return journal_file_sync_folder(file->output);

remove_partial:
    unlink(publishing.partial);
    return status;
}

/* The index that a line of output says it is of, or -1: the last one, for the id before it may be an object with any keys. A line of OpenAI's
 * batch output has it in its own id. */
static int64_t index_of(const char *line)
{
    static const char key[] = "\"index\":", id[] = "{\"id\":\"batch_req_", next_key[] = "\",\"custom_id\":";
    const char *at = NULL;
    char *end;

    if (strncmp(line, id, sizeof id - 1) == 0) {
        int64_t index = strtoll(line + sizeof id - 1, &end, 10);

        if (strncmp(end, next_key, sizeof next_key - 1) == 0)
            return index;
    }
    for (const char *next = strstr(line, key); next != NULL; next = strstr(next + 1, key))
        at = next;
    return line[0] == '{' && at != NULL ? strtoll(at + sizeof key - 1, NULL, 10) : -1;
}

enum status journal_publish_check(const char *output, const struct request_list *requests)
{
    FILE *file = fopen(output, "r");
    size_t room = 0;
    char *line = NULL;
    int count = 0, fits = 1;

    if (file == NULL) {
        log_error("--output %s: %s", output, strerror(errno));
        return STATUS_IO;
    }
    for (; getline(&line, &room, file) >= 0; count++)
        fits &= count < requests->count && index_of(line) == (int64_t)requests->request[count].index;
    free(line);
    fclose(file);
    if (fits && count == requests->count) {
        log_info("%s is complete (%d results) and has no journal: nothing to do", output, count);
        return STATUS_OK;
    }
    log_error("%s has no journal and is not the result of these %d prompts: remove it, or leave --resume away to replace it", output,
              requests->count);
    return STATUS_DATA;
}
