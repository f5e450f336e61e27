#include "common/text/tokenizer_parts.h"

#include "common/base/log.h"
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
