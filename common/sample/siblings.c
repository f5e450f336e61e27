#include "common/sample/siblings.h"

static int is_among(const int32_t *tokens, int count, int32_t token)
{
    for (int i = 0; i < count; i++)
        if (tokens[i] == token)
            return 1;
    return 0;
}

uint32_t siblings_left(const struct siblings_q *q, enum rule_siblings how, const int32_t *before, int number)
{
    uint32_t left = SPARSE_Q_SUM;

    for (int i = 0; i < number && how == RULE_SIBLINGS_WITHOUT; i++)
        left -= sparse_q_weight(q->id, q->weight, q->count, before[i]);
    return left;
}

int32_t siblings_draw(const struct siblings_q *q, enum rule_siblings how, const int32_t *before, int number, uint32_t coin, const struct rng_key *key)
{
    uint32_t left = siblings_left(q, how, before, number), upto = 0, words[4], u;

    if (left == 0)
        return -1;
    if (number == 0) {
        u = rng_coin16(key, RNG_DRAFT, coin);
    } else {
        rng_words(key, RNG_TREE, coin * SAMPLING_MAX_DRAFT + (uint32_t)number, words);
        u = (uint32_t)((uint64_t)words[0] * left >> 32);
    }
    for (int i = 0; i < q->count; i++) {
        if (how == RULE_SIBLINGS_WITHOUT && is_among(before, number, q->id[i]))
            continue;
        upto += q->weight[i];
        if (u < upto)
            return q->id[i];
    }
    return -1; /* not reached */
}
