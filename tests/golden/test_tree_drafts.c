/* The trees that a draft model proposes: after any path of them was committed, a drafter that moved the path in its cache proposes just what one does
 * that reads the text anew. */
#include "common/base/digest.h"
#include "common/sample/rule.h"
#include "drafter/draft_model.h"
#include "drafter/run_ahead.h"
#include "tests/support/draft_rig.h"
#include "tests/support/golden.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#ifndef BACKEND
#define BACKEND backend_cpu
enum { MODELS = 3 };
#else
enum { MODELS = 1 }; /* files made of texts are on the host */
#endif

enum { SLOTS = 8, ROUNDS = 6, NODES = 14, MIXED_ROUNDS = 10, BRANCHES = 3 };

static char model_path[GOLDEN_PATH];
static const char *const models[] = {model_path, "ngram", "datastore"}; /* of draft_rig */
static const char *model;
static struct draft_rig rig, anew;
static enum tree_kind next_shape; /* that a Commit asks for, in a job that leaves it to the lead */

/* Greedy, coupled and walk, some that penalties or truncation leave to the host (a node's own path is what they count), one whose drafts are chains,
 * and two that draw siblings from q. */
static struct sampling sampling_of(int slot)
{
    struct sampling sampling = sampling_default;

    sampling.seed = 9;
    sampling.temperature = slot < 2 ? 0.0 : 0.9;
    sampling.accept = slot == 7   ? ACCEPT_WITHOUT_REPLACEMENT
                      : slot == 6 ? ACCEPT_MULTISTEP
                      : slot == 5 ? ACCEPT_REJECTION
                      : slot == 4 ? ACCEPT_WALK
                                  : ACCEPT_COUPLED;
    if (slot == 1 || slot == 3)
        sampling.repetition_penalty = 1.4;
    if (slot == 4)
        sampling.top_k = 6;
    if (slot == 7)
        sampling.top_p = 0.6;
    return sampling;
}

static void open_rig(struct draft_rig *opened, enum tree_kind kind)
{
    const struct tree_shape shape = {.kind = kind};

    memset(opened, 0, sizeof *opened);
    opened->runs_ahead = 1;
    draft_rig_open(opened, model, &BACKEND, 1, SLOTS, sampling_of);
    draft_shape(&opened->draft, &shape);
    for (int s = 0; s < SLOTS; s++)
        opened->mirror[s].wanted = NODES - s;
}

static void is_as_drafted_anew(int s)
{
    const struct draft_output *a = &rig.output[s], *b = &anew.output[s];
    int is_tree = rule_of(&rig.mirror[s].sampling)->trees;

    assert_int_equal(a->count, b->count);
    assert_true(a->count == rig.mirror[s].wanted || (s == 7 && a->count < rig.mirror[s].wanted)); /* q may have too few tokens */
    assert_int_equal(a->is_tree != 0, is_tree);
    assert_memory_equal(a->token, b->token, (size_t)a->count * sizeof *a->token);
    for (int i = 0; i < a->count && is_tree; i++) {
        int draws = rule_of(&rig.mirror[s].sampling)->siblings != RULE_SIBLINGS_ANY, is_first = 1;

        assert_int_equal(a->parent[i], b->parent[i]);
        for (int k = 0; k < i; k++) {
            is_first &= a->parent[k] != a->parent[i];
            /* siblings are different tokens, unless each is drawn from all of q */
            assert_true(s == 6 || a->parent[k] != a->parent[i] || a->token[k] != a->token[i]);
        }
        assert_int_equal(a->q[i].count > 0, draws && is_first);
        assert_int_equal(a->q[i].count, b->q[i].count);
        assert_memory_equal(a->q[i].weight, b->q[i].weight, (size_t)a->q[i].count * sizeof *a->q[i].weight);
    }
}

/* Where siblings are drawn, a planned node is there if and only if its parent is and the parent's q has tokens enough: whatever was drawn elsewhere,
 * and however. So no draft's being there tells anything of its coins, or of those of later positions. Returns how many are not there. */
static int is_planned(int s)
{
    const struct draft_output *output = &rig.output[s];
    int at[MESSAGE_MAX_DRAFT], left = 0;
    float shares[TREE_CHILDREN];
    struct draft_tree plan;

    tree_shape_shares_drawn(TREE_CHILDREN, shares);
    draft_tree_plan(&plan, rig.mirror[s].wanted, rig.mirror[s].wanted, shares, TREE_CHILDREN);
    for (int depth = 1; depth <= plan.count; depth++)
        for (int i = 0; i < plan.count; i++) {
            const struct draft_tree_node *node = &plan.node[i];
            int parent = node->parent < 0 ? -1 : at[node->parent], support = -1, number = 0;

            if (node->depth != depth)
                continue;
            at[i] = -2;
            for (int k = 0; k < output->count && parent >= -1; k++)
                if (output->parent[k] == parent) {
                    support = support < 0 ? output->q[k].count : support;
                    at[i] = number++ == node->number ? k : at[i];
                }
            assert_int_equal(at[i] >= 0, parent >= -1 && (s == 6 || node->number < support));
            left += at[i] < 0;
        }
    assert_int_equal(output->count + left, plan.count);
    return left;
}

/* The tokens of the path to a node of the tree, or of the chain. Returns how many. */
static int path_to(const struct draft_output *output, int node, int32_t *tokens)
{
    int depth = 0, at = node;

    for (; at >= 0; at = output->is_tree ? output->parent[at] : at - 1)
        depth++;
    for (int i = depth - 1, to = node; i >= 0; i--) {
        tokens[i] = output->token[to];
        to = output->is_tree ? output->parent[to] : to - 1;
    }
    return depth;
}

/* Commits the path to that node and another token, on the one side by moving what is in the cache, on the other by reading all of it again. Returns
 * how many moves it took. */
static int commit(int s, int node, int32_t token)
{
    struct mirror *mirror = &rig.mirror[s], *other = &anew.mirror[s];
    struct mirror_move move, path[MESSAGE_MAX_COMMIT];
    int32_t tokens[MESSAGE_MAX_COMMIT];
    int accepted = path_to(&rig.output[s], node, tokens), moves;

    tokens[accepted] = token;
    const struct commit commit = {.request = mirror->request,
                                  .old_length = (uint32_t)mirror->length,
                                  .accepted = (uint32_t)accepted,
                                  .tokens = tokens,
                                  .count = accepted + 1,
                                  .keep = (uint32_t)(mirror->length + accepted),
                                  .digest = digest_tokens(mirror->digest, tokens, (uint32_t)accepted + 1),
                                  .draft_length = (uint32_t)(NODES - s),
                                  .shape = (uint32_t)next_shape};

    moves = mirror_path(mirror, &commit, path);
    assert_true(mirror_commit(mirror, &commit, &move));
    if (move.count > 0)
        rig.draft.kind->copy(rig.draft.state, (struct cache_place){s, move.from}, (struct cache_place){s, move.to}, move.count);
    for (int i = 0; i < moves; i++)
        rig.draft.kind->copy(rig.draft.state, (struct cache_place){s, path[i].from}, (struct cache_place){s, path[i].to}, path[i].count);
    assert_true(mirror_commit(other, &commit, &move));
    other->cached = 0;
    return moves;
}

static void test_tree_drafts__are_the_same_after_any_path(void **state)
{
    int moves = 0, aside = 0, left = 0;

    (void)state;
    open_rig(&rig, TREE_TOP_K);
    open_rig(&anew, TREE_TOP_K);
    for (int round = 0; round < ROUNDS; round++) {
        draft_rig_propose(&rig);
        draft_rig_propose(&anew);
        for (int s = 0; s < SLOTS; s++) {
            int node = (5 * round + 3 * s) % rig.output[s].count;

            is_as_drafted_anew(s);
            left += s >= 6 ? is_planned(s) : 0;
            aside += rig.output[s].is_tree && rig.output[s].parent[node] != node - 1;
            moves += commit(s, round == 0 && s == 0 ? -1 : node, (int32_t)(31 * round + s) % 128);
        }
    }
    print_message("%d paths that are no chain from the first node on, %d moves, %d places that q has no token for\n", aside, moves, left);
    assert_true(aside > 5 && moves > 5 && left > 0);
    draft_rig_close(&rig);
    draft_rig_close(&anew);
}

/* The shape that the lead asks for: of `sequoia`, which learns, two drafters do not know the same. */
static enum tree_kind shape_of(int s, int round)
{
    static const enum tree_kind kinds[] = {TREE_CHAIN, TREE_CHAIN, TREE_DYNAMIC, TREE_TOP_K, TREE_CHAIN, TREE_TOP_K, TREE_DYNAMIC};

    return kinds[(3 * s + round) % 7];
}

static void propose_ahead(struct run_ahead *running, int count[2])
{
    struct draft_output *outputs[SLOTS];
    struct mirror *batch[SLOTS];

    for (int begun = 1; begun >= 0; begun--) {
        int found = 0;

        for (int s = 0; s < SLOTS; s++)
            if (rig.mirror[s].wanted > 0 && (rig.mirror[s].drafted > 0) == begun) {
                batch[found] = &rig.mirror[s];
                outputs[found] = run_ahead_output(running, &rig.mirror[s]);
                outputs[found++]->is_tree = 0;
            }
        if (found > 0)
            assert_int_equal(rig.draft.kind->propose(rig.draft.state, batch, found, outputs), STATUS_OK);
    }
    for (int s = 0; s < SLOTS; s++) {
        count[rig.mirror[s].wanted == 0]++;
        rig.output[s] = *run_ahead_output(running, &rig.mirror[s]);
        rig.mirror[s].wanted = 0;
    }
}

/* Returns the branches that there are then, of those that a tree was asked for none. */
static int run_all_ahead(struct run_ahead *running, int steps)
{
    const struct draft_output *output;
    struct branch *branch;
    struct mirror *mirror;
    int did = 1, branches = 0;

    while (did && steps-- > 0) {
        assert_int_equal(run_ahead_step(running, &did), STATUS_OK);
        while ((branch = run_ahead_whole(running, &mirror, &output)) != NULL)
            branch->is_sent = 1;
    }
    for (int s = 0; s < SLOTS; s++) {
        branches += rig.mirror[s].ahead.branches;
        assert_true(rig.mirror[s].shape == TREE_CHAIN || rig.mirror[s].ahead.branches == 0);
    }
    return branches;
}

/* The text of a branch, where there is one, or any path of what was proposed. */
static void commit_mixed(int s, int round)
{
    struct mirror *mirror = &rig.mirror[s];
    int is_branch = mirror->ahead.branches > 0 && round % 3 != 0;
    const struct branch branch = mirror->ahead.branch[is_branch ? round % mirror->ahead.branches : 0];
    int node = is_branch                 ? branch.after - 1
               : rig.output[s].count > 0 ? (5 * round + 3 * s) % (rig.output[s].count < 4 ? rig.output[s].count : 4)
                                         : -1;

    next_shape = shape_of(s, round + 1);
    commit(s, node, is_branch ? mirror->tokens[branch.place] : (int32_t)(31 * round + s) % 128);
}

/* A drafter that is asked for chains and trees by turns, and runs ahead of the chains, proposes what one does that reads the text anew: the shape
 * that is asked for, but where a chain was sent before it was. */
static void test_tree_drafts__may_follow_chains_that_were_run_ahead_of(void **state)
{
    int asked[2] = {0}, trees = 0, branches = 0;
    struct run_ahead running;

    (void)state;
    open_rig(&rig, TREE_AUTO);
    open_rig(&anew, TREE_AUTO);
    assert_int_equal(run_ahead_open(&running, &rig.draft, rig.mirror, SLOTS, 1, BRANCHES), STATUS_OK);
    for (int round = 0; round < MIXED_ROUNDS; round++) {
        for (int s = 0; s < SLOTS; s++) {
            anew.mirror[s].wanted = round > 0 ? rig.mirror[s].asked : rig.mirror[s].wanted;
            anew.output[s].is_tree = 0;
        }
        propose_ahead(&running, asked);
        draft_rig_propose(&anew);
        for (int s = 0; s < SLOTS; s++) {
            const struct draft_output *a = &rig.output[s], *b = &anew.output[s];

            trees += a->is_tree;
            if (a->is_tree != b->is_tree)
                assert_true(!a->is_tree && rig.mirror[s].begun > 0); /* a chain that was there */
            else
                assert_true(a->count <= b->count && memcmp(a->token, b->token, (size_t)a->count * sizeof *a->token) == 0 &&
                            (!a->is_tree || (a->count == b->count && memcmp(a->parent, b->parent, (size_t)a->count) == 0)));
        }
        branches += run_all_ahead(&running, round % 4 == 3 ? 2 : INT_MAX); /* a message comes in between, or does not */
        for (int s = 0; s < SLOTS; s++)
            commit_mixed(s, round);
    }
    print_message("%d trees, %d proposals that were asked for, %d that were there, %d branches\n", trees, asked[0], asked[1], branches);
    assert_true(trees > 3 * SLOTS && asked[1] > SLOTS && branches > 3 * SLOTS);
    run_ahead_close(&running);
    draft_rig_close(&rig);
    draft_rig_close(&anew);
}

/* What a committed text says of the tree that was proposed for it: of each row on its way, how many children there were, and which one came. */
static void count_ranks(const struct draft_output *output, const int32_t *tokens, int count, struct tree_ranks *ranks)
{
    for (int at = -1, i = 0, next; i < count; i++, at = next) {
        int children = 0, right = -1;

        next = -1;
        for (int k = at + 1; k < output->count; k++)
            if (output->parent[k] == at) {
                right = output->token[k] == tokens[i] ? children : right;
                next = output->token[k] == tokens[i] ? k : next;
                children++;
            }
        tree_ranks_add(ranks, children, right);
        if (next < 0)
            return;
    }
}

static void test_tree_drafts__learn_which_children_are_right(void **state)
{
    struct tree_ranks expected = {{0}, {0}}, learnt;

    (void)state;
    open_rig(&rig, TREE_SEQUOIA);
    open_rig(&anew, TREE_TOP_K);
    for (int round = 0; round < ROUNDS; round++) {
        draft_rig_propose(&rig);
        learnt = ((struct model_draft *)rig.draft.state)->ranks;
        assert_memory_equal(&learnt, &expected, sizeof learnt);
        for (int s = 0; s < SLOTS; s++) {
            int before = rig.mirror[s].length, node = (5 * round + 3 * s) % rig.output[s].count;

            commit(s, node, (int32_t)(31 * round + s) % 128);
            if (rig.output[s].is_tree && rule_of(&rig.mirror[s].sampling)->siblings == RULE_SIBLINGS_ANY)
                count_ranks(&rig.output[s], rig.mirror[s].tokens + before, rig.mirror[s].length - before, &expected);
        }
    }
    assert_true(learnt.right[0] > 0 && learnt.right[1] > 0 && learnt.right[0] + learnt.right[1] < learnt.tested[0]);
    draft_rig_close(&rig);
    draft_rig_close(&anew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree_drafts__are_the_same_after_any_path),
        cmocka_unit_test(test_tree_drafts__may_follow_chains_that_were_run_ahead_of),
        cmocka_unit_test(test_tree_drafts__learn_which_children_are_right),
    };

    int failed = 0;

    golden_path("tests/golden/models/qwen3", model_path);
    for (int m = 0; m < MODELS; m++) {
        model = models[m];
        failed += cmocka_run_group_tests_name(model, tests, NULL, NULL);
    }
    return failed;
}
