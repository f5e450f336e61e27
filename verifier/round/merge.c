#include "verifier/round/merge.h"

#include <string.h>

enum { NODES = MERGE_MOST * MESSAGE_MAX_DRAFT };
#define FADE         0.98
#define PRIOR        0.5 /* the rate of a kind of which nothing is known yet, */
#define PRIOR_WEIGHT 2.0 /* and of how many drafts it counts as */

/* All drafts of all chains. A node comes after its parent. */
struct trie {
    int count;
    int32_t token[NODES];
    int16_t parent[NODES]; /* -1: the newest committed token */
    int16_t depth[NODES];
    uint8_t source[NODES];
    double value[NODES];  /* probability that it is accepted */
    int16_t place[NODES]; /* in the merged proposal; -1: not in it */
};

int merge_agreed(const struct proposal *chain, const int32_t *tokens, int count)
{
    int agreed = 0;

    while (agreed < chain->count && agreed < count && chain->token[agreed] == tokens[agreed])
        agreed++;
    return agreed;
}

void merge_learn(struct merge *merge, int kind, int compared, int agreed)
{
    for (int depth = 0; depth < compared && depth <= agreed; depth++) {
        merge->tested[kind][depth] = FADE * merge->tested[kind][depth] + 1;
        merge->agreed[kind][depth] = FADE * merge->agreed[kind][depth] + (depth < agreed);
    }
}

void merge_learn_first(struct merge *merge, unsigned compared, unsigned agreed)
{
    for (int kind = 0; kind < MERGE_MOST; kind++)
        if (compared >> kind & 1) {
            merge->compared[kind] = FADE * merge->compared[kind] + 1;
            merge->alone[kind] = FADE * merge->alone[kind] + (agreed == 1u << kind);
        }
}

double merge_alone(const struct merge *merge, int kind)
{
    return (merge->alone[kind] + PRIOR_WEIGHT * PRIOR * PRIOR) / (merge->compared[kind] + PRIOR_WEIGHT);
}

/* A depth that was seldom tested is assumed to be as the one before it. */
double merge_rate(const struct merge *merge, int kind, int depth)
{
    double rate = PRIOR;

    for (int i = 0; i <= depth; i++)
        rate = (merge->agreed[kind][i] + PRIOR_WEIGHT * rate) / (merge->tested[kind][i] + PRIOR_WEIGHT);
    return rate;
}

/* The node of this token behind this parent, which is added if there is none. */
static int step_into(struct trie *trie, int parent, int32_t token)
{
    int node = trie->count;

    for (int i = parent + 1; i < trie->count; i++)
        if (trie->parent[i] == parent && trie->token[i] == token)
            return i;
    trie->token[node] = token;
    trie->parent[node] = (int16_t)parent;
    trie->depth[node] = (int16_t)(parent < 0 ? 0 : trie->depth[parent] + 1);
    trie->source[node] = 0;
    trie->place[node] = -1;
    trie->count++;
    return node;
}

static void add_chain(struct trie *trie, int kind, const struct proposal *chain)
{
    int node = -1;

    for (int i = 0; i < chain->count; i++) {
        node = step_into(trie, node, chain->token[i]);
        trie->source[node] |= (uint8_t)(1 << kind);
    }
}

/* Where several kinds propose the same, one of them is enough to be right. */
static void estimate(struct trie *trie, const struct merge *merge, int kinds)
{
    for (int i = 0; i < trie->count; i++) {
        double wrong = 1;

        for (int kind = 0; kind < kinds; kind++)
            if (trie->source[i] & 1 << kind)
                wrong *= 1 - merge_rate(merge, kind, trie->depth[i]);
        trie->value[i] = (trie->parent[i] < 0 ? 1 : trie->value[trie->parent[i]]) * (1 - wrong);
    }
}

/* The best node that is not taken yet; of equal ones the first. -1: there is none. None is better than its parent, which comes before it. */
static int find_best(const struct trie *trie)
{
    int best = -1;

    for (int i = 0; i < trie->count; i++)
        if (trie->place[i] < 0 && (best < 0 || trie->value[i] > trie->value[best]))
            best = i;
    return best;
}

/* Puts the best into the proposal in the order of the trie, so that parents come first and what is one chain is told as one. */
static void take_best(struct trie *trie, int most, struct merged *merged)
{
    struct proposal *to = &merged->proposal;

    for (int taken = 0, best; taken < most && (best = find_best(trie)) >= 0; taken++)
        trie->place[best] = 0;
    for (int i = 0; i < trie->count; i++) {
        if (trie->place[i] < 0)
            continue;
        trie->place[i] = (int16_t)to->count;
        to->token[to->count] = trie->token[i];
        to->parent[to->count] = (int8_t)(trie->parent[i] < 0 ? -1 : trie->place[trie->parent[i]]);
        to->is_tree |= to->parent[to->count] != to->count - 1;
        merged->source[to->count++] = trie->source[i];
    }
}

void merge_chains(const struct merge *merge, const struct proposal *const *from, int kinds, int most, struct merged *merged)
{
    struct trie trie;

    trie.count = 0;
    merged->is_there = 0;
    for (int kind = 0; kind < kinds; kind++) {
        if (from[kind] == NULL)
            continue;
        if (!merged->is_there)
            merged->proposal = *from[kind];
        merged->is_there = 1;
        add_chain(&trie, kind, from[kind]);
    }
    if (!merged->is_there)
        return;
    merged->proposal.count = merged->proposal.is_tree = 0;
    for (int i = 0; i < MESSAGE_MAX_DRAFT; i++)
        merged->proposal.q[i] = (struct support){0};
    estimate(&trie, merge, kinds);
    take_best(&trie, most, merged);
}

/* Adds the ids of a q to rising ones. Returns how many there are then; -1: there is no room, and they are as they were. */
static int join_ids(int32_t *ids /* [MESSAGE_MAX_SUPPORT] */, int count, const int32_t *more, int mores)
{
    int32_t joined[2 * MESSAGE_MAX_SUPPORT];
    int used = 0;

    if (mores == 0)
        return count;
    for (int i = 0, j = 0; i < count || j < mores; used++) {
        int32_t one = i < count ? ids[i] : INT32_MAX, other = j < mores ? more[j] : INT32_MAX;

        joined[used] = one < other ? one : other;
        i += one <= other;
        j += other <= one;
    }
    if (used > MESSAGE_MAX_SUPPORT)
        return -1;
    memcpy(ids, joined, (size_t)used * sizeof *ids);
    return used;
}

/* The better first, by their first drafts; of equal ones the first. Whoever is tested later gets what those before him leave. */
static void put_in_order(const struct merge *merge, int kinds, int *order /* [kinds] */)
{
    for (int kind = 0; kind < kinds; kind++) {
        int at = kind;

        for (; at > 0 && merge_rate(merge, kind, 0) > merge_rate(merge, order[at - 1], 0); at--)
            order[at] = order[at - 1];
        order[at] = kind;
    }
}

/* How many drafts of each chain are taken: the most probable ones, as if each were as long as it may be. Where a chain ends early may follow from
 * what was drawn in it, so the rows that it leaves stay empty: who is tested may not depend on what another, or he himself, has drawn. Before its
 * first draft the text alone ends it. */
static void share_out(const struct merge *merge, const struct proposal *const *from, const int *order, int kinds, int most, int *taken /* [kinds] */)
{
    double value[MERGE_MOST]; /* of the first one that is not taken */
    int is_first = 1;

    for (int i = 0; i < kinds; i++) {
        int kind = order[i], is_there = from[kind] != NULL && from[kind]->count > 0;

        taken[kind] = 0;
        value[kind] = !is_there ? -1 : is_first ? merge_rate(merge, kind, 0) : merge_alone(merge, kind);
        is_first &= !is_there;
    }
    for (int i = 0; i < most; i++) {
        int best = order[0];

        for (int j = 1; j < kinds; j++)
            if (value[order[j]] > value[best] || (value[order[j]] == value[best] && taken[best] > 0 && taken[order[j]] == 0))
                best = order[j];
        if (value[best] < 0)
            return;
        if (++taken[best] < MESSAGE_MAX_DRAFT)
            value[best] *= merge_rate(merge, best, taken[best]);
    }
    for (int kind = 0; kind < kinds; kind++)
        if (from[kind] != NULL && taken[kind] > from[kind]->count)
            taken[kind] = from[kind]->count;
}

void merge_apart(const struct merge *merge, const struct proposal *const *from, int kinds, int most, struct merged *merged)
{
    const struct proposal *fitting[MERGE_MOST];
    struct proposal *to = &merged->proposal;
    int taken[MERGE_MOST], order[MERGE_MOST], ids = 0, roots = 0;

    merged->is_there = 0;
    for (int kind = 0; kind < kinds; kind++) {
        const struct support *q = from[kind] != NULL ? &from[kind]->q[0] : NULL;
        int joined =
            q == NULL ? ids : join_ids(merged->asked, ids, q->count > 0 ? q->id : from[kind]->token, q->count > 0 ? q->count : from[kind]->count > 0);

        fitting[kind] = joined >= 0 ? from[kind] : NULL;
        ids = joined >= 0 ? joined : ids;
        if (!merged->is_there && fitting[kind] != NULL)
            *to = *fitting[kind];
        merged->is_there |= fitting[kind] != NULL;
    }
    if (!merged->is_there)
        return;
    to->count = to->is_tree = 0;
    put_in_order(merge, kinds, order);
    share_out(merge, fitting, order, kinds, most, taken);
    for (int j = 0; j < kinds; j++)
        for (int i = 0, kind = order[j]; i < taken[kind]; i++, to->count++) {
            to->token[to->count] = fitting[kind]->token[i];
            to->q[to->count] = fitting[kind]->q[i];
            to->parent[to->count] = (int8_t)(i > 0 ? to->count - 1 : -1);
            merged->source[to->count] = (uint8_t)(1 << kind);
            to->is_tree |= i == 0 && to->count > 0;
            roots += i == 0;
        }
    to->asked = roots > 1 ? (struct support){.count = ids, .id = merged->asked} : (struct support){0};
}

void merge_sources(const struct merged *merged, const int32_t *tokens, int count, uint8_t *source)
{
    const struct proposal *proposal = &merged->proposal;

    memset(source, 0, (size_t)count);
    for (int i = 0, parent = -1; i < count; i++) {
        int node = proposal_child(proposal, parent, parent + 1);

        while (node >= 0 && proposal->token[node] != tokens[i])
            node = proposal_child(proposal, parent, node + 1);
        if (node < 0)
            return;
        source[i] = merged->source[node];
        parent = node;
    }
}
