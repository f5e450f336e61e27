/* Trees whose siblings were drawn from one q, again or without replacement (SpecInfer, Miao et al. 2024; RSD, Jeon et al. 2024). They are tested in
 * the order in which they were drawn: x is accepted with probability min(1, p_k(x) / q_k(x)), where q_k is what the k-th was drawn from, q without
 * those before it, and p_k what these have left of p: p_0 = p, p_(k+1) = norm(max(0, p_k - q_k)). Where none stands the next token is drawn from the
 * last p_k. On a chain that is Algorithm 1.
 *
 * As max(0, max(0, a - b) - c) = max(0, a - (b + c)) for b, c >= 0, what is left is max(0, p - m q) but for its norm, with m the sum over the
 * rejected siblings of the norm of p_k over the share of q that was left; a rejected token, which q_(k+1) may lack, has nothing left in either form.
 * Several drafters for one text (merge.h) have a q each.
 *
 * Or, drawn again, each of the k against all of p (SpecTr, Sun et al. 2023, k-SEQ): with probability min(1, p(x) / (rho q(x))). A token is then
 * accepted with probability min(q, p / rho) (1 - (1 - b)^k) / b, b = the sum of min(q, p / rho), and what p has more is drawn where none stands. */
#include "verifier/accept/accept_rule.h"

#include "common/sample/rule.h"

#include <math.h>

enum { RHO_HALVINGS = 12 };

int accept_next_sibling(const struct proposal *proposal, int node)
{
    return proposal_child(proposal, proposal_parent(proposal, node), node + 1);
}

static int against_what_is_left(const void *sampling, const struct target_row *target, const struct proposal *proposal, int first,
                                const struct rng_key *key, struct residual *residual)
{
    enum rule_siblings how = rule_of(sampling)->siblings;
    const struct support *q = &proposal->q[first];
    int32_t drawn = proposal->token[first];
    double norm = 1, left = 1, rejected = 0;
    uint32_t number = 0;

    for (int node = first; node >= 0 && left > 0; node = accept_next_sibling(proposal, node)) {
        int32_t token = proposal->token[node];
        double of_q = accept_q(q, drawn, token);

        if (of_q > 0 && accept_test(rng_coin(key, RNG_ACCEPT, number++), norm * of_q / left, accept_p(target, q, token) - rejected * of_q))
            return node;
        rejected += norm / left;
        norm = fmax(0, 1 - rejected * accept_overlap_of(target, q, drawn, 1 / rejected));
        left -= how == RULE_SIBLINGS_WITHOUT ? of_q : 0;
    }
    *residual = (struct residual){.of_p = 1, .of_q = rejected};
    return -1;
}

/* The same of drafters that drew from a q each. With m_k the norm of p_k, what is left is max(0, p - the sum of m_k q_k) but for its norm. */
static int against_what_others_leave(const struct target_row *target, const struct proposal *proposal, int first, const struct rng_key *key,
                                     struct residual *residual)
{
    double norm = 1;
    uint32_t number = 0;

    *residual = (struct residual){.of_p = 1};
    for (int node = first; node >= 0 && norm > 0 && residual->several < ACCEPT_DRAFTERS; node = accept_next_sibling(proposal, node)) {
        int32_t token = proposal->token[node];
        const struct support *q = &proposal->q[node];
        double p = accept_p(target, &proposal->asked, token);

        if (accept_test(rng_coin(key, RNG_ACCEPT, number++), norm * accept_q(q, token, token), p - accept_several(residual, token)))
            return node;
        residual->share[residual->several++] = (struct residual_share){norm, node, q, token};
        norm = fmax(0, 1 - accept_overlap_of_several(target, &proposal->asked, token, residual));
    }
    return -1;
}

static int against_those_before(const void *sampling, const struct target_row *target, const struct proposal *proposal, int first,
                                const struct rng_key *key, struct residual *residual)
{
    if (proposal->asked.count > 0 && proposal_parent(proposal, first) < 0)
        return against_what_others_leave(target, proposal, first, key, residual);
    return against_what_is_left(sampling, target, proposal, first, key, residual);
}

/* The least rho for which k draws from q, each accepted with probability min(1, p / (rho q)), take no more of any token than p has: 1 - (1 - b)^k =
 * rho b, with b the chance of one. Any greater one is lossless, too, and k always serves: so what halving finds from above does.
 * Writes into *beta that chance. */
static double least_rho(const struct target_row *target, const struct support *q, int32_t drawn, int k, double *beta)
{
    double low = 1, rho = k;

    *beta = accept_overlap_of(target, q, drawn, 1 / rho);
    for (int h = 0; h < RHO_HALVINGS && k > 1; h++) {
        double middle = (low + rho) / 2, of_middle = accept_overlap_of(target, q, drawn, 1 / middle);

        if (1 - pow(1 - of_middle, k) <= middle * of_middle) {
            rho = middle;
            *beta = of_middle;
        } else {
            low = middle;
        }
    }
    return rho;
}

static int against_all_of_p(const void *sampling, const struct target_row *target, const struct proposal *proposal, int first,
                            const struct rng_key *key, struct residual *residual)
{
    const struct support *q = &proposal->q[first];
    int32_t drawn = proposal->token[first];
    double rho, beta;
    uint32_t number = 0;
    int k = 0;

    (void)sampling;
    for (int node = first; node >= 0; node = accept_next_sibling(proposal, node))
        k++;
    rho = least_rho(target, q, drawn, k, &beta);
    for (int node = first; node >= 0; node = accept_next_sibling(proposal, node)) {
        int32_t token = proposal->token[node];
        double of_q = accept_q(q, drawn, token);

        if (of_q > 0 && accept_test(rng_coin(key, RNG_ACCEPT, number++), rho * of_q, accept_p(target, q, token)))
            return node;
    }
    *residual = (struct residual){.of_p = 1, .of_q = beta > 0 ? (1 - pow(1 - beta, k)) / beta : 1, .most = 1 / rho};
    return -1;
}

struct verdict accept_descend(accept_test_siblings *test, const void *how, const struct target_row *targets, const struct proposal *proposal,
                              int drafted, const struct rng_key *key)
{
    struct verdict verdict = {.refused = -1, .draw = DRAW_PLAIN, .residual = {.of_p = 1, .of_q = 1}};
    int at = -1, first = drafted > 0 ? proposal_child(proposal, -1, 0) : -1;

    while (first >= 0) {
        const struct rng_key here = accept_key(key, verdict.accepted);

        verdict.refused = (int8_t)first;
        at = test(how, &targets[at + 1], proposal, first, &here, &verdict.residual);
        if (at < 0) {
            verdict.draw = DRAW_RESIDUAL;
            return verdict;
        }
        verdict.node[verdict.accepted++] = (int8_t)at;
        verdict.refused = -1;
        first = proposal_child(proposal, at, at + 1);
    }
    return verdict;
}

struct verdict accept_siblings(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                               const struct rng_key *key)
{
    return accept_descend(against_those_before, sampling, targets, proposal, drafted, key);
}

struct verdict accept_k_sequential(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                                   const struct rng_key *key)
{
    return accept_descend(against_all_of_p, sampling, targets, proposal, drafted, key);
}
