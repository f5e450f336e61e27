#include "verifier/result/journal_publish.h"

#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "verifier/result/journal_terms.h"
#include "verifier/result/result.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
        progress_made("writing the output");
        TRY(read_line(publishing, &place[i], &line));
        if (fwrite(line.text, 1, line.length, publishing->to) != line.length || fputc('\n', publishing->to) == EOF)
            return cannot_write(publishing);
    }
    return STATUS_OK;
}

static enum status open_partial(struct publishing *publishing)
{
    publishing->to = new_file_open(publishing->partial, publishing->file->output, 0600);
    return publishing->to != NULL ? STATUS_OK : cannot_write(publishing);
}

/* Makes what was written durable, and puts it where it belongs. */
static enum status put(struct publishing *publishing, enum status status, const char *place)
{
    int is_there = new_file_put(publishing->to, status == STATUS_OK, publishing->partial, place);

    return is_there || status != STATUS_OK ? status : cannot_write(publishing);
}

static void terms_path(const char *output, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s.terms", output);
}

/* The terms first. If the job dies between the two renames, the journal is still there and says what holds. */
enum status journal_publish_write(const struct journal_file *file, const char *terms, const struct journal_place *place, int count)
{
    struct publishing publishing = {.file = file};
    char path[PATH_MAX];
    enum status status;

    snprintf(publishing.partial, sizeof publishing.partial, "%s.partial", file->output);
    terms_path(file->output, path);
    TRY(open_partial(&publishing));
    TRY(put(&publishing, fprintf(publishing.to, "%s\n", terms) > 0 ? STATUS_OK : cannot_write(&publishing), path));
    TRY(open_partial(&publishing));
    status = copy_lines(&publishing, place, count);
    free(publishing.line);
    TRY(put(&publishing, status, file->output));
    return journal_file_sync_folder(file->output);
}

/* The terms that `output` was made on, to be freed; NULL where nobody knows them. */
static char *terms_of(const char *output)
{
    char path[PATH_MAX], *terms = NULL;
    size_t room = 0;
    FILE *file;

    terms_path(output, path);
    file = fopen(path, "r");
    if (file == NULL)
        return NULL;
    if (getline(&terms, &room, file) <= 0) {
        free(terms);
        terms = NULL;
    }
    fclose(file);
    return terms;
}

static enum status is_of_others(const char *output, int count)
{
    log_error("%s has no journal and is not the result of these %d prompts: remove it, or leave --resume away to replace it", output, count);
    return STATUS_DATA;
}

/* It has as many lines as there are requests, and each is of its own where `fits` is set. */
static enum status compare_terms(const char *output, int count, int fits, const char *terms)
{
    char *made_on = terms_of(output), reason[256];
    enum status status = made_on != NULL ? journal_terms_compare(made_on, strlen(made_on), terms, reason, sizeof reason) : STATUS_OK;

    if (status == STATUS_DATA)
        log_error("%s is complete, but of another job: %s; remove it, or leave --resume away to replace it", output, reason);
    else if (status == STATUS_OK && !fits)
        status = is_of_others(output, count);
    else if (status == STATUS_OK && made_on != NULL)
        log_info("%s is complete (%d results): nothing to do", output, count);
    else if (status == STATUS_OK)
        log_info("%s is complete (%d results): nothing to do; whether prompts and options are those that made it is not known without %s.terms, so "
                 "remove it to have it made anew",
                 output, count, output);
    free(made_on);
    return status;
}

enum status journal_publish_check(const char *output, const struct request_list *requests, const char *terms)
{
    FILE *file = fopen(output, "r");
    size_t room = 0;
    ssize_t length;
    char *line = NULL;
    int count = 0, fits = 1;

    if (file == NULL) {
        log_error("--output %s: %s", output, strerror(errno));
        return STATUS_IO;
    }
    for (; (length = getline(&line, &room, file)) >= 0; count++)
        fits = fits && count < requests->count && result_is_of(&requests->request[count], line, (size_t)length);
    free(line);
    fclose(file);
    return count == requests->count ? compare_terms(output, count, fits, terms) : is_of_others(output, requests->count);
}
