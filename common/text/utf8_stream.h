/* A stream that holds back an unfinished UTF-8 character, so that what is shown is always whole characters. It owns the few bytes that wait. Bytes
 * that can never become a character come out as U+FFFD. Pure; one thread per stream; never allocates. */
#ifndef TANDEM_COMMON_TEXT_UTF8_STREAM_H
#define TANDEM_COMMON_TEXT_UTF8_STREAM_H

#include <stddef.h>

struct utf8_stream {
    unsigned char held[4];
    int count;
};

void utf8_stream_init(struct utf8_stream *stream);
/* Takes bytes[0 .. count); writes whole characters to out, at most 3 * (count + 3) bytes; returns how many. */
size_t utf8_stream_push(struct utf8_stream *stream, const char *bytes, size_t count, char *out);
/* Ends the stream: an unfinished character comes out as U+FFFD (at most 3 bytes). */
size_t utf8_stream_finish(struct utf8_stream *stream, char *out);
/* Offset of the first byte of text that is not valid UTF-8 (surrogates and overlong forms are not), or `count`. */
size_t utf8_valid(const char *text, size_t count);

#endif
