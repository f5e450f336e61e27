/* Lenience (Leviathan et al. 2023, appendix A.5): Algorithm 1 with L q in q's place, L at most 1. A draft is accepted with probability min(1, p / (L
 * q)), and what is left of p is p - L q: no token comes more often than p / L. At temperature 0 a draft is accepted if it is the
 * best token, or its p, at temperature 1, is above L times that one's. NOT LOSSLESS. */
#include "verifier/accept/accept_rule.h"

static int stands(const struct sampling *sampling, const struct target_row *target, const struct support *q, int32_t token,
                  const struct rng_key *here)
{
    double p = accept_p(target, q, token);

    if (sampling->temperature == 0.0)
        return token == target->winner || p > sampling->lenience * target->most;
    return accept_test(rng_uniform(here, RNG_ACCEPT), sampling->lenience * accept_q(q, token, token), p);
}

struct verdict accept_lenience(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                               const struct rng_key *key)
{
    struct verdict verdict;
    int accepted = 0;

    for (; accepted < drafted; accepted++) {
        const struct rng_key here = accept_key(key, accepted);

        if (!stands(sampling, &targets[accepted], &proposal->q[accepted], proposal->token[accepted], &here))
            break;
    }
    verdict = verdict_of_chain(accepted, drafted, sampling->temperature == 0.0 ? DRAW_NONE : accepted < drafted ? DRAW_RESIDUAL : DRAW_PLAIN);
    verdict.residual.of_q = sampling->lenience;
    verdict.token = targets[accepted].winner;
    return verdict;
}
