/* Where did the last tokens of a sequence occur before? For each n from min to max a hash table has the newest place behind every n-gram of
 * the sequence that some token follows. It grows with the sequence and reads no token twice: adding a token and a search look at about max
 * entries each, however long the sequence is. Keys are not kept: an entry is a place, and what stands there is compared. Local and pure. */
#ifndef TANDEM_DRAFTER_NGRAM_INDEX_H
#define TANDEM_DRAFTER_NGRAM_INDEX_H

#include "common/base/arena.h"
#include <stdint.h>

struct ngram_index {
    int min, max;
    int count;      /* the index knows tokens [0, count) of its sequence */
    uint32_t mask;  /* entries of a table, less 1 */
    int32_t *place; /* [max - min + 1][mask + 1], 0: a free entry */
};

/* Bytes for n-grams of min to max tokens, 1 <= min <= max, of a sequence of up to `context` tokens. */
size_t ngram_index_bytes(int min, int max, int context);
void ngram_index_init(struct ngram_index *index, struct arena *arena, int min, int max, int context);
/* Forgets everything: for another sequence. */
void ngram_index_clear(struct ngram_index *index);
/* Makes it know tokens[0 .. upto), of which the first index->count have not changed; upto at most `context`. */
void ngram_index_grow(struct ngram_index *index, const int32_t *tokens, int upto);
/* The place of the token that follows the newest earlier occurrence of the longest n-gram at the end of tokens[0 .. length); 0 where none
 * occurred. The index must know exactly the first length - 1 of them. */
int ngram_index_find(const struct ngram_index *index, const int32_t *tokens, int length);

#endif
