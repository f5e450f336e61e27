#include "drafter/draft_broken.h"

#include <math.h>

enum { FEW = 8 };
#define SHARPER 1.25 /* 1 / 0.8 */

/* The rank of the i-th token by weight: how many weigh more, or as much and have a lower id. */
static int rank_of(const struct sparse_q *q, int i)
{
    int rank = 0;

    for (int j = 0; j < q->count; j++)
        rank += j < i ? q->weight[j] >= q->weight[i] : q->weight[j] > q->weight[i];
    return rank;
}

/* A wrong distribution stays within q's support, so that the lead's checks of a proposal do not refuse it. */
static double weight_of(const struct sparse_q *q, enum breakage breakage, int i)
{
    if (breakage == BREAKAGE_Q_TEMPERATURE)
        return pow((double)q->weight[i], SHARPER);
    return rank_of(q, i) < FEW ? (double)q->weight[i] : 0.0;
}

int32_t draft_broken_draw(const struct sparse_q *q, enum breakage breakage, uint32_t u)
{
    double sum = 0, upto = 0;
    int last = 0;

    if (breakage != BREAKAGE_Q_TEMPERATURE && breakage != BREAKAGE_Q_TOP_K)
        return sparse_q_draw(q, u);
    for (int i = 0; i < q->count; i++)
        sum += weight_of(q, breakage, i);
    for (int i = 0; i < q->count && upto * SPARSE_Q_SUM <= u * sum; i++) {
        double weight = weight_of(q, breakage, i);

        upto += weight;
        last = weight > 0 ? i : last;
    }
    return q->id[last];
}

int32_t draft_broken_noise(const struct sparse_q *q, const struct rng_key *key)
{
    float best = -INFINITY;
    int32_t winner = q->id[0];

    for (int i = 0; i < q->count; i++) {
        float score = logf((float)q->weight[i]) + rng_gumbel(key, RNG_RESIDUAL, (uint32_t)q->id[i]);

        if (score > best) {
            best = score;
            winner = q->id[i];
        }
    }
    return winner;
}

int32_t draft_broken_likelier(const struct sparse_q *q, int32_t one, int32_t other)
{
    uint32_t of_one = 0, of_other = 0;

    for (int i = 0; i < q->count; i++) {
        of_one = q->id[i] == one ? q->weight[i] : of_one;
        of_other = q->id[i] == other ? q->weight[i] : of_other;
    }
    return of_other > of_one ? other : one;
}

int32_t draft_broken_best(const struct sparse_q *q, int rank)
{
    for (int i = 0; i < q->count; i++)
        if (rank_of(q, i) == rank)
            return q->id[i];
    return -1;
}
