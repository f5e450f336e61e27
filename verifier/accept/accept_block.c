/* Block verification (Sun et al. 2024, Algorithm 2). How far the drafts of a proposal may go is a running share of the target's law: it falls with a
 * draft that q gives more than p does, and grows again, up to 1, with one that p gives more. The longest beginning whose own coin lets it stand is
 * accepted. On average no fewer tokens than by rejection come out of a round, and no rule of a chain can have more. */
#include "verifier/accept/accept_rule.h"

#include <math.h>

/* How probable it is that the beginning which has this share stands, if no longer one does.  target, q, drawn: the row, and the draft, behind it */
static double chance(double share, const struct target_row *target, const struct support *q, int32_t drawn)
{
    double left = fmax(share - accept_overlap_of(target, q, drawn, share), 0); /* the sum of max(0, share p - q) */

    return left + 1 - share > 0 ? left / (left + 1 - share) : 1;
}

struct verdict accept_block(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                            const struct rng_key *key)
{
    double share = 1, of_accepted = 1;
    struct verdict verdict;
    int accepted = 0;

    (void)sampling;
    for (int i = 0; i < drafted; i++) {
        const struct rng_key here = accept_key(key, i);
        int32_t token = proposal->token[i];
        double p = accept_p(&targets[i], &proposal->q[i], token), q = accept_q(&proposal->q[i], token, token), least;

        share = fmin(share * p / q, 1);
        least = i + 1 == drafted ? share : chance(share, &targets[i + 1], &proposal->q[i + 1], proposal->token[i + 1]);
        if (rng_coin(&here, RNG_ACCEPT, (uint32_t)i) < least) {
            accepted = i + 1;
            of_accepted = share;
        }
    }
    verdict = verdict_of_chain(accepted, drafted, accepted < drafted ? DRAW_RESIDUAL : DRAW_PLAIN);
    verdict.residual.of_q = 1 / of_accepted;
    return verdict;
}
