#include "verifier/accept/accept_broken.h"

#include "common/sample/rule.h"
#include "verifier/accept/accept_rule.h"

#include <math.h>

/* Algorithm 1 with a wrong coin (that of the draft, where its index is 0), with the q of the row before, or without a test from the third draft on.
 */
static struct verdict reject(enum breakage breakage, const struct target_row *targets, const struct proposal *proposal, int drafted,
                             const struct rng_key *key)
{
    for (int i = 0; i < drafted; i++) {
        const struct rng_key here = accept_key(key, i);
        const struct support *q = &proposal->q[breakage == BREAKAGE_Q_ROW && i > 0 ? i - 1 : i];
        double u = rng_uniform(&here, breakage == BREAKAGE_SHARED_COIN ? RNG_DRAFT : RNG_ACCEPT);

        if (breakage == BREAKAGE_LATE_ACCEPT && i >= 2)
            continue;
        if (!accept_test(u, accept_q(q, proposal->token[i], proposal->token[i]), accept_p(&targets[i], &proposal->q[i], proposal->token[i])))
            return verdict_of_chain(i, drafted, DRAW_RESIDUAL);
    }
    return verdict_of_chain(drafted, drafted, DRAW_PLAIN);
}

static struct verdict accept_all(const struct sampling *sampling, const struct target_row *targets, int drafted)
{
    struct verdict verdict = verdict_of_chain(drafted, drafted, rule_of(sampling)->matches ? DRAW_NONE : DRAW_PLAIN);

    verdict.token = targets[drafted].winner;
    return verdict;
}

static int32_t draw_from_q(const struct support *q, int32_t drawn, const struct rng_key *key)
{
    uint32_t upto = 0, u = rng_coin16(key, RNG_TREE, 0);

    for (int i = 0; i < q->count; i++)
        if (u < (upto += q->weight[i]))
            return q->id[i];
    return drawn; /* the point mass */
}

struct siblings_broken {
    enum breakage breakage;
    enum rule_siblings how;
};

/* Lists the siblings from `first` on into nodes[], by falling weight of their tokens where the fault is that. Returns how many. */
static int list_siblings(const struct siblings_broken *broken, const struct proposal *proposal, int first, int *nodes)
{
    const struct support *q = &proposal->q[first];
    int32_t drawn = proposal->token[first];
    int count = 0;

    for (int node = first, at; node >= 0; node = accept_next_sibling(proposal, node)) {
        for (at = count++; at > 0 && broken->breakage == BREAKAGE_SIBLING_ORDER &&
                           accept_q(q, drawn, proposal->token[nodes[at - 1]]) < accept_q(q, drawn, proposal->token[node]);
             at--)
            nodes[at] = nodes[at - 1];
        nodes[at] = node;
    }
    return count;
}

/* The test of multistep and without-replacement (accept_siblings.c) with a fault in it: another order, all of p, or all of q. */
static int test_siblings(const void *opaque, const struct target_row *target, const struct proposal *proposal, int first, const struct rng_key *key,
                         struct residual *residual)
{
    const struct siblings_broken *broken = opaque;
    const struct support *q = &proposal->q[first];
    int32_t drawn = proposal->token[first];
    int nodes[MESSAGE_MAX_DRAFT], count = list_siblings(broken, proposal, first, nodes);
    double norm = 1, left = 1, rejected = 0;

    for (int i = 0; i < count && left > 0; i++) {
        double of_q = accept_q(q, drawn, proposal->token[nodes[i]]), u = rng_coin(key, RNG_ACCEPT, (uint32_t)i);

        if (of_q > 0 && accept_test(u, norm * of_q / left, accept_p(target, q, proposal->token[nodes[i]]) - rejected * of_q))
            return nodes[i];
        *residual = (struct residual){.of_p = 1, .of_q = rejected + norm / left};
        if (broken->breakage != BREAKAGE_SIBLING_P) {
            rejected += norm / left;
            norm = fmax(0, 1 - rejected * accept_overlap_of(target, q, drawn, 1 / rejected));
        }
        left -= broken->how == RULE_SIBLINGS_WITHOUT && broken->breakage != BREAKAGE_SIBLING_Q ? of_q : 0;
    }
    return -1;
}

struct verdict accept_broken_decide(enum breakage breakage, const struct sampling *sampling, const struct target_row *targets,
                                    const struct proposal *proposal, int drafted, const struct rng_key *key)
{
    struct verdict verdict;

    if (breakage == BREAKAGE_ACCEPT_ALL)
        return accept_all(sampling, targets, drafted);
    if ((breakage == BREAKAGE_SHARED_COIN || breakage == BREAKAGE_Q_ROW || breakage == BREAKAGE_LATE_ACCEPT) && !rule_of(sampling)->matches)
        return reject(breakage, targets, proposal, drafted, key);
    if (breakage_table[breakage].of == BREAKAGE_OF_SIBLINGS && breakage != BREAKAGE_SIBLING_TOP_K && !rule_of(sampling)->matches) {
        const struct siblings_broken broken = {.breakage = breakage, .how = rule_of(sampling)->siblings};

        return accept_descend(test_siblings, &broken, targets, proposal, drafted, key);
    }
    verdict = accept_decide(sampling, targets, proposal, drafted, key);
    if (breakage == BREAKAGE_RESIDUAL_P && verdict.draw == DRAW_RESIDUAL)
        verdict.draw = DRAW_PLAIN;
    if (breakage == BREAKAGE_DRAFTER_BONUS && drafted > 0 && verdict.accepted == drafted) {
        verdict.draw = DRAW_NONE;
        verdict.token = draw_from_q(&proposal->q[drafted - 1], proposal->token[drafted - 1], key);
    }
    return verdict;
}
