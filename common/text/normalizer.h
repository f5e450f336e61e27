/* A normalizer rewrites a text before it is split: NFC, a prefix, a literal replacement. It also serves decoders, whose Replace is the same. It is
 * plain data, immutable after open; the buffers that it writes to are the caller's. Invariant: what it writes is bounded by a multiple of what it
 * reads, whatever the file says. */
#ifndef TANDEM_COMMON_TEXT_NORMALIZER_H
#define TANDEM_COMMON_TEXT_NORMALIZER_H

#include "common/base/status.h"
#include "common/text/byte_buffer.h"
#include <stddef.h>

enum { NORMALIZER_STEPS = 8, NORMALIZER_BYTES = 64 /* of a prefix or of either side of a replacement */ };
enum normalizer_kind { NORMALIZER_NFC, NORMALIZER_PREPEND, NORMALIZER_REPLACE };

struct normalizer_step {
    enum normalizer_kind kind;
    char from[NORMALIZER_BYTES], to[NORMALIZER_BYTES];
    size_t from_length, to_length;
};

struct normalizer {
    struct normalizer_step steps[NORMALIZER_STEPS];
    int count;
};

/* Adds a step; from is not empty for REPLACE. STATUS_DATA (not logged) when there are too many or a text is too long. */
enum status normalizer_add(struct normalizer *normalizer, enum normalizer_kind kind, const char *from, size_t from_length, const char *to,
                           size_t to_length);
/* Rewrites *text, *length: they then point into one of the two buffers, or are what they were when nothing changes. An empty text
 * stays empty. STATUS_DATA (not logged) for a result over 16 times the text, STATUS_INTERNAL (logged). */
enum status normalizer_run(const struct normalizer *normalizer, struct byte_buffer buffers[2], const char **text, size_t *length);

#endif
