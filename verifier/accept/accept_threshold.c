/* A draft is accepted if its p, at temperature 0 that of temperature 1, is above a bound, as in blockwise parallel decoding (Stern et al. 2018),
 * where it is that of a rank or of a distance from the best. The token behind the accepted ones is the target's own. NOT LOSSLESS. */
#include "verifier/accept/accept_rule.h"

struct verdict accept_threshold(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                                const struct rng_key *key)
{
    struct verdict verdict;
    int accepted = 0;

    (void)key;
    while (accepted < drafted && accept_p(&targets[accepted], &proposal->q[accepted], proposal->token[accepted]) > sampling->threshold)
        accepted++;
    verdict = verdict_of_chain(accepted, drafted, sampling->temperature == 0.0 ? DRAW_NONE : DRAW_PLAIN);
    verdict.token = targets[accepted].winner;
    return verdict;
}
