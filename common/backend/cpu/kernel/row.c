/* One row of logits, or a stretch of it: the largest, the sum of exp, the Gumbel-max, and the search that row_top is made of. Each logit is
 * multiplied by `scale` first, which changes none when it is 1. */
#include "common/backend/cpu/kernel/table.h"
#include "common/backend/cpu/kernel/vec.h"

#include <math.h>

/* Lanes past the end read as minus infinity: no logit is lower. */
SPECIALISED vec load_logits(const float *logits, float scale, int left)
{
    if (left >= LANES)
        return vec_mul(vec_load(logits), vec_set(scale));
    return vec_select(vecm_of_bits((1u << left) - 1), vec_mul(vec_load_part(logits, left), vec_set(scale)), vec_set(-INFINITY));
}

int KERNEL(row_find)(const float *logits, float scale, int first, int count, float threshold)
{
    vec bar = vec_set(threshold);

    for (int i = first; i < count; i += LANES) {
        uint32_t above = vecm_bits(vec_less(bar, load_logits(logits + i, scale, count - i)));

        if (above != 0)
            return i + __builtin_ctz(above);
    }
    return count;
}

static float find_max(const float *logits, float scale, int count)
{
    vec largest[4];

    for (int j = 0; j < 4; j++)
        largest[j] = vec_set(-INFINITY);
    for (int i = 0; i < count; i += 4 * LANES)
        UNROLL for (int j = 0; j < 4; j++) if (i + j * LANES < count) largest[j] =
            vec_max(load_logits(logits + i + j * LANES, scale, count - i - j * LANES), largest[j]); /* in this order: NaN is none */
    return vec_largest(vec_max(vec_max(largest[0], largest[1]), vec_max(largest[2], largest[3])));
}

static int find_equal(const float *logits, float scale, int count, float value)
{
    vec wanted = vec_set(value);

    for (int i = 0; i < count; i += LANES) {
        uint32_t equal = vecm_bits(vec_equal(wanted, load_logits(logits + i, scale, count - i)));

        if (equal != 0)
            return i + __builtin_ctz(equal);
    }
    return 0;
}

void KERNEL(row_max)(const float *logits, float scale, int first, int last, struct scored_token *best)
{
    float max = find_max(logits + first, scale, last - first);

    if (!(max > best->score))
        return;
    best->token = first + find_equal(logits + first, scale, last - first, max);
    best->score = logits[best->token] * scale; /* of two zeros, the one that stands there */
}

double KERNEL(row_sum)(const float *logits, float scale, int count, float max)
{
    vecd sum = vecd_zero();

    if (max == -INFINITY)
        return 0;
    for (int i = 0; i < count; i += LANES)
        sum = vecd_add(sum, vec_exp(vec_sub(load_logits(logits + i, scale, count - i), vec_set(max))));
    return vecd_sum(sum);
}

/* Where exp is 0 the distance counts as the least for which it is, so that minus infinity adds 0. */
double KERNEL(row_below)(const float *logits, float scale, int count, float max)
{
    vecd sum = vecd_zero();

    if (max == -INFINITY)
        return 0;
    for (int i = 0; i < count; i += LANES) {
        vec over = vec_sub(load_logits(logits + i, scale, count - i), vec_set(max));

        sum = vecd_add(sum, vec_mul(vec_negate(vec_max(over, vec_set(MATH32_EXP_LOW))), vec_exp(over)));
    }
    return vecd_sum(sum);
}

/* Philox4x32-10 on 16 counters (index, position, request, purpose) at once. */
SPECIALISED void philox(const struct rng_key *key, enum rng_purpose purpose, veci index, veci words[4])
{
    uint32_t key_low = (uint32_t)key->seed, key_high = (uint32_t)(key->seed >> 32);

    words[0] = index;
    words[1] = veci_set(key->position);
    words[2] = veci_set(key->request);
    words[3] = veci_set((uint32_t)purpose);
    for (int round = 0; round < 10; round++) {
        veci high0, high2;
        veci low0 = veci_multiply(words[0], 0xD2511F53, &high0);
        veci low2 = veci_multiply(words[2], 0xCD9E8D57, &high2);

        words[0] = veci_xor(veci_xor(high2, words[1]), veci_set(key_low));
        words[1] = low2;
        words[2] = veci_xor(veci_xor(high0, words[3]), veci_set(key_high));
        words[3] = low0;
        key_low += 0x9E3779B9;
        key_high += 0xBB67AE85;
    }
}

enum { NOISE_BLOCK = 4 * LANES }; /* tokens of one call of philox */

/* The words of the 64 tokens from `token` (a multiple of 4) on, in order: veci_transpose undoes the order of the counters. */
SPECIALISED void noise_words(const struct rng_key *key, enum rng_purpose purpose, uint32_t token, veci words[4])
{
    static const uint32_t order[LANES] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};

    philox(key, purpose, veci_add(veci_load(order), veci_set(token / 4)), words);
    veci_transpose(words);
}

/* The tokens of one vector that may beat `best`. For all v, gumbel(v) <= -log(v), so one that wins has v < exp(best - logit)^-1;
 * the margin is many times what the rounding of either side can be. */
SPECIALISED uint32_t may_win(vec logits, veci words, float best)
{
    float margin = 1e-3f + 1e-6f * fabsf(best);
    vec bound = vec_exp(vec_sub(logits, vec_set(best - margin)));

    return vecm_bits(vec_less(vec_unit_of_words(words), bound));
}

SPECIALISED void gumbel_max_vector(vec logits, veci words, uint32_t excluded, int first, struct scored_token *winner)
{
    uint32_t open = ~excluded & 0xffff;
    float scores[LANES];

    if (winner->token >= 0)
        open &= may_win(logits, words, winner->score);
    if (open == 0)
        return;
    vec_store(scores, vec_add(logits, vec_gumbel(words)));
    for (; open != 0; open &= open - 1) {
        int lane = __builtin_ctz(open);

        if (scores[lane] > winner->score)
            *winner = (struct scored_token){.score = scores[lane], .token = first + lane};
    }
}

/* Bits [i, i + 64) of the excluded set, i a multiple of 64. */
static uint64_t excluded_bits(const uint32_t *excluded, int i, int count)
{
    uint64_t bits;

    if (excluded == NULL)
        return 0;
    bits = excluded[i / 32];
    if (i + 32 < count)
        bits |= (uint64_t)excluded[i / 32 + 1] << 32;
    return bits;
}

void KERNEL(row_gumbel_max)(const float *logits, float scale, int first, int last, int32_t first_token, const struct rng_key *key,
                      enum rng_purpose purpose, const uint32_t *excluded, struct scored_token *winner)
{
    struct scored_token best = *winner;

    for (int i = first; i < last; i += NOISE_BLOCK) {
        uint64_t out = excluded_bits(excluded, i, last);
        vec part[4], largest = vec_set(-INFINITY);
        veci words[4];

        for (int j = 0; j < 4; j++) {
            part[j] = i + j * LANES < last ? load_logits(logits + i + j * LANES, scale, last - i - j * LANES) : vec_set(-INFINITY);
            largest = vec_max(part[j], largest);
        }
        if (vecm_bits(vec_less(vec_set(best.score), vec_add(largest, vec_set(RNG_GUMBEL_MAX)))) == 0)
            continue; /* the largest noise of all would not do */
        noise_words(key, purpose, (uint32_t)first_token + (uint32_t)i, words);
        for (int j = 0; j < 4; j++)
            gumbel_max_vector(part[j], words[j], (uint32_t)(out >> (j * LANES)) & 0xffff, i + j * LANES, &best);
    }
    *winner = best;
}
