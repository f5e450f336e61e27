#include "drafter/draft_tree.h"

#include "common/sample/tree_shape.h"

#include <string.h>

void draft_tree_begin(struct draft_tree *tree, int wanted)
{
    tree->wanted = wanted;
    tree->count = 0;
}

int draft_tree_at(const struct draft_tree *tree, int place)
{
    for (int i = 0; i < tree->count; i++)
        if (tree->node[i].place == place)
            return i;
    return -1;
}

/* The one that goes first: of the least share, and of those the deepest, so that no child of it is there. */
static int worst_of(const struct draft_tree *tree)
{
    int worst = 0;

    for (int i = 1; i < tree->count; i++) {
        const struct draft_tree_node *node = &tree->node[i], *least = &tree->node[worst];

        if (node->share < least->share || (node->share == least->share && node->depth > least->depth))
            worst = i;
    }
    return worst;
}

/* A place among the best for a node of this share; NULL: it is none of them. A parent is never less than its child, so it keeps its place. */
static struct draft_tree_node *room_for(struct draft_tree *tree, float share)
{
    int worst;

    if (tree->count < tree->wanted)
        return &tree->node[tree->count++];
    worst = worst_of(tree);
    return share > tree->node[worst].share ? &tree->node[worst] : NULL;
}

void draft_tree_add(struct draft_tree *tree, int parent, const int32_t *tokens, const float *shares, int count)
{
    static const struct draft_tree_node root = {0};
    const struct draft_tree_node above = parent < 0 ? root : tree->node[parent];

    for (int i = 0; i < count; i++) {
        struct draft_tree_node *node = room_for(tree, above.share + shares[i]);

        if (node != NULL)
            *node = (struct draft_tree_node){
                .token = tokens[i], .parent = parent, .depth = above.depth + 1, .number = i, .place = -1, .share = above.share + shares[i]};
    }
}

/* Does a node come before another one, of the same depth or less? Of the same depth their parents are written. */
static int comes_before(const struct draft_tree_node *a, const struct draft_tree_node *b, const int8_t *written)
{
    int parent_a = a->parent < 0 ? -1 : written[a->parent], parent_b = b->parent < 0 ? -1 : written[b->parent];

    if (a->depth != b->depth)
        return a->depth < b->depth;
    return parent_a != parent_b ? parent_a < parent_b : a->number < b->number;
}

void draft_tree_plan(struct draft_tree *tree, int wanted, int depth, const float *shares, int count)
{
    int32_t tokens[MESSAGE_MAX_DRAFT];

    memset(tokens, -1, sizeof tokens);
    draft_tree_begin(tree, wanted);
    draft_tree_add(tree, -1, tokens, shares, count);
    for (int level = 1; level < depth; level++)
        for (int i = 0; i < tree->count; i++)
            if (tree->node[i].depth == level)
                draft_tree_add(tree, i, tokens, shares, count);
}

void draft_tree_plan_paths(struct draft_tree *tree, int wanted, int depth)
{
    static const int32_t tokens[TREE_CHILDREN] = {-1, -1, -1, -1, -1, -1, -1, -1};
    static const float shares[TREE_CHILDREN] = {0};
    int paths = (wanted + depth - 1) / depth;

    draft_tree_begin(tree, wanted);
    draft_tree_add(tree, -1, tokens, shares, paths < TREE_CHILDREN ? paths : TREE_CHILDREN);
    for (int i = 0; i < tree->count; i++) /* level by level, for what is added comes last */
        if (tree->node[i].depth < depth)
            draft_tree_add(tree, i, tokens, shares, 1);
}

int draft_tree_child(const struct draft_tree *tree, int parent, int number)
{
    for (int i = 0; i < tree->count; i++)
        if (tree->node[i].parent == parent && tree->node[i].number == number)
            return i;
    return -1;
}

int draft_tree_write(const struct draft_tree *tree, int32_t *tokens, int8_t *parents, int8_t *nodes)
{
    int8_t written[MESSAGE_MAX_DRAFT];
    int count = 0, next;

    memset(written, -1, sizeof written);
    do {
        next = -1;
        for (int i = 0; i < tree->count; i++)
            if (written[i] < 0 && tree->node[i].token >= 0 && (next < 0 || comes_before(&tree->node[i], &tree->node[next], written)))
                next = i;
        if (next < 0)
            break;
        tokens[count] = tree->node[next].token;
        parents[count] = tree->node[next].parent < 0 ? -1 : written[tree->node[next].parent];
        nodes[count] = (int8_t)next;
        written[next] = (int8_t)count++;
    } while (count < tree->count);
    return count;
}

int draft_tree_index(const struct draft_tree *tree, int node)
{
    int32_t tokens[MESSAGE_MAX_DRAFT];
    int8_t parents[MESSAGE_MAX_DRAFT], nodes[MESSAGE_MAX_DRAFT];
    int count = draft_tree_write(tree, tokens, parents, nodes), index = 0;

    while (index < count && nodes[index] != node)
        index++;
    return index;
}
