#include "common/text/tokenizer_parts.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tokenizer *tokenizer_parts_new(void)
{
    struct tokenizer *tokenizer = calloc(1, sizeof *tokenizer);

    if (tokenizer == NULL) {
        log_error("cannot have %zu bytes for a tokenizer", sizeof *tokenizer);
        return NULL;
    }
    tokenizer->bpe.unknown = -1;
    memset(tokenizer->bpe.byte_token, -1, sizeof tokenizer->bpe.byte_token);
    return tokenizer;
}

void tokenizer_parts_finish(struct tokenizer *tokenizer)
{
    bpe_index(&tokenizer->bpe);
    tokenizer->digest = piece_table_digest(&tokenizer->bpe.pieces);
}

uint32_t tokenizer_parts_rank(uint32_t bits)
{
    if (bits << 1 == 0) /* 0 and -0 are equal */
        bits = 0;
    return bits >> 31 ? bits : ~bits & 0x7FFFFFFF;
}

enum status tokenizer_parts_derive_merges(struct tokenizer *tokenizer, const uint32_t *ranks)
{
    struct bpe *bpe = &tokenizer->bpe;

    TRY(merge_table_init(&bpe->merges, (size_t)bpe->pieces.size * 2));
    for (int id = 0; id < bpe->pieces.size; id++) {
        const struct piece *piece = &bpe->pieces.pieces[id];
        const char *key = bpe->pieces.bytes.data + piece->key;

        if (!(piece->flags & PIECE_KEYED) || piece_table_find_key(&bpe->pieces, key, piece->key_length) != id)
            continue;
        for (uint32_t cut = 1; cut < piece->key_length; cut++) {
            int32_t left = piece_table_find_key(&bpe->pieces, key, cut);
            int32_t right = left < 0 ? -1 : piece_table_find_key(&bpe->pieces, key + cut, piece->key_length - cut);

            if (right >= 0)
                TRY(merge_table_put(&bpe->merges, left, right, ranks[id], id));
        }
    }
    return STATUS_OK;
}

int tokenizer_parts_byte(const char *text, size_t length)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *high, *low;

    if (length != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    high = memchr(digits, text[3], 16);
    low = memchr(digits, text[4], 16);
    return high == NULL || low == NULL ? -1 : (int)((high - digits) * 16 + (low - digits));
}

void tokenizer_parts_free(struct tokenizer *tokenizer)
{
    if (tokenizer == NULL)
        return;
    added_tokens_release(&tokenizer->as_written);
    added_tokens_release(&tokenizer->as_normalized);
    pretokenizer_release(&tokenizer->pretokenizer);
    bpe_release(&tokenizer->bpe);
    free(tokenizer);
}

void tokenizer_parts_warn_of_bytes(const struct tokenizer *tokenizer, const char *file)
{
    enum { NAMED = 8 };
    char names[3 * NAMED + 1];
    int missing = 0;

    for (int byte = 0; byte < 256; byte++)
        if ((byte < 0xC0 || (byte > 0xC1 && byte < 0xF5)) && tokenizer->bpe.byte_token[byte] < 0) {
            if (missing < NAMED)
                snprintf(names + 3 * missing, 4, " %02x", (unsigned)byte);
            missing++;
        }
    if (missing > 0 && log_shows(LOG_DEBUG)) /* it matters only for texts with such bytes, which are rare */
        log_file_warning("%s: %d bytes have no token, text loses them:%s%s", file, missing, names, missing > NAMED ? " ..." : "");
}
