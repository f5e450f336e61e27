/* Apart from choice.c, which is compiled for the device, too. */
#include "common/sample/choice.h"
#include "common/sample/rule.h"

#include <math.h>

int choice_rank(const struct sampling *sampling, const struct rng_key *key, int32_t drafted, struct scored_token *best, int count, int most, int32_t *tokens)
{
    enum rule_draw draw = rule_draw(sampling);
    int ranked = 0;

    for (int i = 0; i < count && draw != RULE_DRAWS_ARGMAX; i++)
        best[i].score += rng_gumbel(key, draw == RULE_DRAWS_NOISE ? RNG_NOISE : RNG_RESIDUAL, (uint32_t)best[i].token);
    while (ranked < most) {
        int winner = -1;

        for (int i = 0; i < count; i++)
            if (best[i].score > -INFINITY && best[i].token != drafted && (winner < 0 || best[i].score > best[winner].score))
                winner = i;
        if (winner < 0)
            break;
        tokens[ranked++] = best[winner].token;
        best[winner].score = -INFINITY;
    }
    return ranked;
}
