#include "common/sample/tree_shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
    [TREE_CHAIN] = "chain", [TREE_TOP_K] = "top-k", [TREE_DYNAMIC] = "dynamic", [TREE_SEQUOIA] = "sequoia", [TREE_IID] = "iid", [TREE_AUTO] = "auto"};
_Static_assert(sizeof names / sizeof names[0] == TREE_KINDS, "a name for each");

/* A draft model is surer of its best token than its distribution says where the target takes its best, too, and where both see the same noise: shares
 * are in proportion to powers of what it says. These gave the longest paths on the embedded pair: launch/bench/results/trees.md. */
#define SHARPER_GREEDY 4.0
#define SHARPER_NOISE  1.5

/* How often the target's own token was the draft model's first choice, its second ..: `tandem alpha` of the embedded pair at temperature 0. */
static const float by_rank[TREE_CHILDREN] = {0.716F, 0.149F, 0.045F, 0.02F, 0.018F, 0.014F, 0.007F, 0.004F};

#define FADE         0.99 /* of what was counted before */
#define PRIOR_WEIGHT 8.0  /* nodes that by_rank counts as */

int tree_shape_read(const char *text, struct tree_shape *shape)
{
    static const char key[] = ":depth=";
    size_t length = strcspn(text, ":");
    long depth = 0;

    if (text[length] != '\0') {
        const char *number = text + length + strlen(key);
        char *end;

        if (strncmp(text + length, key, strlen(key)) != 0 || *number < '1' || *number > '9')
            return 0;
        depth = strtol(number, &end, 10);
        if (*end != '\0' || depth > TREE_DEEPEST)
            return 0;
    }
    for (int i = 0; i < TREE_KINDS; i++)
        if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0 && (i != TREE_CHAIN || depth == 0)) {
            *shape = (struct tree_shape){.kind = (enum tree_kind)i, .depth = (int)depth};
            return 1;
        }
    return 0;
}

const char *tree_shape_name(enum tree_kind kind)
{
    return names[kind];
}

struct tree_shape tree_shape_of(const struct tree_shape *job, enum tree_kind asked)
{
    struct tree_shape shape = *job;

    if (shape.kind == TREE_AUTO)
        shape.kind = asked;
    return shape;
}

int tree_shape_depth(const struct tree_shape *shape, int nodes)
{
    int square = 1, depth;

    while (square * square < nodes)
        square++;
    depth = shape->depth > 0 ? shape->depth : shape->kind == TREE_IID ? square : nodes;
    return depth < nodes ? depth : nodes;
}

void tree_shape_shares_drawn(int count, float *shares)
{
    for (int i = 0; i < count; i++)
        shares[i] = logf(by_rank[i < TREE_CHILDREN ? i : TREE_CHILDREN - 1]);
}

void tree_shape_shares(const struct tree_shape *shape, int is_greedy, const float *scores, int count, float *shares)
{
    double power = is_greedy ? SHARPER_GREEDY : SHARPER_NOISE, sum = 0;

    if (shape->kind != TREE_DYNAMIC) {
        tree_shape_shares_drawn(count, shares);
        return;
    }
    for (int i = 0; i < count; i++)
        sum += exp(power * ((double)scores[i] - (double)scores[0]));
    for (int i = 0; i < count; i++)
        shares[i] = (float)(power * ((double)scores[i] - (double)scores[0]) - log(sum));
}

void tree_ranks_add(struct tree_ranks *ranks, int children, int right)
{
    for (int i = 0; i < children && i < TREE_CHILDREN; i++) {
        ranks->tested[i] = FADE * ranks->tested[i] + 1;
        ranks->right[i] = FADE * ranks->right[i] + (i == right);
    }
}

void tree_ranks_shares(const struct tree_ranks *ranks, int count, float *shares)
{
    for (int i = 0; i < count; i++) {
        shares[i] = logf((float)((ranks->right[i] + PRIOR_WEIGHT * (double)by_rank[i]) / (ranks->tested[i] + PRIOR_WEIGHT)));
        if (i > 0 && shares[i] > shares[i - 1])
            shares[i] = shares[i - 1]; /* the draft model's order is as good as any where counts do not bear it out */
    }
}
