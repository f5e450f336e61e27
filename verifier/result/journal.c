#include "verifier/result/journal.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "verifier/result/journal_publish.h"
#include "verifier/result/journal_terms.h"
#include "verifier/result/result.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The least time between two syncs; more where they are slow, so that they take at most one part in SYNC_SHARE of the time. */
#define SYNC_NS ((int64_t)100 * 1000000)
#define LONGEST_NS ((int64_t)5 * 1000000000)
enum { SYNC_SHARE = 20 };

int journal_is_for(const char *output)
{
    struct stat found;

    return output != NULL && strcmp(output, "-") != 0 && (lstat(output, &found) != 0 || S_ISREG(found.st_mode));
}

/* What was found: may this job go on from it? */
static enum status look_at_found(struct journal *journal)
{
    const struct journal_scan *scan = &journal->scan;
    const struct journal_file *file = &journal->file;

    if (scan->wrong != NULL && scan->end == 0) {
        log_error("%s is damaged at byte 0: %s. It is no journal, or holds nothing that can be used: move it away, or choose another --output",
                  file->path, scan->wrong);
        return STATUS_IO;
    }
    if (scan->wrong != NULL) {
        log_error("%s is damaged at byte %llu: %s. The %zu results before it hold; to compute again what follows: truncate -s %llu '%s', then "
                  "--resume",
                  file->path, (unsigned long long)scan->end, scan->wrong, scan->entries, (unsigned long long)scan->end, file->path);
        return STATUS_IO;
    }
    if (scan->entries > 0 && !journal->resume) {
        log_error("%s holds %zu results of %u: add --resume to go on, or remove it", file->path, scan->entries, scan->header.results);
        return STATUS_USAGE;
    }
    if (scan->torn > 0)
        log_warn("%s: its last line was cut off at byte %llu (%llu bytes of it): that result is computed again", file->path,
                 (unsigned long long)scan->end, (unsigned long long)scan->torn);
    return STATUS_OK;
}

enum status journal_open(struct journal *journal, const char *output, int resume)
{
    size_t count;

    *journal = (struct journal){.file.fd = -1, .resume = resume};
    TRY(journal_file_claim(&journal->file, output, JOURNAL_FILE_PATIENCE_S));
    TRY(journal_file_read(&journal->file, &journal->found, &count));
    /* An output beside which nothing was begun is a job that is done; whether it is this one is seen when the input is known. Only who has the
     * lock may look: until then another job may put its output there. */
    if (resume && count == 0 && access(output, F_OK) == 0)
        return journal_file_remove(&journal->file);
    TRY(journal_scan_open(&journal->scan, journal->found, count));
    return look_at_found(journal);
}

/* The sum proves that the line is what was written, not that its contents make sense. */
static enum status look_at_result(const struct journal *journal, const struct request *request, const struct journal_entry *entry)
{
    const char *wrong;

    progress_made("looking at the results of the journal");
    TRY(result_look_at(request, entry->text, entry->length, &wrong));
    if (wrong == NULL)
        return STATUS_OK;
    log_error("%s is damaged at byte %llu: what is kept as result %u is %s", journal->file.path, (unsigned long long)entry->offset, entry->index,
              wrong);
    return STATUS_IO;
}

static enum status take_found(struct journal *journal)
{
    const struct request *first = journal->requests->request;

    if (journal->scan.entries > 0 && journal->scan.header.results != (uint32_t)journal->requests->count) {
        log_error("%s is damaged: its header is of %u results, and there are to be %d", journal->file.path, journal->scan.header.results,
                  journal->requests->count);
        return STATUS_IO;
    }
    for (size_t i = 0; i < journal->scan.entries; i++) {
        const struct journal_entry *entry = &journal->scan.entry[i];
        uint32_t at = entry->index - (journal->requests->count > 0 ? first->index : 0);

        if (at >= (uint32_t)journal->requests->count || first[at].digest != entry->request || journal->place[at].bytes > 0) {
            log_error("%s is damaged at byte %llu: result %u is %s", journal->file.path, (unsigned long long)entry->offset, entry->index,
                      at < (uint32_t)journal->requests->count && journal->place[at].bytes > 0 ? "there twice" : "of no request");
            return STATUS_IO;
        }
        TRY(look_at_result(journal, &first[at], entry));
        journal->place[at] = (struct journal_place){.offset = entry->offset, .bytes = entry->bytes};
        journal->held++;
    }
    journal->resumed = journal->held;
    return STATUS_OK;
}

static enum status add_line(struct journal *journal, const struct journal_line *line)
{
    size_t count;
    char *bytes = journal_line_write(line, journal->file.end, &count);
    enum status status;

    if (bytes == NULL) {
        log_error("no memory for a line of %s", journal->file.path);
        return STATUS_INTERNAL;
    }
    status = journal_file_append(&journal->file, bytes, count);
    free(bytes);
    journal->failed |= status != STATUS_OK;
    journal->dirty |= status == STATUS_OK;
    return status;
}

static enum status add_header(struct journal *journal, const struct journal_job *job)
{
    struct journal_line line = {.kind = JOURNAL_LINE_HEADER,
                                .fence = journal->scan.header.fence + 1,
                                .run = job->run,
                                .pid = (uint32_t)getpid(),
                                .results = (uint32_t)job->requests->count,
                                .text = job->terms,
                                .length = strlen(job->terms)};

    /* the terms are written as the header before has them, so that one comparison shows that all jobs had the same */
    if (journal->scan.entries > 0) {
        line.text = journal->scan.header.text;
        line.length = journal->scan.header.length;
    }
    snprintf(line.host, sizeof line.host, "%s", job->host);
    TRY(add_line(journal, &line));
    TRY(journal_sync(journal, 1));
    return journal_file_sync_folder(journal->file.path);
}

enum status journal_begin(struct journal *journal, const struct journal_job *job)
{
    char reason[256];
    int empty = journal->scan.entries == 0;
    enum status status = STATUS_OK;

    journal->requests = job->requests;
    journal->place = calloc((size_t)job->requests->count + 1, sizeof *journal->place);
    journal->terms = strdup(job->terms);
    if (journal->place == NULL || journal->terms == NULL) {
        log_error("no memory for %d results", job->requests->count);
        return STATUS_INTERNAL;
    }
    if (journal->file.fd < 0) {
        TRY(journal_publish_check(journal->file.output, job->requests, job->terms));
        journal->is_done = 1;
        return STATUS_OK;
    }
    if (!empty)
        status = journal_terms_compare(journal->scan.header.text, journal->scan.header.length, job->terms, reason, sizeof reason);
    if (status == STATUS_DATA)
        log_error("%s holds results of another job: %s; expected the same prompts and options to go on, or another --output to begin anew",
                  journal->file.path, reason);
    TRY(status);
    TRY(take_found(journal));
    TRY(journal_file_cut(&journal->file, empty ? 0 : journal->scan.end));
    TRY(add_header(journal, job));
    if (journal->resume)
        log_info("%d of %d results are in %s", journal->held, job->requests->count, journal->file.path);
    journal_scan_close(&journal->scan);
    free(journal->found);
    journal->found = NULL;
    return STATUS_OK;
}

int journal_has(const struct journal *journal, int at)
{
    return journal->is_done || journal->place[at].bytes > 0;
}

enum status journal_add(struct journal *journal, const struct request *request, const char *text)
{
    struct journal_place *place = &journal->place[request - journal->requests->request];
    struct journal_line line = {
        .kind = JOURNAL_LINE_RESULT, .index = request->index, .request = request->digest, .text = text, .length = strlen(text)};
    uint64_t offset = journal->file.end;

    TRY(add_line(journal, &line));
    *place = (struct journal_place){.offset = offset, .bytes = journal->file.end - offset};
    journal->held++;
    return journal_sync(journal, 0);
}

static int is_due(const struct journal *journal, int64_t now_ns)
{
    int64_t least = SYNC_SHARE * journal->sync_ns;

    least = least < SYNC_NS ? SYNC_NS : least > LONGEST_NS ? LONGEST_NS : least;
    return now_ns - journal->synced_ns >= least;
}

enum status journal_sync(struct journal *journal, int now)
{
    int64_t started = clock_ns();

    if (!journal->dirty || (!now && !is_due(journal, started)))
        return STATUS_OK;
    journal->dirty = 0; /* also where it fails: the kernel may have dropped the bytes, and a second sync that succeeds would prove nothing */
    if (journal_file_sync(&journal->file) != STATUS_OK) {
        journal->failed = 1;
        return STATUS_IO;
    }
    journal->synced_ns = clock_ns();
    journal->sync_ns = journal->synced_ns - started;
    return STATUS_OK;
}

enum status journal_finish(struct journal *journal)
{
    if (journal->is_done)
        return STATUS_OK;
    TRY(journal_sync(journal, 1));
    if (journal->failed || journal->held < journal->requests->count)
        return STATUS_OK;
    TRY(journal_publish_write(&journal->file, journal->terms, journal->place, journal->requests->count));
    if (unlink(journal->file.path) != 0) {
        log_error("cannot remove %s: %s; %s is complete", journal->file.path, strerror(errno), journal->file.output);
        return STATUS_IO;
    }
    return STATUS_OK;
}

enum status journal_close(struct journal *journal)
{
    enum status status = journal_sync(journal, 1);
    struct stat found;

    if (journal->file.fd >= 0 && fstat(journal->file.fd, &found) == 0 && found.st_size == 0 && found.st_nlink > 0)
        unlink(journal->file.path);
    journal_file_close(&journal->file);
    journal_scan_close(&journal->scan);
    free(journal->found);
    free(journal->place);
    free(journal->terms);
    *journal = (struct journal){.file.fd = -1};
    return status;
}
