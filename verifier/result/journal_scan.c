#include "verifier/result/journal_scan.h"

#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include <stdlib.h>
#include <string.h>

static enum status add_entry(struct journal_scan *scan, const struct journal_line *line, uint64_t bytes)
{
    if ((scan->entries & (scan->entries - 1)) == 0) { /* a power of two: full */
        struct journal_entry *more = realloc(scan->entry, (scan->entries == 0 ? 1 : 2 * scan->entries) * sizeof *more);

        if (more == NULL) {
            log_error("no memory for the %zu results of a journal", scan->entries);
            return STATUS_INTERNAL;
        }
        scan->entry = more;
    }
    scan->entry[scan->entries++] = (struct journal_entry){
        .index = line->index, .request = line->request, .offset = scan->end, .bytes = bytes, .text = line->text, .length = line->length};
    return STATUS_OK;
}

/* A job that goes on has written the same terms again. */
static int is_of_one_job(const struct journal_line *a, const struct journal_line *b)
{
    return a->results == b->results && a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

/* A line that holds: does it fit those before it? */
static enum status add(struct journal_scan *scan, const struct journal_line *line, uint64_t bytes)
{
    if (line->kind == JOURNAL_LINE_RESULT && scan->header.kind == 0) {
        scan->wrong = "there is no header before it";
        return STATUS_OK;
    }
    if (line->kind == JOURNAL_LINE_RESULT)
        return add_entry(scan, line, bytes);
    if (scan->header.kind != 0 && line->fence <= scan->header.fence)
        scan->wrong = "its fencing number does not rise";
    else if (line->fence == UINT32_MAX)
        scan->wrong = "no fencing number is above its own";
    else if (scan->header.kind != 0 && !is_of_one_job(&scan->header, line))
        scan->wrong = "it is of another job than the header before it";
    else
        scan->header = *line;
    return STATUS_OK;
}

/* May it be the beginning of a journal, or pages that were never written? Anything else is somebody's file. */
static int begins_a_journal(const char *bytes, size_t count)
{
    static const char begin[] = JOURNAL_LINE_BEGINS;
    size_t length = count < sizeof begin - 1 ? count : sizeof begin - 1;

    return bytes[0] == '\0' || memcmp(bytes, begin, length) == 0;
}

/* The last line does not hold: is it what an interrupted write leaves, or damage? */
static enum status add_end(struct journal_scan *scan, const char *bytes, size_t count, const char *wrong)
{
    int hides;

    TRY(journal_line_hides_another(bytes, count, scan->end, &hides));
    if (!hides && (scan->end > 0 || begins_a_journal(bytes, count)))
        scan->torn = count;
    else
        scan->wrong = wrong;
    return STATUS_OK;
}

enum status journal_scan_open(struct journal_scan *out, const char *bytes, size_t count)
{
    struct journal_scan scan = {0};
    struct journal_line line;
    enum status status;

    while (scan.end < count && scan.wrong == NULL && scan.torn == 0) {
        const char *at = bytes + scan.end, *newline = memchr(at, '\n', count - scan.end);
        size_t rest = count - scan.end, length = newline != NULL ? (size_t)(newline - at) + 1 : rest;
        const char *wrong = journal_line_read(at, length, scan.end, &line);

        progress_made("reading the journal");
        if (wrong == NULL)
            TRY_TO(add(&scan, &line, length), release);
        else if (length == rest)
            TRY_TO(add_end(&scan, at, rest, wrong), release);
        else
            scan.wrong = wrong;
        if (scan.wrong == NULL && scan.torn == 0)
            scan.end += length;
    }
    *out = scan;
    return STATUS_OK;
release:
    free(scan.entry);
    return status;
}

void journal_scan_close(struct journal_scan *scan)
{
    free(scan->entry);
    *scan = (struct journal_scan){0};
}
