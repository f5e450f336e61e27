#include "common/text/normalizer.h"

#include "common/base/try.h"
#include "common/text/nfc.h"
#include <string.h>

enum status normalizer_add(struct normalizer *normalizer, enum normalizer_kind kind, const char *from, size_t from_length, const char *to,
                           size_t to_length)
{
    struct normalizer_step *step = &normalizer->steps[normalizer->count];

    if (normalizer->count == NORMALIZER_STEPS || from_length > NORMALIZER_BYTES || to_length > NORMALIZER_BYTES)
        return STATUS_DATA;
    *step = (struct normalizer_step){.kind = kind, .from_length = from_length, .to_length = to_length};
    memcpy(step->from, from, from_length);
    memcpy(step->to, to, to_length);
    normalizer->count++;
    return STATUS_OK;
}

static enum status replace(const struct normalizer_step *step, const char *text, size_t length, size_t most, struct byte_buffer *out)
{
    const char *end = text + length, *found;

    while ((found = memmem(text, (size_t)(end - text), step->from, step->from_length)) != NULL) {
        TRY(byte_buffer_append(out, text, (size_t)(found - text)));
        TRY(byte_buffer_append(out, step->to, step->to_length));
        text = found + step->from_length;
        if (out->count > most)
            break;
    }
    return byte_buffer_append(out, text, (size_t)(end - text));
}

static enum status run_step(const struct normalizer_step *step, const char *text, size_t length, size_t most, struct byte_buffer *out)
{
    out->count = 0;
    switch (step->kind) {
    case NORMALIZER_NFC:
        return nfc_append(text, length, out);
    case NORMALIZER_PREPEND:
        TRY(byte_buffer_append(out, step->to, step->to_length));
        return byte_buffer_append(out, text, length);
    case NORMALIZER_REPLACE:
        return replace(step, text, length, most, out);
    }
    return STATUS_INTERNAL;
}

enum status normalizer_run(const struct normalizer *normalizer, struct byte_buffer buffers[2], const char **text, size_t *length)
{
    size_t most = 16 * *length + NORMALIZER_STEPS * NORMALIZER_BYTES;
    int turn = 0;

    for (int i = 0; i<normalizer->count && * length> 0; i++) {
        const struct normalizer_step *step = &normalizer->steps[i];

        if (step->kind == NORMALIZER_NFC && nfc_is_plain(*text, *length))
            continue;
        TRY(run_step(step, *text, *length, most, &buffers[turn]));
        *text = buffers[turn].data;
        *length = buffers[turn].count;
        turn = !turn;
        if (*length > most)
            return STATUS_DATA;
    }
    return STATUS_OK;
}
