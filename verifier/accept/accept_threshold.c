/* A draft is accepted if its p, at temperature 0 that of temperature 1, is above a bound, and at temperature 0 if it is the best token, too, as in
 * blockwise parallel decoding (Stern et al. 2018), where it is that of a rank or of a distance from the best. The token behind the accepted ones is
 * the target's own. NOT LOSSLESS. */
#include "verifier/accept/accept_rule.h"

static int stands(const struct sampling *sampling, const struct target_row *target, const struct support *q, int32_t token)
{
    return accept_p(target, q, token) > sampling->threshold || (sampling->temperature == 0.0 && token == target->winner);
}

struct verdict accept_threshold(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                                const struct rng_key *key)
{
    struct verdict verdict;
    int accepted = 0;

    (void)key;
    while (accepted < drafted && stands(sampling, &targets[accepted], &proposal->q[accepted], proposal->token[accepted]))
        accepted++;
    verdict = verdict_of_chain(accepted, drafted, sampling->temperature == 0.0 ? DRAW_NONE : DRAW_PLAIN);
    verdict.token = targets[accepted].winner;
    return verdict;
}
