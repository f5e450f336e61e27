/* Rules where the target's own token is known at each row, greedily or by noise, which coupled drafts share (Daliri et al. 2024): drafts are accepted
 * as long as they equal it; the first that does not is replaced by it. */
#include "verifier/accept/accept_rule.h"

struct verdict accept_match(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                            const struct rng_key *key)
{
    struct verdict verdict;
    int i = 0;

    (void)sampling;
    (void)key;
    while (i < drafted && proposal->token[i] == targets[i].winner)
        i++;
    verdict = verdict_of_chain(i, drafted, DRAW_NONE);
    verdict.token = targets[i].winner;
    return verdict;
}
