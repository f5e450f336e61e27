/* One line of a journal: a header, or the result of a request. Pure: bytes to a line and back, no files, and it owns nothing that it was given.
 * Invariant: a line is JSON, written in one form only, and ends with a sum (XXH3) over what is before it, seeded with the place in the file where the
 * line begins. So a line that was changed, moved, repeated, or follows one that is gone does not hold.
 *
 *   {"tandem_journal":1,"fence":1,"run":"HEX","pid":7,"host":"node1","results":60,"terms":{...},"sum":"HEX"}
 *   {"index":0,"request":"HEX","result":{...},"sum":"HEX"}
 */
#ifndef TANDEM_VERIFIER_RESULT_JOURNAL_LINE_H
#define TANDEM_VERIFIER_RESULT_JOURNAL_LINE_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

enum { JOURNAL_LINE_VERSION = 1, JOURNAL_LINE_HOST = 64 };
#define JOURNAL_LINE_BEGINS "{\"tandem_journal\":" /* a header, and so a journal */
enum journal_line_kind { JOURNAL_LINE_HEADER = 1, JOURNAL_LINE_RESULT };

struct journal_line {
    enum journal_line_kind kind;
    /* A header: one for each start of a job. */
    uint32_t fence;               /* rises from header to header: who writes must have the highest */
    uint64_t run;                 /* of the job that wrote it */
    uint32_t pid;                 /* of its lead */
    char host[JOURNAL_LINE_HOST]; /* of its lead */
    uint32_t results;             /* how many there are when all is done */
    /* A result. */
    uint32_t index;   /* of its request */
    uint64_t request; /* digest of the request's line of input */
    /* Both: the terms of the job, or the result's line of output. A JSON object; lies in the bytes that were read. */
    const char *text;
    size_t length;
};

/* The line in bytes[0 .. count), the newline included, which begins at `offset` of its file. NULL and `*line` filled, or a static text that
 * says what is wrong. */
const char *journal_line_read(const char *bytes, size_t count, uint64_t offset, struct journal_line *line);

/* *hides: is there a whole line in bytes[0 .. count) that was followed by something else than its newline? Then what looks like a torn line is
 * damage. The time grows with count, whatever the bytes are. STATUS_INTERNAL without memory. */
enum status journal_line_hides_another(const char *bytes, size_t count, uint64_t offset, int *hides);

/* The line for `offset`, newline included, and its bytes in *count; to be freed. NULL without memory. Characters of the host's name that
 * are not letters, digits, '.', '-' or '_' become '_'. */
char *journal_line_write(const struct journal_line *line, uint64_t offset, size_t *count);

#endif
