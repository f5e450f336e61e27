/* The shapes of what a drafter proposes: a chain, or a tree of which one path is accepted (SpecInfer, Miao et al. 2024). A
 * tree has as many nodes as --draft-length says; which they are is chosen by a share of each child: how probable it is that the target comes to it,
 * once it has come to its parent. The nodes of the largest products of shares along their paths give the most accepted tokens (Sequoia, Chen et al.
 * 2024, whose dynamic program has the same optimum where shares do not depend on what is chosen beside them). Plain data; pure. */
#ifndef TANDEM_COMMON_SAMPLE_TREE_SHAPE_H
#define TANDEM_COMMON_SAMPLE_TREE_SHAPE_H

enum tree_kind {
    TREE_CHAIN,   /* each token follows the one before it */
    TREE_TOP_K,   /* a child's share is that of its rank, measured once: as a rule the same tree in every round (Medusa, Cai et al. 2024) */
    TREE_DYNAMIC, /* it is what the draft model says of it in its row (EAGLE-2, Li et al. 2024) */
    TREE_SEQUOIA, /* it is that of its rank, measured as the job goes on, so the tree is the best one for the pair and its texts (Sequoia) */
    TREE_IID,     /* several chains that begin at the newest token, of drafts that are drawn (SpecInfer; SpecTr, Sun et al. 2023) */
    TREE_AUTO,    /* one of those above for a while, as the lead says with each request for drafts: the fastest by what it has measured */
    TREE_KINDS,
    TREE_OWN = TREE_KINDS /* a drafter kind's own, which no name asks for */
};

enum { TREE_CHILDREN = 8 /* of a node at most */, TREE_USUAL = 12 /* nodes, where none says how many */, TREE_DEEPEST = 32 };

struct tree_shape {
    enum tree_kind kind;
    int depth; /* nodes of the longest path at most; 0: any number, of iid as many as there are paths */
};

/* The names, for help and for whoever is told another one. */
#define TREE_NAMES "chain, top-k, dynamic, sequoia, iid or auto, or any of these but chain with :depth=N, N from 1 to 32"

/* Reads such a text, as "dynamic:depth=5". 1, or 0 with *shape as it was. */
int tree_shape_read(const char *text, struct tree_shape *shape);
/* Without its depth. */
const char *tree_shape_name(enum tree_kind kind);
/* The shape of one proposal: the job's, or where that is TREE_AUTO the one that the lead asked for. */
struct tree_shape tree_shape_of(const struct tree_shape *job, enum tree_kind asked);
/* Levels that a tree of so many nodes may have: steps of the draft model. */
int tree_shape_depth(const struct tree_shape *shape, int nodes);
/* The same of children that are drawn, in the order in which they are, of which nothing else may be asked before they are drawn.  shares: [count] */
void tree_shape_shares_drawn(int count, float *shares);
/* The logarithms of the shares of a node's children, the most probable first.  is_greedy: at temperature 0, else with the target's noise  scores:
 * [count] of the draft model, on the scale of logarithms of probabilities but for a constant, falling  shares: [count], at most 0 */
void tree_shape_shares(const struct tree_shape *shape, int is_greedy, const float *scores, int count, float *shares);

/* How often the target came to a node's child, by the child's rank. */
struct tree_ranks {
    double tested[TREE_CHILDREN], right[TREE_CHILDREN];
};

/* A node to which the target came had so many children, and it came to the one of that rank next; -1: to none of them. */
void tree_ranks_add(struct tree_ranks *ranks, int children, int right);
/* The logarithms of the shares by that; of ranks that were seldom tested nearly those of top-k.  shares: [count], falling, below 0 */
void tree_ranks_shares(const struct tree_ranks *ranks, int count, float *shares);

#endif
