/* Rejection sampling as it was before speculative decoding (Leviathan et al. 2023, appendix A.2): a draft is accepted with probability p / (M q), M
 * being the largest p / q. So of each token of q's support the share 1 / M of p is accepted, and what is left is all else of p. To compare with: it
 * accepts 1 / M of the drafts at most, where Algorithm 1 accepts the sum of min(p, q), which is never less. */
#include "verifier/accept/accept_rule.h"

struct verdict accept_classic(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                              const struct rng_key *key)
{
    (void)sampling;
    for (int i = 0; i < drafted; i++) {
        const struct rng_key here = accept_key(key, i);
        int32_t token = proposal->token[i];
        const struct support *q = &proposal->q[i];
        double most = accept_most(&targets[i], q, token);

        if (!accept_test(rng_uniform(&here, RNG_ACCEPT), most * accept_q(q, token, token), accept_p(&targets[i], q, token))) {
            struct verdict verdict = verdict_of_chain(i, drafted, DRAW_RESIDUAL);

            verdict.residual = (struct residual){.of_p = 1 - 1 / most, .of_q = 0};
            return verdict;
        }
    }
    return verdict_of_chain(drafted, drafted, DRAW_PLAIN);
}
