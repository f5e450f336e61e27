/* A pool of n-grams of one sequence by their first token, the newest first: what may follow that token. It owns a table of places, each for the n-grams of the few
 * tokens that meet there; a new one takes the place of the oldest. Local; never sends or waits, and takes memory at init alone. */
#ifndef TANDEM_DRAFTER_NGRAM_POOL_H
#define TANDEM_DRAFTER_NGRAM_POOL_H

#include "common/base/arena.h"
#include <stdint.h>

enum { NGRAM_POOL_PLACES = 1 << 11, NGRAM_POOL_WAYS = 8 };

struct ngram_pool {
    int n;          /* tokens of each, at least 2 */
    int32_t *token; /* [NGRAM_POOL_PLACES][NGRAM_POOL_WAYS][n]; the first is -1 where there is none */
};

size_t ngram_pool_bytes(int n);
void ngram_pool_init(struct ngram_pool *pool, struct arena *arena, int n);
/* Empties the pool, for another sequence. */
void ngram_pool_clear(struct ngram_pool *pool);
/* The newest is the first from now on, whether it was there or not.  tokens: [n] */
void ngram_pool_add(struct ngram_pool *pool, const int32_t *tokens);
/* The n-grams that begin with the token, at most `most`. Returns how many.  found: [most] what follows it in each, [n - 1], until the next is added
 */
int ngram_pool_find(const struct ngram_pool *pool, int32_t token, int most, const int32_t **found);

#endif
