/* Counts the n-grams of texts and makes a table of them. It owns the tokens that were added. One thread; local. Memory: 12 bytes for each token and what
 * the table has, some 20 bytes for each different n-gram of each order. */
#ifndef TANDEM_COMMON_NGRAM_NGRAM_COUNT_H
#define TANDEM_COMMON_NGRAM_NGRAM_COUNT_H

#include "common/ngram/ngram_table.h"
#include <stdio.h>

struct ngram_texts {
    int32_t *token; /* [count], with one that is none in front of each text */
    size_t count, room;
    size_t tokens; /* without those */
};

/* Adds a text: no n-gram reaches from one into another. STATUS_DATA for a token outside [0, NGRAM_VOCAB_MOST), STATUS_INTERNAL without memory. */
enum status ngram_texts_add(struct ngram_texts *texts, const int32_t *tokens, size_t count);
void ngram_texts_release(struct ngram_texts *texts);

struct ngram_terms {
    int order, vocab;
    uint64_t tokenizer; /* tokenizer_digest */
};

/* A table of the texts, whole. The highest order has counts, the others the number of different tokens that stood in front (Kneser and Ney 1995); for each
 * order, discounts D1, D2, D3 by how many n-grams occurred once to four times (Chen and Goodman 1998, equation 26).
 * bytes: malloc'ed, [*size], the file's. STATUS_DATA without a token, or with one outside the vocabulary. */
enum status ngram_count(const struct ngram_texts *texts, const struct ngram_terms *terms, void **bytes, size_t *size);

#endif
