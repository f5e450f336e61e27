/* What a tokenizer is made of, for the readers that fill it in (tokenizer_json, tokenizer_gguf, tokenizer_bin) and the code that uses it
 * (tokenizer.c). Nobody outside this folder includes it. A text goes: added tokens as written, normalizer, added tokens as
 * normalized, pretokenizer, model; then the template's tokens stand around the result. */
#ifndef TANDEM_COMMON_TEXT_TOKENIZER_PARTS_H
#define TANDEM_COMMON_TEXT_TOKENIZER_PARTS_H

#include "common/text/added_tokens.h"
#include "common/text/bpe.h"
#include "common/text/normalizer.h"
#include "common/text/pretokenizer.h"
#include "common/text/tokenizer.h"

enum { TOKENIZER_TEMPLATE = 16, TOKENIZER_FILE_BYTES = 1 << 28, TOKENIZER_TEXT_BYTES = 1 << 28 };

struct tokenizer_template {
    int32_t tokens[TOKENIZER_TEMPLATE];
    int count;
};

struct tokenizer {
    struct added_tokens as_written, as_normalized;
    struct normalizer normalizer;
    struct pretokenizer pretokenizer;
    struct bpe bpe;
    struct tokenizer_template before, after; /* added for TOKENIZER_ADD_SPECIAL */
    int drops_first_space;                   /* the first piece of a text loses its leading space */
    uint64_t digest;
};

/* A tokenizer with nothing in it, or NULL (logged). */
struct tokenizer *tokenizer_parts_new(void);
/* NULL is allowed, and so is one that is not complete. */
void tokenizer_parts_free(struct tokenizer *tokenizer);
/* Indexes and digests; to be called when pieces and merges are complete. */
void tokenizer_parts_finish(struct tokenizer *tokenizer);
/* A score's bits (a finite float) as a rank: the highest score has the lowest. */
uint32_t tokenizer_parts_rank(uint32_t bits);
/* SentencePiece's merges, which no file stores: every cut of a keyed piece into two pieces is one, of the rank of the result. The pieces are
 * indexed.  ranks: [pieces.size] */
enum status tokenizer_parts_derive_merges(struct tokenizer *tokenizer, const uint32_t *ranks);
/* The byte that a piece named <0xNN> stands for, or -1. */
int tokenizer_parts_byte(const char *text, size_t length);
/* Of bytes as pieces: warns where UTF-8 has some that no token stands for, by name. */
void tokenizer_parts_warn_of_bytes(const struct tokenizer *tokenizer, const char *file);

#endif
