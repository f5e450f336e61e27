#include "verifier/result/journal_line.h"

#include "common/base/digest.h"
#include "common/base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ,"sum":"0123456789abcdef"} ends every line. */
#define SUM_BEGINS ",\"sum\":\""
enum { HEX = 16, SUM_AT = sizeof SUM_BEGINS - 1, SEAL = SUM_AT + HEX + 2 };

/* What is left to read of a line. */
struct reading {
    const char *at, *end;
    int failed;
};

static void take_text(struct reading *reading, const char *text)
{
    size_t length = strlen(text);

    if ((size_t)(reading->end - reading->at) < length || memcmp(reading->at, text, length) != 0)
        reading->failed = 1;
    else
        reading->at += length;
}

static uint32_t take_number(struct reading *reading)
{
    uint64_t value = 0;
    const char *start = reading->at;

    for (; reading->at < reading->end && *reading->at >= '0' && *reading->at <= '9' && value <= UINT32_MAX; reading->at++)
        value = 10 * value + (uint64_t)(*reading->at - '0');
    reading->failed |= reading->at == start || value > UINT32_MAX || (*start == '0' && reading->at > start + 1);
    return (uint32_t)value;
}

static uint64_t take_hex(struct reading *reading)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t value = 0;

    for (int i = 0; i < HEX && !reading->failed; i++) {
        const char *digit = reading->at < reading->end && *reading->at != '\0' ? strchr(digits, *reading->at) : NULL;

        reading->failed = digit == NULL;
        value = value << 4 | (uint64_t)(digit != NULL ? digit - digits : 0);
        reading->at++;
    }
    return value;
}

static int is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

static void take_host(struct reading *reading, char host[JOURNAL_LINE_HOST])
{
    size_t length = 0;

    for (; reading->at < reading->end && is_plain(*reading->at) && length < JOURNAL_LINE_HOST - 1; reading->at++)
        host[length++] = *reading->at;
    host[length] = '\0';
}

static void take_rest(struct reading *reading, struct journal_line *line)
{
    line->text = reading->at;
    line->length = (size_t)(reading->end - reading->at);
    reading->failed |= line->length < 2 || line->text[0] != '{' || line->text[line->length - 1] != '}';
}

/* Is the text at[0 .. SEAL) a seal? Then *sum is what it says. */
static int is_seal(const char *at, uint64_t *sum)
{
    struct reading seal = {.at = at, .end = at + SEAL};

    take_text(&seal, SUM_BEGINS);
    *sum = take_hex(&seal);
    take_text(&seal, "\"}");
    return !seal.failed;
}

/* Do bytes[0 .. count) end with their own sum? */
static int holds(const char *bytes, size_t count, uint64_t offset)
{
    uint64_t sum;

    return count >= SEAL && is_seal(bytes + count - SEAL, &sum) && sum == digest_line(bytes, count - SEAL, offset);
}

static const char *read_header(struct reading *reading, struct journal_line *line)
{
    uint32_t version = take_number(reading);

    if (!reading->failed && version != JOURNAL_LINE_VERSION)
        return "it is a journal of another version of tandem";
    take_text(reading, ",\"fence\":");
    line->fence = take_number(reading);
    take_text(reading, ",\"run\":\"");
    line->run = take_hex(reading);
    take_text(reading, "\",\"pid\":");
    line->pid = take_number(reading);
    take_text(reading, ",\"host\":\"");
    take_host(reading, line->host);
    take_text(reading, "\",\"results\":");
    line->results = take_number(reading);
    take_text(reading, ",\"terms\":");
    take_rest(reading, line);
    return reading->failed ? "its header is not one of a journal" : NULL;
}

static const char *read_result(struct reading *reading, struct journal_line *line)
{
    take_text(reading, "{\"index\":");
    line->index = take_number(reading);
    take_text(reading, ",\"request\":\"");
    line->request = take_hex(reading);
    take_text(reading, "\",\"result\":");
    take_rest(reading, line);
    return reading->failed ? "it is neither a header nor a result" : NULL;
}

const char *journal_line_read(const char *bytes, size_t count, uint64_t offset, struct journal_line *line)
{
    static const char header[] = JOURNAL_LINE_BEGINS;
    const size_t length = sizeof header - 1;
    struct journal_line read = {.kind = JOURNAL_LINE_RESULT};
    struct reading reading;
    const char *wrong;

    if (count == 0 || bytes[count - 1] != '\n')
        return "its end is missing";
    if (!holds(bytes, count - 1, offset))
        return "its checksum is wrong";
    reading = (struct reading){.at = bytes, .end = bytes + count - 1 - SEAL};
    if ((size_t)(reading.end - reading.at) > length && memcmp(bytes, header, length) == 0) {
        read.kind = JOURNAL_LINE_HEADER;
        reading.at += length;
        wrong = read_header(&reading, &read);
    } else {
        wrong = read_result(&reading, &read);
    }
    if (wrong == NULL)
        *line = read;
    return wrong;
}

/* Whoever forged the bytes may have put a seal everywhere, so the sums of what is before them are made in one pass. */
enum status journal_line_hides_another(const char *bytes, size_t count, uint64_t offset, int *hides)
{
    struct digest_growing *growing = digest_growing_open(offset);
    size_t summed = 0;
    uint64_t sum;
    int found = 0;

    if (growing == NULL) {
        log_error("no memory to look at the last line of a journal");
        return STATUS_INTERNAL;
    }
    for (size_t at = 0; at + SEAL < count && !found; at++)
        if (bytes[at] == ',' && is_seal(bytes + at, &sum)) {
            found = sum == digest_growing_add(growing, bytes + summed, at - summed);
            summed = at;
        }
    digest_growing_close(growing);
    *hides = found;
    return STATUS_OK;
}

char *journal_line_write(const struct journal_line *line, uint64_t offset, size_t *count)
{
    char host[JOURNAL_LINE_HOST], seal[SEAL + 2], *bytes;
    int length;

    snprintf(host, sizeof host, "%s", line->host);
    for (char *c = host; *c != '\0'; c++)
        *c = is_plain(*c) ? *c : '_';
    if (line->kind == JOURNAL_LINE_HEADER)
        length =
            asprintf(&bytes, JOURNAL_LINE_BEGINS "%d,\"fence\":%u,\"run\":\"%016llx\",\"pid\":%u,\"host\":\"%s\",\"results\":%u,\"terms\":%.*s%*s\n",
                     JOURNAL_LINE_VERSION, line->fence, (unsigned long long)line->run, line->pid, host, line->results, (int)line->length, line->text,
                     SEAL, "");
    else
        length = asprintf(&bytes, "{\"index\":%u,\"request\":\"%016llx\",\"result\":%.*s%*s\n", line->index, (unsigned long long)line->request,
                          (int)line->length, line->text, SEAL, "");
    if (length < 0)
        return NULL;
    *count = (size_t)length;
    snprintf(seal, sizeof seal, SUM_BEGINS "%016llx\"}", (unsigned long long)digest_line(bytes, *count - 1 - SEAL, offset));
    memcpy(bytes + *count - 1 - SEAL, seal, SEAL);
    return bytes;
}
