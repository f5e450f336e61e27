#include "verifier/result/output.h"

#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "common/base/visible.h"
#include "verifier/result/result.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum status output_open(struct output *output, const char *path, int resume, int plain)
{
    *output = (struct output){.path = path, .plain = plain, .journaled = journal_is_for(path)};
    if (output->journaled)
        return journal_open(&output->journal, path, resume);
    if (!resume)
        return STATUS_OK;
    log_error("--resume: --output %s is no file, expected one, beside which the journal is", path);
    return STATUS_USAGE;
}

/* A pipe is opened as soon as it has a reader. */
static FILE *open_file(const char *path)
{
    const char *before = progress_doing("waiting for a reader of --output");
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");

    (void)progress_doing(before);
    return file;
}

enum status output_begin(struct output *output, const struct journal_job *job)
{
    if (output->journaled)
        return journal_begin(&output->journal, job);
    if (output->path == NULL)
        return STATUS_OK;
    output->count = job->requests->count;
    output->first = output->count > 0 ? (int)job->requests->request[0].index : 0;
    output->line = calloc((size_t)output->count + 1, sizeof *output->line);
    if (output->line == NULL) {
        log_error("no memory for %d results", output->count);
        return STATUS_INTERNAL;
    }
    output->file = open_file(output->path);
    if (output->file == NULL) {
        log_error("--output %s: %s", output->path, strerror(errno));
        return STATUS_IO;
    }
    return STATUS_OK;
}

enum status output_begin_under(struct output *output, const struct journal_terms *terms, const struct journal_job *job)
{
    struct journal_job begun = *job;
    char *text = journal_terms_write(terms);
    enum status status;

    if (text == NULL) {
        log_error("no memory for what the results depend on");
        return STATUS_INTERNAL;
    }
    begun.terms = text;
    status = output_begin(output, &begun);
    free(text);
    return status;
}

static enum status write_failed(const struct output *output)
{
    log_error("cannot write results to %s: %s", output->path, strerror(errno));
    return STATUS_IO;
}

enum status output_finish(struct output *output)
{
    if (output->journaled)
        return journal_finish(&output->journal);
    return output->file == NULL || (fflush(output->file) == 0 && !ferror(output->file)) ? STATUS_OK : write_failed(output);
}

enum status output_close(struct output *output)
{
    enum status status = output->journaled ? journal_close(&output->journal) : STATUS_OK;

    for (int i = 0; output->line != NULL && i < output->count; i++)
        free(output->line[i]);
    free(output->line);
    if (output->file != NULL && output->file != stdout && fclose(output->file) != 0)
        status = write_failed(output);
    *output = (struct output){0};
    return status;
}

int output_has(const struct output *output, int at)
{
    return output->journaled && journal_has(&output->journal, at);
}

/* JSON escapes ASCII's control characters, but not those of C1 (U+0080 to U+009F), which a terminal may obey, too. */
static void write_line(const struct output *output, const char *line)
{
    if (output->is_terminal && output->file == stdout)
        visible_put(line, strlen(line), "", stdout);
    else
        fputs(line, output->file);
    fputc('\n', output->file);
}

/* Whoever reads a pipe may be slower than the job. */
static enum status write_whole_line(const struct output *output, const char *line)
{
    const char *before = progress_doing("writing a result to --output");
    int failed;

    write_line(output, line);
    failed = ferror(output->file) || fflush(output->file) != 0;
    (void)progress_doing(before);
    return failed ? write_failed(output) : STATUS_OK;
}

/* Writes what is next in order, and what waited for it. */
static enum status write_in_order(struct output *output, int at, char *line)
{
    output->line[at] = line;
    for (; output->next < output->count && output->line[output->next] != NULL; output->next++) {
        TRY(write_whole_line(output, output->line[output->next]));
        free(output->line[output->next]);
        output->line[output->next] = NULL;
    }
    return STATUS_OK;
}

enum status output_add(struct output *output, const struct request *request, const struct sequence *sequences)
{
    enum status status;
    char *line;

    if (output->path == NULL)
        return STATUS_OK;
    TRY(result_line(request, sequences, output->plain, output->verdicts, &line));
    if (!output->journaled)
        return write_in_order(output, (int)request->index - output->first, line);
    status = journal_add(&output->journal, request, line);
    free(line);
    return status;
}

enum status output_sync(struct output *output)
{
    return output->journaled ? journal_sync(&output->journal, 0) : STATUS_OK;
}
