/* Rules where the target's own token is known at each row, greedily or by noise, which coupled drafts share (Daliri et al. 2024): drafts are accepted
 * as long as they equal it; where none of those that follow does, it comes itself. What comes out is what the target says, whatever was drafted, so
 * any tree will do: its path is that of the target's own tokens. */
#include "verifier/accept/accept_rule.h"

struct verdict accept_match(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                            const struct rng_key *key)
{
    struct verdict verdict = {.refused = -1, .draw = DRAW_NONE, .residual = {.of_p = 1, .of_q = 1}, .token = targets[0].winner};
    int at = -1;

    (void)sampling;
    (void)key;
    for (int i = 0; i < drafted; i++) { /* a node comes after its parent */
        if (proposal_parent(proposal, i) != at)
            continue;
        if (proposal->token[i] != verdict.token) {
            verdict.refused = verdict.refused < 0 ? (int8_t)i : verdict.refused;
            continue;
        }
        verdict.node[verdict.accepted++] = (int8_t)(at = i);
        verdict.refused = -1;
        verdict.token = targets[i + 1].winner;
    }
    return verdict;
}
