#include "common/text/byte_buffer.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdlib.h>
#include <string.h>

enum status byte_buffer_reserve(struct byte_buffer *buffer, size_t bytes)
{
    size_t capacity = buffer->capacity * 2 > bytes ? buffer->capacity * 2 : bytes;
    char *data;

    if (bytes <= buffer->capacity)
        return STATUS_OK;
    data = realloc(buffer->data, capacity);
    if (data == NULL) {
        log_error("cannot have %zu bytes for a tokenizer", capacity);
        return STATUS_INTERNAL;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return STATUS_OK;
}

enum status byte_buffer_append(struct byte_buffer *buffer, const void *bytes, size_t count)
{
    if (count == 0)
        return STATUS_OK;
    TRY(byte_buffer_reserve(buffer, buffer->count + count));
    memcpy(buffer->data + buffer->count, bytes, count);
    buffer->count += count;
    return STATUS_OK;
}

void byte_buffer_release(struct byte_buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct byte_buffer){0};
}
