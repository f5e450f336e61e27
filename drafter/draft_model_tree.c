/* Trees of drafts, for rules that decide about them: level by level, the best tokens of a level that are among the best of all so far are fed in one
 * step, each seeing its own path. For rules that compare tokens the children of a row are the tokens that the target would most probably come to
 * (choice_rank), with shares by the tree's shape. For those that ask for q they are drawn from it, and which there may be
 * is known before anything is drawn. */
#include "drafter/draft_model.h"

#include "common/base/try.h"
#include "common/sample/choice.h"
#include "common/sample/siblings.h"
#include "drafter/draft_broken.h"

/* Nodes of a level that are fed: of more the paths were shorter, as there is room for so many in all (launch/bench/results/trees.md). */
enum { LEVEL_MOST = 6 };

int draft_model_grows(const struct model_draft *state, const struct mirror *mirror)
{
    return tree_shape_of(&state->shape, mirror->shape).kind != TREE_CHAIN && mirror->wanted > 1 && rule_of(&mirror->sampling)->trees;
}

/* The q of the row of a node of the mirror's tree; -1: of its root. There are no branches beside a tree, so all outputs of the slot are free. */
static struct sparse_q *q_behind(const struct model_draft *state, const struct mirror *mirror, int place)
{
    return draft_model_q(state, mirror, 0) + place + 1;
}

_Static_assert((1 + MIRROR_BRANCHES) * MESSAGE_MAX_DRAFT > MIRROR_ROOM, "a q for each token of a tree in the cache, and its root");

/* Returns how many.  tokens, shares: [TREE_CHILDREN] */
static int rank_children(const struct model_draft *state, const struct draft_job *job, const struct row_query *query, int32_t *tokens, float *shares)
{
    const struct sampling *sampling = &job->mirror->sampling;
    const struct tree_shape shape = tree_shape_of(&state->shape, job->mirror->shape);
    float scores[TREE_CHILDREN];
    struct listed listed;
    int count;

    draft_model_list(state, job, query, &listed);
    count = choice_rank(sampling, &query->key, -1, listed.best, listed.count, TREE_CHILDREN, tokens, scores);
    if (count > 0 && shape.kind == TREE_SEQUOIA)
        tree_ranks_shares(&state->ranks, count, shares);
    else if (count > 0)
        tree_shape_shares(&shape, sampling->temperature == 0, scores, count, shares);
    return count;
}

static int draws(const struct mirror *mirror)
{
    return rule_of(&mirror->sampling)->siblings != RULE_SIBLINGS_ANY;
}

/* Those that were planned, as far as q has tokens for them: where it has not, their places stay empty, and all that would follow them. */
static void draw_children(const struct model_draft *state, const struct draft_job *job, const struct row_query *query)
{
    const struct sampling *sampling = &job->mirror->sampling;
    struct draft_tree *tree = &state->tree[job->mirror->slot];
    struct sparse_q *q = q_behind(state, job->mirror, job->node);
    int at = job->node < 0 ? -1 : draft_tree_at(tree, job->node), child;
    int is_looked_at = at >= 0 && rule_of(sampling)->looks_on; /* else the position says all */
    uint32_t coin = is_looked_at ? rule_tree_coin(sampling, tree->node[at].depth, draft_tree_index(tree, at) + 1) : 0;
    int32_t tokens[TREE_CHILDREN];

    choice_draw(sampling, state->support, state->vocab, query, state->p, q);
    const struct siblings_q drawn_from = {.count = q->count, .id = q->id, .weight = q->weight};

    for (int number = 0; (child = draft_tree_child(tree, at, number)) >= 0; number++) {
        tokens[number] = state->breakage == BREAKAGE_SIBLING_TOP_K
                             ? draft_broken_best(q, number)
                             : siblings_draw(&drawn_from, rule_of(sampling)->siblings, tokens, number, coin, &query->key);
        tree->node[child].token = tokens[number];
        if (tokens[number] < 0)
            return;
    }
}

static void take_children(struct model_draft *state, const struct draft_job *job, const struct row_query *query)
{
    struct draft_tree *tree = &state->tree[job->mirror->slot];
    int at = job->node < 0 ? -1 : draft_tree_at(tree, job->node), count;
    float shares[TREE_CHILDREN];
    int32_t tokens[TREE_CHILDREN];

    if (query == NULL)
        return; /* nothing is known to follow */
    if (draws(job->mirror)) {
        draw_children(state, job, query);
        return;
    }
    if (at < 0 && job->node >= 0)
        return; /* others of its level have better children */
    count = rank_children(state, job, query, tokens, shares);
    draft_tree_add(tree, at, tokens, shares, count);
}

/* The best node of the level that is not in the mirror's tree and that something may follow; -1: none. */
static int next_of_level(const struct draft_tree *tree, const struct mirror *mirror, int level)
{
    int best = -1;

    for (int i = 0; i < tree->count; i++) {
        const struct draft_tree_node *node = &tree->node[i];

        if (draws(mirror) && (node->token < 0 || draft_tree_child(tree, i, 0) < 0))
            continue; /* it is not there, or nothing is to follow it */
        if (node->depth == level && node->place < 0 && (best < 0 || node->share > tree->node[best].share))
            best = i;
    }
    return best;
}

/* Where drafts are drawn all are fed that have children: which, the plan says. */
static int most_of_level(const struct mirror *mirror)
{
    return draws(mirror) ? BACKEND_MAX_ROWS : LEVEL_MOST;
}

/* Puts nodes of the level into the mirror's tree, the best first, while there is room. Returns how many jobs there are then. */
static int add_level(struct model_draft *state, struct mirror *mirror, int level, struct draft_job *jobs, int count)
{
    struct draft_tree *tree = &state->tree[mirror->slot];
    int left = level < tree_shape_depth(&state->shape, mirror->wanted) ? most_of_level(mirror) : 0;

    for (int at; left-- > 0 && count < BACKEND_MAX_ROWS && (at = next_of_level(tree, mirror, level)) >= 0;) {
        struct draft_tree_node *node = &tree->node[at];

        node->place = mirror_grow(mirror, node->parent < 0 ? -1 : tree->node[node->parent].place, node->token);
        if (node->place < 0)
            break; /* there is no room */
        jobs[count++] = (struct draft_job){.mirror = mirror, .branch = JOB_TREE, .node = node->place};
    }
    return count;
}

/* Counts which children the committed text came to in the tree before. Not where they are drawn: which drafts there are may not follow from what
 * became of others that are still to be decided. */
static void learn(struct model_draft *state, const struct mirror *mirror)
{
    const struct draft_tree *tree = &state->tree[mirror->slot];
    struct grown *grown = &state->grown[mirror->slot];
    int place = grown->opened == mirror->opened ? grown->length : mirror->length, at = -1, next = 0;

    for (; place < mirror->length && next >= 0; place++) {
        int children = 0, right = -1;

        next = -1;
        for (int child; (child = draft_tree_child(tree, at, children)) >= 0; children++)
            if (tree->node[child].token == mirror->tokens[place]) {
                right = children;
                next = child;
            }
        tree_ranks_add(&state->ranks, children, right);
        at = next;
    }
    *grown = (struct grown){.opened = mirror->opened, .length = mirror->length};
}

static void begin_tree(struct model_draft *state, const struct mirror *mirror)
{
    const struct tree_shape shape = tree_shape_of(&state->shape, mirror->shape);
    struct draft_tree *tree = &state->tree[mirror->slot];
    int depth = tree_shape_depth(&shape, mirror->wanted);
    float shares[TREE_CHILDREN];

    tree_shape_shares_drawn(TREE_CHILDREN, shares);
    if (!draws(mirror)) {
        if (state->shape.kind == TREE_SEQUOIA || state->shape.kind == TREE_AUTO) /* whose other trees say as much */
            learn(state, mirror);
        draft_tree_begin(tree, mirror->wanted);
    } else if (shape.kind == TREE_IID) {
        draft_tree_plan_paths(tree, mirror->wanted, depth);
    } else {
        draft_tree_plan(tree, mirror->wanted, depth, shares, TREE_CHILDREN);
    }
}

/* As many trees as one step has room for, whatever their levels are. */
static enum status grow(struct model_draft *state, struct mirror *const *mirrors, int count)
{
    struct draft_job jobs[BACKEND_MAX_ROWS];
    int asking = 0;

    for (int i = 0; i < count; i++) {
        struct mirror *mirror = mirrors[i];

        begin_tree(state, mirror);
        mirror->tree.count = mirror->drafted = 0;
        mirror->cached = mirror->cached < mirror->length ? mirror->cached : mirror->length - 1;
        jobs[asking++] = (struct draft_job){.mirror = mirror, .branch = JOB_TREE, .node = -1};
    }
    for (int level = 1; asking > 0; level++) {
        TRY(draft_model_step(state, jobs, asking, take_children));
        asking = 0;
        for (int i = 0; i < count; i++)
            asking = add_level(state, mirrors[i], level, jobs, asking);
    }
    return STATUS_OK;
}

/* Of drafts that were drawn the first of each row has the row's q. */
static void write_tree(const struct model_draft *state, const struct mirror *mirror, struct draft_output *output)
{
    const struct draft_tree *tree = &state->tree[mirror->slot];
    int8_t nodes[MESSAGE_MAX_DRAFT];

    output->is_tree = 1;
    output->count = draft_tree_write(tree, output->token, output->parent, nodes);
    for (int i = 0; i < output->count; i++) {
        const struct draft_tree_node *node = &tree->node[nodes[i]];
        const struct sparse_q *q = q_behind(state, mirror, node->parent < 0 ? -1 : tree->node[node->parent].place);

        output->q[i] =
            draws(mirror) && node->number == 0 ? (struct support){.count = q->count, .id = q->id, .weight = q->weight} : (struct support){0};
    }
}

enum status draft_model_propose_trees(struct model_draft *state, struct mirror *const *mirrors, int count, struct draft_output *const *outputs)
{
    int most = state->max_rows < BACKEND_MAX_ROWS ? state->max_rows : BACKEND_MAX_ROWS; /* at most state->jobs, where there are trees */

    for (int first = 0, next; first < count; first = next) {
        int rows = mirrors[first]->wanted;

        for (next = first + 1; next < count && rows + mirrors[next]->wanted <= most; next++)
            rows += mirrors[next]->wanted;
        TRY(grow(state, mirrors + first, next - first));
    }
    for (int i = 0; i < count; i++)
        write_tree(state, mirrors[i], outputs[i]);
    return STATUS_OK;
}
