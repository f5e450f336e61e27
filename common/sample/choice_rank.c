/* Apart from choice.c, which is compiled for the device, too. */
#include "common/sample/choice.h"

#include "common/sample/distribution.h"
#include "common/sample/rule.h"

#include <math.h>

#define LEAST 9 /* below the largest score: what is less probable is no guess, as its noise would cost more than it is worth */

int choice_listed(const struct sampling *sampling, int vocab, const struct row_query *query, double *p)
{
    int kept = 0;

    if (sampling->temperature > 0 && distribution_truncates(sampling))
        kept = distribution_truncate(sampling, query->best, query->best_count, query->best_count == vocab, query->stats.sum, p);
    return kept > 0 ? kept : query->best_count;
}

int choice_rank(const struct sampling *sampling, const struct rng_key *key, int32_t drafted, struct scored_token *best, int count, int most,
                int32_t *tokens, float *scores)
{
    enum rng_purpose purpose = rule_of(sampling)->matches ? RNG_NOISE : RNG_RESIDUAL;
    float largest = -INFINITY;
    int ranked = 0;

    for (int i = 0; i < count; i++)
        largest = best[i].score > largest ? best[i].score : largest;
    for (int i = 0; i < count && sampling->temperature > 0; i++)
        best[i].score = best[i].score < largest - LEAST ? -INFINITY : best[i].score + rng_gumbel(key, purpose, (uint32_t)best[i].token);
    while (ranked < most) {
        int winner = -1;

        for (int i = 0; i < count; i++)
            if (best[i].score > -INFINITY && best[i].token != drafted && (winner < 0 || best[i].score > best[winner].score))
                winner = i;
        if (winner < 0)
            break;
        if (scores != NULL)
            scores[ranked] = best[winner].score;
        tokens[ranked++] = best[winner].token;
        best[winner].score = -INFINITY;
    }
    return ranked;
}
