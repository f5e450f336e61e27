/* The whole of a journal, as bytes: which results it holds, where it ends, and whether it is damaged. A scan owns its list of entries; the texts lie
 * in the caller's bytes. Pure: no files. A last line that does not hold is what an interrupted write leaves: it is not counted, and the journal goes
 * on in its place. One with lines after it is damage, which nobody repairs here. */
#ifndef TANDEM_VERIFIER_RESULT_JOURNAL_SCAN_H
#define TANDEM_VERIFIER_RESULT_JOURNAL_SCAN_H

#include "common/base/status.h"
#include "verifier/result/journal_line.h"

struct journal_entry {
    uint32_t index;
    uint64_t request;
    uint64_t offset; /* of its line */
    uint64_t bytes;  /* of its line, the newline included */
    const char *text; /* the result, in the bytes that were read */
    size_t length;
};

struct journal_scan {
    struct journal_line header;  /* the last one; its text lies in the bytes that were read. kind is 0 when there is none */
    struct journal_entry *entry; /* [entries] in the order of the file */
    size_t entries;
    uint64_t end;      /* the bytes from here on do not hold */
    uint64_t torn;     /* so many of them are a torn last line */
    const char *wrong; /* what is wrong with the line at `end`, where that is damage; or NULL */
};

/* STATUS_INTERNAL without memory; damage is no failure of the scan. */
enum status journal_scan_open(struct journal_scan *scan, const char *bytes, size_t count);
void journal_scan_close(struct journal_scan *scan);

#endif
