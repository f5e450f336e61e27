#include "drafter/ngram_pool.h"

#include <string.h>

static size_t all_tokens(int n)
{
    return (size_t)NGRAM_POOL_PLACES * NGRAM_POOL_WAYS * (size_t)n;
}

size_t ngram_pool_bytes(int n)
{
    return arena_round(all_tokens(n) * sizeof(int32_t));
}

void ngram_pool_init(struct ngram_pool *pool, struct arena *arena, int n)
{
    *pool = (struct ngram_pool){.n = n, .token = arena_take(arena, ngram_pool_bytes(n))};
    ngram_pool_clear(pool);
}

void ngram_pool_clear(struct ngram_pool *pool)
{
    memset(pool->token, 0xff, all_tokens(pool->n) * sizeof *pool->token);
}

static int32_t *place_of(const struct ngram_pool *pool, int32_t token)
{
    uint32_t place = (uint32_t)token * UINT32_C(2654435761) >> 21; /* of 11 bits */

    return pool->token + (size_t)place * NGRAM_POOL_WAYS * (size_t)pool->n;
}

_Static_assert(NGRAM_POOL_PLACES == 1 << (32 - 21), "a place for each hash");

void ngram_pool_add(struct ngram_pool *pool, const int32_t *tokens)
{
    size_t n = (size_t)pool->n;
    int32_t *place = place_of(pool, tokens[0]);
    size_t at = 0;

    while (at + 1 < NGRAM_POOL_WAYS && memcmp(place + at * n, tokens, n * sizeof *tokens) != 0)
        at++;
    memmove(place + n, place, at * n * sizeof *place); /* over where it was, or over the oldest */
    memcpy(place, tokens, n * sizeof *tokens);
}

int ngram_pool_find(const struct ngram_pool *pool, int32_t token, int most, const int32_t **found)
{
    const int32_t *place = place_of(pool, token);
    int count = 0;

    for (int way = 0; way < NGRAM_POOL_WAYS && count < most; way++)
        if (place[way * pool->n] == token)
            found[count++] = place + way * pool->n + 1;
    return count;
}
