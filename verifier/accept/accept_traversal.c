/* Traversal verification of a tree (Weng et al. 2025, arXiv:2505.12398): paths are judged from their leaves. Each node has a share, how far it may
 * stand by itself: 1 at the root, and min(1, share p / q) at a child of a node with this share. The first path's leaf stands with its share, and with
 * it all in front of it; if it falls it is taken away, its parent keeps norm(max(0, share p - q)) of p and Z / (Z + 1 - share) of its share, Z the
 * sum of that, and the next path is judged; a node whose children are all taken away is a leaf. The root stands. Siblings are drawn without
 * replacement. On a chain that is block verification.
 *
 * What is left of p at a node is max(0, p - m q) but for its norm, as in accept_siblings.c. */
#include "verifier/accept/accept_rule.h"

#include "common/sample/rule.h"

#include <math.h>

struct traversal {
    const struct sampling *sampling;
    const struct target_row *targets;
    const struct proposal *proposal;
    const struct rng_key *key;
    struct verdict verdict;
};

/* A node, and what is left at its row after those of its children that fell. */
struct place {
    int node, depth; /* -1 and 0 are the text itself */
    double share;
    double norm, taken, left; /* the sum of max(0, p - taken q), and what of q is not drawn yet */
};

static double coin_of(const struct traversal *traversal, const struct place *place)
{
    const struct rng_key here = accept_key(traversal->key, place->depth - 1);

    return rng_coin(&here, RNG_ACCEPT, rule_tree_coin(traversal->sampling, place->depth - 1, place->node));
}

static void take_away(struct place *place, const struct target_row *target, const struct support *q, int32_t drawn, double of_q)
{
    double more;

    place->taken += place->norm / (place->share * place->left);
    more = place->share / place->norm;
    place->norm = fmax(0, 1 - place->taken * accept_overlap_of(target, q, drawn, 1 / place->taken));
    more *= place->norm;
    place->share = more + 1 - place->share > 0 ? more / (more + 1 - place->share) : 1;
    place->left -= of_q;
}

/* Writes the path to where it ends, and what is drawn there.  first: child of the place, -1: it has none */
static void stand(struct traversal *traversal, const struct place *place, int first)
{
    struct verdict *verdict = &traversal->verdict;

    *verdict = (struct verdict){.accepted = place->depth, .refused = (int8_t)first, .draw = first < 0 ? DRAW_PLAIN : DRAW_RESIDUAL};
    verdict->residual = (struct residual){.of_p = 1, .of_q = first < 0 ? 1 : place->taken};
    for (int depth = place->depth, node = place->node; depth > 0; node = proposal_parent(traversal->proposal, node))
        verdict->node[--depth] = (int8_t)node;
}

/* Judges the paths through this place, of which no child has fallen yet; 1: one of them stands. At most MESSAGE_MAX_DRAFT deep. */
static int judge(struct traversal *traversal, struct place place)
{
    const struct proposal *proposal = traversal->proposal;
    const struct target_row *target = &traversal->targets[place.node + 1];
    int first = proposal_child(proposal, place.node, place.node + 1);

    for (int child = first; child >= 0 && place.left > 0 && place.norm > 0 && place.share > 0;
         child = proposal_child(proposal, place.node, child + 1)) {
        const struct support *q = &proposal->q[first];
        int32_t drawn = proposal->token[first];
        double of_q = accept_q(q, drawn, proposal->token[child]);
        double p = fmax(0, accept_p(target, q, proposal->token[child]) - place.taken * of_q) / place.norm;

        if (of_q <= 0)
            continue; /* no q has drawn it */
        if (judge(
                traversal,
                (struct place){.node = child, .depth = place.depth + 1, .share = fmin(1, place.share * p * place.left / of_q), .norm = 1, .left = 1}))
            return 1;
        take_away(&place, target, q, drawn, of_q);
    }
    if (place.node >= 0 && !(coin_of(traversal, &place) < place.share))
        return 0;
    stand(traversal, &place, first);
    return 1;
}

struct verdict accept_traversal(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                                const struct rng_key *key)
{
    struct traversal traversal = {.sampling = sampling, .targets = targets, .proposal = proposal, .key = key};

    if (drafted == 0)
        return verdict_of_chain(0, 0, DRAW_PLAIN);
    judge(&traversal, (struct place){.node = -1, .share = 1, .norm = 1, .left = 1});
    return traversal.verdict;
}
