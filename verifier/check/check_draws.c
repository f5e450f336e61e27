#include "verifier/check/check_draws.h"

#include "common/base/rng.h"
#include "common/sample/rule.h"

/* The token at u of the weights' distribution function; -1 when they do not reach u. */
static int32_t token_at(const struct support *q, uint32_t u)
{
    uint64_t upto = 0;

    for (int i = 0; i < q->count; i++) {
        upto += q->weight[i];
        if (u < upto)
            return q->id[i];
    }
    return -1;
}

void check_draws_add(struct check_draws *draws, const struct sampling *sampling, uint32_t request, int length,
                     const struct proposal *proposal)
{
    for (int i = 0; i < proposal->count; i++) {
        const struct rng_key key = {.seed = sampling->seed, .request = request, .position = (uint32_t)(length + i)};
        int32_t expected;

        if (proposal->q[i].count == 0) {
            draws->certain++;
            continue;
        }
        expected = token_at(&proposal->q[i], rng_coin16(&key, RNG_DRAFT, rule_coin(sampling, i)));
        draws->drawn++;
        if (expected == proposal->token[i])
            continue;
        if (draws->wrong++ == 0) {
            draws->request = request;
            draws->position = key.position;
            draws->sent = proposal->token[i];
            draws->expected = expected;
        }
    }
}
