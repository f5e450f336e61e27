/* Leviathan et al. 2023, Algorithm 1: a draft drawn from q is accepted with probability min(1, p / q). After the first rejected draft the token is
 * drawn from the residual norm(max(0, p - q)); when all are accepted, the bonus token is drawn from p. */
#include "verifier/accept/accept_rule.h"

struct verdict accept_rejection(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                                const struct rng_key *key)
{
    (void)sampling;
    for (int i = 0; i < drafted; i++) {
        const struct rng_key here = accept_key(key, i);
        int32_t token = proposal->token[i];
        double q = accept_q(&proposal->q[i], token, token), p = accept_p(&targets[i], &proposal->q[i], token);

        if (!accept_test(rng_uniform(&here, RNG_ACCEPT), q, p))
            return verdict_of_chain(i, drafted, DRAW_RESIDUAL);
    }
    return verdict_of_chain(drafted, drafted, DRAW_PLAIN);
}
