#include "common/text/utf8_stream.h"

#include <stdint.h>
#include <string.h>

enum character { CHARACTER_BAD, CHARACTER_PARTIAL, CHARACTER_WHOLE };

static const char replacement[3] = {(char)0xEF, (char)0xBF, (char)0xBD}; /* U+FFFD */

/* What bytes[0 .. count) are the start of (Unicode 15, table 3-7). Only the second byte has a range that depends on the first:
 * it rules out overlong forms, surrogates and what lies above U+10FFFF. */
static enum character character_of(const unsigned char *bytes, size_t count)
{
    unsigned first = bytes[0], low = 0x80, high = 0xBF;
    size_t need = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;

    if ((first >= 0x80 && first < 0xC2) || first > 0xF4)
        return CHARACTER_BAD;
    if (first == 0xE0)
        low = 0xA0;
    else if (first == 0xED)
        high = 0x9F;
    else if (first == 0xF0)
        low = 0x90;
    else if (first == 0xF4)
        high = 0x8F;
    for (size_t i = 1; i < count && i < need; i++, low = 0x80, high = 0xBF)
        if (bytes[i] < low || bytes[i] > high)
            return CHARACTER_BAD;
    return count < need ? CHARACTER_PARTIAL : CHARACTER_WHOLE;
}

void utf8_stream_init(struct utf8_stream *stream)
{
    *stream = (struct utf8_stream){0};
}

/* Takes one byte. A byte that breaks a character off ends it as one U+FFFD and begins anew. */
static size_t take(struct utf8_stream *stream, unsigned char byte, char *out)
{
    size_t written = 0;
    enum character is;

    stream->held[stream->count++] = byte;
    is = character_of(stream->held, (size_t)stream->count);
    if (is == CHARACTER_BAD && stream->count > 1) {
        memcpy(out, replacement, sizeof replacement);
        written = sizeof replacement;
        stream->held[0] = byte;
        stream->count = 1;
        is = character_of(stream->held, 1);
    }
    if (is == CHARACTER_BAD) {
        memcpy(out + written, replacement, sizeof replacement);
        written += sizeof replacement;
        stream->count = 0;
    } else if (is == CHARACTER_WHOLE) {
        memcpy(out + written, stream->held, (size_t)stream->count);
        written += (size_t)stream->count;
        stream->count = 0;
    }
    return written;
}

size_t utf8_stream_push(struct utf8_stream *stream, const char *bytes, size_t count, char *out)
{
    size_t written = 0;

    for (size_t i = 0; i < count; i++)
        written += take(stream, (unsigned char)bytes[i], out + written);
    return written;
}

size_t utf8_stream_finish(struct utf8_stream *stream, char *out)
{
    if (stream->count == 0)
        return 0;
    stream->count = 0;
    memcpy(out, replacement, sizeof replacement);
    return sizeof replacement;
}

size_t utf8_valid(const char *text, size_t count)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t at = 0;

    while (at < count) {
        uint64_t word;

        if (count - at >= sizeof word) { /* most text is ASCII: eight at a time */
            memcpy(&word, bytes + at, sizeof word);
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                at += sizeof word;
                continue;
            }
        }
        if (bytes[at] < 0x80) {
            at++;
            continue;
        }
        if (character_of(bytes + at, count - at) != CHARACTER_WHOLE)
            return at;
        at += bytes[at] < 0xE0 ? 2 : bytes[at] < 0xF0 ? 3 : 4;
    }
    return count;
}
