#include "verifier/accept/explained.h"

#include "common/sample/rule.h"
#include "verifier/accept/accept_rule.h"

static int is_on_path(const struct verdict *verdict, int node)
{
    for (int i = 0; i < verdict->accepted; i++)
        if (verdict->node[i] == node)
            return 1;
    return 0;
}

/* Of a draft that is not on the path, though what it follows is, or is committed: was it tested? Those that follow one token are, in their order, up
 * to the one that stands. */
static int was_tested(const struct verdict *verdict, const struct proposal *proposal, int node)
{
    for (int i = 0; i < verdict->accepted; i++)
        if (proposal_parent(proposal, verdict->node[i]) == proposal_parent(proposal, node))
            return node < verdict->node[i];
    return 1;
}

static enum explained_fate fate_of(const struct rule *rule, const struct verdict *verdict, const struct proposal *proposal, int node)
{
    int parent = proposal_parent(proposal, node);

    if (is_on_path(verdict, node))
        return EXPLAINED_ACCEPTED;
    if (rule->looks_on) /* at all of them, before it says how many stand */
        return EXPLAINED_REJECTED;
    return (parent < 0 || is_on_path(verdict, parent)) && was_tested(verdict, proposal, node) ? EXPLAINED_REJECTED : EXPLAINED_PASSED;
}

void explained_fill(struct explained *explained, const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal,
                    const struct verdict *verdict, const struct rng_key *key)
{
    const struct rule *rule = rule_of(sampling);
    int by_coin = accept_rule(sampling)->by_coin;

    explained->rule = rule->name;
    explained->count = proposal->count;
    explained->draw = verdict->draw;
    explained->residual = verdict->residual;
    explained->token = verdict->token;
    for (int i = 0; i < proposal->count; i++) {
        int parent = proposal_parent(proposal, i);
        int32_t drawn, of_asked;
        const struct target_row *target = &targets[parent + 1];
        const struct support *q = proposal_q(proposal, i, &drawn), *asked = proposal_asked(proposal, i, &of_asked);
        struct explained_node *node = &explained->node[i];

        *node = (struct explained_node){.token = proposal->token[i], .parent = parent, .q = -1, .p = -1, .own = -1, .coin = -1};
        node->depth = parent < 0 ? 0 : explained->node[parent].depth + 1;
        node->fate = fate_of(rule, verdict, proposal, i);
        if (target->kind == TARGET_WINNER) {
            node->own = target->winner;
            continue;
        }
        if (rule->needs_q)
            node->q = accept_q(q, drawn, node->token);
        if (node->q != 0) /* else the row was not asked about it */
            node->p = accept_p(target, asked, node->token);
        if (by_coin && node->fate != EXPLAINED_PASSED) {
            const struct rng_key here = accept_key(key, i);

            node->coin = rng_uniform(&here, RNG_ACCEPT);
        }
    }
}
