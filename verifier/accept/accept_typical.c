/* Typical acceptance (Cai et al. 2024, Medusa, section 2.3.2): a draft is accepted if its p is above min(epsilon, delta exp(-H(p))), so that where
 * the target is unsure much is good enough. The token behind the accepted ones is the target's own. NOT LOSSLESS; at temperature 0 greedy, as there.
 */
#include "verifier/accept/accept_rule.h"

#include <math.h>

/* Of p, nats. */
static double entropy_of(const struct target_row *target)
{
    double entropy = 0;

    if (target->kind != TARGET_LIST)
        return target->entropy;
    for (int i = 0; i < target->count; i++)
        entropy -= target->p[i] > 0 ? target->p[i] * log(target->p[i]) : 0;
    return entropy;
}

static int stands(const struct sampling *sampling, const struct target_row *target, const struct support *q, int32_t token)
{
    return accept_p(target, q, token) > fmin(sampling->typical_epsilon, sampling->typical_delta * exp(-entropy_of(target)));
}

struct verdict accept_typical(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                              const struct rng_key *key)
{
    int accepted = 0;

    (void)key;
    while (accepted < drafted && stands(sampling, &targets[accepted], &proposal->q[accepted], proposal->token[accepted]))
        accepted++;
    return verdict_of_chain(accepted, drafted, DRAW_PLAIN);
}
