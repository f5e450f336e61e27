/* Any bytes as a journal: what the scan says of them is consistent, a line that holds is one that would be written, and the rest is torn or
 * damaged, never read. Where the bytes begin with a NUL, what follows is the texts of lines, one to a line, which are written as a journal
 * first: so the fuzzer reaches what lies behind the sums. */
#include "verifier/result/journal_scan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_line(const char *bytes, size_t count, uint64_t offset)
{
    struct journal_line line;
    size_t again;
    char *written;

    if (journal_line_read(bytes, count, offset, &line) != NULL)
        return;
    require(line.text >= bytes && line.text + line.length <= bytes + count);
    written = journal_line_write(&line, offset, &again);
    require(written != NULL && again == count && memcmp(written, bytes, count) == 0);
    require(journal_line_read(bytes, count, offset + 1, &line) != NULL); /* it holds in its place alone */
    free(written);
}

static void check(const char *bytes, size_t count)
{
    struct journal_scan scan;

    require(journal_scan_open(&scan, bytes, count) == STATUS_OK);
    require(scan.end <= count && scan.torn <= count - scan.end);
    require(scan.wrong != NULL || scan.end + scan.torn == count);
    for (size_t i = 0; i < scan.entries; i++) {
        const struct journal_entry *entry = &scan.entry[i];

        require(entry->offset + entry->bytes <= scan.end && (i == 0 || entry->offset >= scan.entry[i - 1].offset + scan.entry[i - 1].bytes));
        check_line(bytes + entry->offset, entry->bytes, entry->offset);
    }
    if (scan.header.kind != 0)
        require(scan.header.text >= bytes && scan.header.text + scan.header.length <= bytes + count);
    journal_scan_close(&scan);
}

/* Writes texts as a journal: the byte in front of each says what kind of line it is, its number, and whether its last byte is lost. */
static size_t write_journal(const uint8_t *bytes, size_t size, char *to, size_t room)
{
    size_t used = 0;

    for (size_t at = 0; at < size;) {
        const uint8_t *end = memchr(bytes + at, '\n', size - at);
        size_t length = end != NULL ? (size_t)(end - bytes) - at : size - at, count;
        struct journal_line line = {.kind = bytes[at] % 2 ? JOURNAL_LINE_HEADER : JOURNAL_LINE_RESULT,
                                    .fence = bytes[at] / 4,
                                    .index = bytes[at],
                                    .host = "host",
                                    .results = 9,
                                    .text = (const char *)bytes + at + 1,
                                    .length = length > 0 ? length - 1 : 0};
        char *written = journal_line_write(&line, used, &count);

        require(written != NULL);
        count -= bytes[at] % 4 == 2;
        if (count > room - used)
            count = room - used;
        memcpy(to + used, written, count);
        used += count;
        free(written);
        at += length + 1;
    }
    return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    enum { ROOM = 1 << 16 };
    static char journal[ROOM];

    if (size > 0 && bytes[0] == 0) {
        size_t count = write_journal(bytes + 1, size - 1, journal, sizeof journal);
        char *exact = malloc(count + 1);

        require(exact != NULL);
        memcpy(exact, journal, count);
        check(exact, count);
        free(exact);
    } else {
        check((const char *)bytes, size);
    }
    return 0;
}
