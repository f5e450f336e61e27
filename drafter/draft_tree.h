/* A tree of drafts in the making: the tokens of the largest products of shares along their paths, as many as are wanted. It owns its nodes.
 * Invariant: no node that was left out is better than one that is here, and the parent of each is here. Pure: never allocates, knows no model. */
#ifndef TANDEM_DRAFTER_DRAFT_TREE_H
#define TANDEM_DRAFTER_DRAFT_TREE_H

#include "common/wire/message.h"

struct draft_tree_node {
    int32_t token; /* -1: not known, or there is none */
    int parent;  /* index of a node; -1: the committed text */
    int depth;   /* tokens of its path */
    int number;  /* among its siblings */
    int place;   /* behind the committed text in the draft model's cache; -1: it is not there */
    float share; /* logarithm of the product of the shares along its path */
};

struct draft_tree {
    int wanted;
    int count;
    struct draft_tree_node node[MESSAGE_MAX_DRAFT]; /* [count] in no order */
};

/* wanted: 1 .. MESSAGE_MAX_DRAFT nodes */
void draft_tree_begin(struct draft_tree *tree, int wanted);
/* All nodes, of no token yet, where each may have as many children with these shares, on paths of at most `depth` tokens: a function of the numbers
 * alone, as it must be where children are drawn. Were a place of a child that cannot be drawn given to another node, it would depend on the coins of
 * later positions which drafts there are.  shares: [count] logarithms, falling, at most 0 */
void draft_tree_plan(struct draft_tree *tree, int wanted, int depth, const float *shares, int count);
/* The same of chains that begin at the committed text, of at most `depth` nodes each, as many as there are nodes for. */
void draft_tree_plan_paths(struct draft_tree *tree, int wanted, int depth);
/* The child of this node of this number; -1: there is none. */
int draft_tree_child(const struct draft_tree *tree, int parent, int number);
/* The node at this place of the cache; -1: it is not among the best any more. */
int draft_tree_at(const struct draft_tree *tree, int place);
/* Adds the children of a node (-1: of the committed text), each once, that are among the best.  shares: [count] logarithms, at most 0 */
void draft_tree_add(struct draft_tree *tree, int parent, const int32_t *tokens, const float *shares, int count);
/* Writes the nodes that have a token into a proposal, parents first, and siblings by their number. Returns how many.  tokens, parents, nodes:
 * [tree->count]; nodes: which node each is */
int draft_tree_write(const struct draft_tree *tree, int32_t *tokens, int8_t *parents, int8_t *nodes);
/* The index that a node which has a token gets there, whatever follows it in the tree. */
int draft_tree_index(const struct draft_tree *tree, int node);

#endif
