/* Trees whose siblings were drawn from one q, again or without replacement (SpecInfer, Miao et al. 2024; RSD, Jeon et al. 2024). They are tested in
 * the order in which they were drawn: x is accepted with probability min(1, p_k(x) / q_k(x)), where q_k is what the k-th was drawn from, q without
 * those before it, and p_k what these have left of p: p_0 = p, p_(k+1) = norm(max(0, p_k - q_k)). Where none stands the next token is drawn from the
 * last p_k. On a chain that is Algorithm 1.
 *
 * As max(0, max(0, a - b) - c) = max(0, a - (b + c)) for b, c >= 0, what is left is max(0, p - m q) but for its norm, with m the sum over the
 * rejected siblings of the norm of p_k over the share of q that was left; a rejected token, which q_(k+1) may lack, has nothing left in either form.
 */
#include "verifier/accept/accept_rule.h"

#include "common/sample/rule.h"

#include <math.h>

/* The siblings that follow one token. Returns the one that is accepted, else -1, and in *rejected what of q is taken from p. */
static int test(enum rule_siblings how, const struct target_row *target, const struct proposal *proposal, int first, const struct rng_key *key,
                double *rejected)
{
    const struct support *q = &proposal->q[first];
    int32_t drawn = proposal->token[first];
    double norm = 1, left = 1;
    uint32_t number = 0;

    *rejected = 0;
    for (int node = first; node >= 0 && left > 0; node = proposal_child(proposal, proposal_parent(proposal, first), node + 1)) {
        int32_t token = proposal->token[node];
        double of_q = accept_q(q, drawn, token);

        if (of_q > 0 && accept_test(rng_coin(key, RNG_ACCEPT, number++), norm * of_q / left, accept_p(target, q, token) - *rejected * of_q))
            return node;
        *rejected += norm / left;
        norm = fmax(0, 1 - *rejected * accept_overlap_of(target, q, drawn, 1 / *rejected));
        left -= how == RULE_SIBLINGS_WITHOUT ? of_q : 0;
    }
    return -1;
}

struct verdict accept_siblings(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                               const struct rng_key *key)
{
    struct verdict verdict = {.refused = -1, .draw = DRAW_PLAIN, .residual = {.of_p = 1, .of_q = 1}};
    int at = -1, first = drafted > 0 ? proposal_child(proposal, -1, 0) : -1;

    while (first >= 0) {
        const struct rng_key here = accept_key(key, verdict.accepted);
        double rejected;

        verdict.refused = (int8_t)first;
        at = test(rule_of(sampling)->siblings, &targets[at + 1], proposal, first, &here, &rejected);
        if (at < 0) {
            verdict.draw = DRAW_RESIDUAL;
            verdict.residual.of_q = rejected;
            return verdict;
        }
        verdict.node[verdict.accepted++] = (int8_t)at;
        verdict.refused = -1;
        first = proposal_child(proposal, at, at + 1);
    }
    return verdict;
}
