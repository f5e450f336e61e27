/* Trees of drafts, for rules that decide about any tree: level by level, those tokens of a level that are among the best of all so far are fed in one
 * step, each seeing its own path. Of a row the tokens that the target would most probably come to are its children (choice_rank), with shares by the
 * tree's shape. */
#include "drafter/draft_model.h"

#include "common/base/try.h"
#include "common/sample/choice.h"
#include "common/sample/rule.h"

int draft_model_grows(const struct model_draft *state, const struct mirror *mirror)
{
    return state->shape.kind != TREE_CHAIN && mirror->wanted > 1 && rule_of(&mirror->sampling)->trees;
}

/* Adds the children that the row says. */
static void take_children(struct model_draft *state, const struct draft_job *job, const struct row_query *query)
{
    struct draft_tree *tree = &state->tree[job->mirror->slot];
    int at = job->node < 0 ? -1 : draft_tree_at(tree, job->node), count;
    float scores[TREE_CHILDREN], shares[TREE_CHILDREN];
    int32_t tokens[TREE_CHILDREN];
    struct listed listed;

    if (at < 0 && job->node >= 0)
        return; /* others of its level have better children */
    draft_model_list(state, job, query, &listed);
    count = choice_rank(&job->mirror->sampling, &query->key, -1, listed.best, listed.count, TREE_CHILDREN, tokens, scores);
    if (count > 0)
        tree_shares(&state->shape, job->mirror->sampling.temperature == 0, scores, count, shares);
    draft_tree_add(tree, at, tokens, shares, count);
}

/* Puts those nodes of the level into the mirror's tree for which there is room. Returns how many jobs there are then. */
static int add_level(struct model_draft *state, struct mirror *mirror, int level, struct draft_job *jobs, int count)
{
    struct draft_tree *tree = &state->tree[mirror->slot];

    for (int i = 0; i < tree->count && level < tree_depth(&state->shape, mirror->wanted); i++) {
        struct draft_tree_node *node = &tree->node[i];
        int parent = node->parent < 0 ? -1 : tree->node[node->parent].place;

        if (node->depth == level && node->place < 0 && count < BACKEND_MAX_ROWS && (node->place = mirror_grow(mirror, parent, node->token)) >= 0)
            jobs[count++] = (struct draft_job){.mirror = mirror, .branch = JOB_TREE, .node = node->place};
    }
    return count;
}

/* As many trees as one step has room for, whatever their levels are. */
static enum status grow(struct model_draft *state, struct mirror *const *mirrors, int count)
{
    struct draft_job jobs[BACKEND_MAX_ROWS];
    int asking = 0;

    for (int i = 0; i < count; i++) {
        struct mirror *mirror = mirrors[i];

        draft_tree_begin(&state->tree[mirror->slot], mirror->wanted);
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

enum status draft_model_propose_trees(struct model_draft *state, struct mirror *const *mirrors, int count, struct draft_output *const *outputs)
{
    int most = state->model->max_rows < BACKEND_MAX_ROWS ? state->model->max_rows : BACKEND_MAX_ROWS; /* at most state->jobs, where there are trees */

    for (int first = 0, next; first < count; first = next) {
        int rows = mirrors[first]->wanted;

        for (next = first + 1; next < count && rows + mirrors[next]->wanted <= most; next++)
            rows += mirrors[next]->wanted;
        TRY(grow(state, mirrors + first, next - first));
    }
    for (int i = 0; i < count; i++) {
        const struct draft_tree *tree = &state->tree[mirrors[i]->slot];

        outputs[i]->count = tree->count;
        outputs[i]->is_tree = 1;
        for (int k = 0; k < tree->count; k++)
            outputs[i]->q[k] = (struct support){0};
        draft_tree_write(tree, outputs[i]->token, outputs[i]->parent);
    }
    return STATUS_OK;
}
