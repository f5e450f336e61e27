#include "verifier/accept/accept_broken.h"

#include "common/sample/rule.h"

/* Algorithm 1 with a wrong coin (that of the draft, where its index is 0), or with the q of the row before. */
static struct verdict reject(enum breakage breakage, const struct target_row *targets, const struct proposal *proposal, int drafted,
                             const struct rng_key *key)
{
    for (int i = 0; i < drafted; i++) {
        const struct rng_key here = accept_key(key, i);
        const struct support *q = &proposal->q[breakage == BREAKAGE_Q_ROW && i > 0 ? i - 1 : i];
        double u = rng_uniform(&here, breakage == BREAKAGE_SHARED_COIN ? RNG_DRAFT : RNG_ACCEPT);

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

struct verdict accept_broken_decide(enum breakage breakage, const struct sampling *sampling, const struct target_row *targets,
                                    const struct proposal *proposal, int drafted, const struct rng_key *key)
{
    struct verdict verdict;

    if (breakage == BREAKAGE_ACCEPT_ALL)
        return accept_all(sampling, targets, drafted);
    if ((breakage == BREAKAGE_SHARED_COIN || breakage == BREAKAGE_Q_ROW) && !rule_of(sampling)->matches)
        return reject(breakage, targets, proposal, drafted, key);
    verdict = accept_decide(sampling, targets, proposal, drafted, key);
    if (breakage == BREAKAGE_RESIDUAL_P && verdict.draw == DRAW_RESIDUAL)
        verdict.draw = DRAW_PLAIN;
    if (breakage == BREAKAGE_DRAFTER_BONUS && drafted > 0 && verdict.accepted == drafted) {
        verdict.draw = DRAW_NONE;
        verdict.token = draw_from_q(&proposal->q[drafted - 1], proposal->token[drafted - 1], key);
    }
    return verdict;
}
