/* Counts the n-grams of texts and makes a table of them. Owns nothing; one thread; local. Memory: 20 bytes for each token beside the texts, and what
 * the table has, some 8 to 20 bytes for each different n-gram of each order. */
#ifndef TANDEM_COMMON_CORPUS_NGRAM_COUNT_H
#define TANDEM_COMMON_CORPUS_NGRAM_COUNT_H

#include "common/corpus/ngram_table.h"
#include "common/corpus/texts.h"

struct ngram_terms {
    int order, vocab;
    uint64_t tokenizer; /* tokenizer_digest */
};

/* A table of the texts, whole. The highest order has counts, the others the number of different tokens that stood in front (Kneser and Ney 1995); for
 * each order, discounts D1, D2, D3 by how many n-grams occurred once to four times (Chen and Goodman 1998, equation 26). bytes: malloc'ed, [*size],
 * the file's. STATUS_DATA without a token, or with one outside the vocabulary. */
enum status ngram_count(const struct texts *texts, const struct ngram_terms *terms, void **bytes, size_t *size);

#endif
