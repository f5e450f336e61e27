/* Unicode normalization form C (UAX 15). The characters' data are utf8proc's; the order of combining marks is made here by a merge sort, since
 * utf8proc's own takes quadratic time on long runs of marks, which a prompt may hold. Owns nothing; any thread may call. */
#ifndef TANDEM_COMMON_TEXT_NFC_H
#define TANDEM_COMMON_TEXT_NFC_H

#include "common/base/status.h"
#include "common/text/byte_buffer.h"
#include <stddef.h>

/* True when no character of the (valid) text can change: all are below U+0300. */
int nfc_is_plain(const char *text, size_t length);
/* Appends the normal form of text[0 .. length), valid UTF-8, to `out`. STATUS_INTERNAL (logged). */
enum status nfc_append(const char *text, size_t length, struct byte_buffer *out);

#endif
