#include "verifier/check/check_draws.h"

#include "common/base/rng.h"
#include "common/sample/siblings.h"

/* The token at u of the weights' distribution function; -1 when they do not reach u. */
static int32_t token_at(const struct support *q, uint32_t u)
{
    uint64_t upto = 0;

    for (int i = 0; i < q->count; i++) {
        upto += q->weight[i];
        if (u < upto)
            return q->id[i];
    }
    return -1;
}

/* Tokens of its path in front of it. */
static int depth_of(const struct proposal *proposal, int node)
{
    int depth = 0;

    while ((node = proposal_parent(proposal, node)) >= 0)
        depth++;
    return depth;
}

/* What a draft is that was drawn after others from their q. */
static int32_t sibling_of(enum rule_siblings how, const struct proposal *proposal, int node, int first, uint32_t coin, const struct rng_key *key)
{
    const struct support *q = &proposal->q[first];
    const struct siblings_q drawn_from = {.count = q->count, .id = q->id, .weight = q->weight};
    int32_t before[MESSAGE_MAX_DRAFT];
    int number = 0;

    for (int i = first; i < node; i = proposal_child(proposal, proposal_parent(proposal, first), i + 1))
        before[number++] = proposal->token[i];
    return siblings_draw(&drawn_from, how, before, number, coin, key);
}

static int kind_of(uint8_t source)
{
    int kind = 0;

    while (source > 1 << kind)
        kind++;
    return kind;
}

void check_draws_add(struct check_draws *draws, const struct sampling *sampling, uint32_t request, int length, const struct proposal *proposal,
                     const uint8_t *source)
{
    struct sampling of_kind = *sampling;

    for (int i = 0; i < proposal->count; i++) {
        int first = proposal->asked.count > 0 ? i : proposal_child(proposal, proposal_parent(proposal, i), 0), depth = depth_of(proposal, i);
        const struct rng_key key = {.seed = sampling->seed, .request = request, .position = (uint32_t)(length + depth)};
        uint32_t coin;
        int32_t expected;

        of_kind.drafter = source != NULL ? kind_of(source[i]) : 0;
        coin = rule_tree_coin(&of_kind, depth, proposal_parent(proposal, i) + 1);
        if (proposal->q[first].count == 0) {
            draws->certain++;
            continue;
        }
        expected = first == i ? token_at(&proposal->q[i], rng_coin16(&key, RNG_DRAFT, coin))
                              : sibling_of(rule_of(sampling)->siblings, proposal, i, first, coin, &key);
        draws->drawn++;
        if (expected == proposal->token[i])
            continue;
        if (draws->wrong++ == 0) {
            draws->request = request;
            draws->position = key.position;
            draws->sent = proposal->token[i];
            draws->expected = expected;
        }
    }
}
