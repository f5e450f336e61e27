#include "common/text/nfc.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

int nfc_is_plain(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] >= 0xCC) /* U+0300 is CC 80 */
            return 0;
    return 1;
}

static int class_of(utf8proc_int32_t code)
{
    return code < 0x300 ? 0 : utf8proc_get_property(code)->combining_class;
}

static enum status decompose(const char *text, size_t length, struct byte_buffer *codes)
{
    enum { ONE = 32 }; /* the longest decomposition has 4 codes */

    for (size_t at = 0; at < length;) {
        utf8proc_int32_t code;
        utf8proc_ssize_t count;

        at += (size_t)utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(length - at), &code);
        TRY(byte_buffer_reserve(codes, codes->count + ONE * sizeof code));
        count = utf8proc_decompose_char(code, (utf8proc_int32_t *)(void *)(codes->data + codes->count), ONE,
                                        UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, NULL);
        if (count < 0 || count > ONE) {
            log_error("internal: cannot decompose U+%04X", (unsigned)code);
            return STATUS_INTERNAL;
        }
        codes->count += (size_t)count * sizeof code;
    }
    return STATUS_OK;
}

/* Stable sort of codes[0 .. count) by combining class, bottom up; `other` has the same room. */
static void sort_marks(utf8proc_int32_t *codes, utf8proc_int32_t *other, size_t count)
{
    utf8proc_int32_t *from = codes, *to = other;

    for (size_t width = 1; width < count; width *= 2) {
        utf8proc_int32_t *swap = from;

        for (size_t start = 0; start < count; start += 2 * width) {
            size_t middle = start + width < count ? start + width : count, stop = middle + width < count ? middle + width : count;
            size_t left = start, right = middle;

            for (size_t i = start; i < stop; i++) {
                int take_left = left < middle && (right >= stop || class_of(from[left]) <= class_of(from[right]));

                to[i] = take_left ? from[left++] : from[right++];
            }
        }
        from = to;
        to = swap;
    }
    if (from != codes)
        memcpy(codes, from, count * sizeof *codes);
}

/* Puts each run of marks into canonical order. */
static enum status order_marks(struct byte_buffer *codes)
{
    utf8proc_int32_t *code = (utf8proc_int32_t *)(void *)codes->data;
    size_t count = codes->count / sizeof *code, stop;
    struct byte_buffer other = {0};
    enum status status = STATUS_OK;

    for (size_t start = 0; start < count; start = stop) {
        for (stop = start; stop < count && class_of(code[stop]) != 0;)
            stop++;
        if (stop - start > 1) {
            TRY_TO(byte_buffer_reserve(&other, (stop - start) * sizeof *code), release_other);
            sort_marks(code + start, (utf8proc_int32_t *)(void *)other.data, stop - start);
        }
        if (stop == start)
            stop++;
    }
release_other:
    byte_buffer_release(&other);
    return status;
}

static enum status compose(struct byte_buffer *codes, struct byte_buffer *out)
{
    utf8proc_int32_t *code = (utf8proc_int32_t *)(void *)codes->data;
    utf8proc_ssize_t count =
        utf8proc_normalize_utf32(code, (utf8proc_ssize_t)(codes->count / sizeof *code), UTF8PROC_STABLE | UTF8PROC_COMPOSE);

    for (utf8proc_ssize_t i = 0; i < count; i++) {
        utf8proc_uint8_t bytes[4];
        utf8proc_ssize_t size = utf8proc_encode_char(code[i], bytes);

        TRY(byte_buffer_append(out, bytes, (size_t)size));
    }
    return STATUS_OK;
}

enum status nfc_append(const char *text, size_t length, struct byte_buffer *out)
{
    struct byte_buffer codes = {0};
    enum status status;

    if (length == 0)
        return STATUS_OK;
    TRY_TO(decompose(text, length, &codes), release_codes);
    TRY_TO(order_marks(&codes), release_codes);
    status = compose(&codes, out);
release_codes:
    byte_buffer_release(&codes);
    return status;
}
