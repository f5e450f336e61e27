/* A byte buffer owns bytes that grow at the end. It is the working space of one encode call (text, tokens, heap), kept between pieces so that a long
 * text allocates a few times and not once a piece. Invariant: a pointer into it is good until it grows. Not for use by two threads at once. */
#ifndef TANDEM_COMMON_TEXT_BYTE_BUFFER_H
#define TANDEM_COMMON_TEXT_BYTE_BUFFER_H

#include "common/base/status.h"
#include <stddef.h>

struct byte_buffer {
    char *data; /* malloc'ed, or NULL while capacity is 0 */
    size_t count, capacity;
};

/* Makes room for `bytes` in all, keeping the content. STATUS_INTERNAL (logged) where memory is not to be had. */
enum status byte_buffer_reserve(struct byte_buffer *buffer, size_t bytes);
enum status byte_buffer_append(struct byte_buffer *buffer, const void *bytes, size_t count);
void byte_buffer_release(struct byte_buffer *buffer);

#endif
