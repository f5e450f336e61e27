#include "tests/law/dealt_draw.h"

#include <math.h>
#include <stddef.h>

int32_t dealt_draw(const struct target_row *target, const struct support *q, int32_t drawn, const struct residual *residual, const double *p,
                   const float *noise, int vocab)
{
    const struct rng_key key = {.seed = 1};
    struct scored_token winner = {.score = -INFINITY, .token = -1};

    if (target->kind == TARGET_LIST)
        return accept_draw_list(target, q, drawn, residual, &key, RNG_RESIDUAL);
    if (residual != NULL)
        winner = accept_gumbel_max_support(target, q, drawn, residual, &key);
    for (int v = 0; v < vocab; v++) {
        int outside = residual == NULL || accept_q(q, drawn, v) == 0;
        float score = p[v] > 0 && outside ? (float)log(p[v]) + noise[v] : -INFINITY;

        if (score > winner.score)
            winner = (struct scored_token){.score = score, .token = v};
    }
    return winner.token;
}
