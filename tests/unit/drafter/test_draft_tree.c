/* A tree that grows level by level against all nodes of all levels, sorted: the best ones of both are the same. */
#include "drafter/draft_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TRIALS = 400, CHILDREN = 3, LEVELS = 4, ALL = 3 + 9 + 27 + 81 };

/* All nodes, level after level: the children of the i-th are CHILDREN i + CHILDREN and those behind it. The root is none of them. */
static float share[ALL];

static uint32_t next_word(uint32_t *state)
{
    return *state = *state * 1664525U + 1013904223U;
}

/* Shares of a few values, so that some are equal. */
static void fill(uint32_t *random)
{
    for (int i = 0; i < ALL; i++) {
        int parent = i / CHILDREN - 1;

        share[i] = (parent < 0 ? 0 : share[parent]) - (float)(next_word(random) >> 28) / 4;
    }
}

static int by_share(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x < y) - (x > y);
}

/* Which of all nodes a node of the tree is: its token says. */
static void add(struct draft_tree *tree, int at, int which)
{
    int32_t tokens[CHILDREN];
    float shares[CHILDREN];

    for (int c = 0; c < CHILDREN; c++) {
        int child = CHILDREN * (which + 1) + c;

        tokens[c] = child;
        shares[c] = share[child] - (which < 0 ? 0 : share[which]);
    }
    draft_tree_add(tree, at, tokens, shares, CHILDREN);
}

/* As draft_model_tree.c has it: what is among the best of a level is fed, and then the children of those of them that still are. */
static void grow(struct draft_tree *tree)
{
    int32_t fed[MESSAGE_MAX_DRAFT];
    int places = 0, first;

    add(tree, -1, -1);
    for (int level = 1; level < LEVELS; level++) {
        first = places;
        for (int i = 0; i < tree->count; i++)
            if (tree->node[i].depth == level) {
                fed[places - first] = tree->node[i].token;
                tree->node[i].place = places++;
            }
        for (int place = first; place < places; place++)
            if (draft_tree_at(tree, place) >= 0)
                add(tree, draft_tree_at(tree, place), fed[place - first]);
    }
}

static void test_draft_tree__has_the_best_of_all(void **state)
{
    uint32_t random = 7;
    float sorted[ALL];

    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        int wanted = 1 + trial % MESSAGE_MAX_DRAFT, at[ALL];
        int32_t tokens[MESSAGE_MAX_DRAFT];
        int8_t parents[MESSAGE_MAX_DRAFT], nodes[MESSAGE_MAX_DRAFT];
        float own[MESSAGE_MAX_DRAFT] = {0};
        struct draft_tree tree;

        fill(&random);
        draft_tree_begin(&tree, wanted);
        grow(&tree);
        assert_int_equal(tree.count, wanted);
        memcpy(sorted, share, sizeof sorted);
        qsort(sorted, ALL, sizeof *sorted, by_share);
        assert_int_equal(draft_tree_write(&tree, tokens, parents, nodes), wanted);
        memset(at, -1, sizeof at);
        for (int i = 0; i < wanted; i++) {
            int parent = tokens[i] / CHILDREN - 1; /* of all nodes */

            assert_in_range(tokens[i], 0, ALL - 1);
            assert_int_equal(at[tokens[i]], -1); /* each once */
            assert_int_equal(parents[i], parent < 0 ? -1 : at[parent]);
            assert_true(parents[i] < i && (parent < 0 || parents[i] >= 0));
            for (int k = 0; k < i; k++) /* siblings by their number, which their tokens rise with */
                assert_true(parents[k] != parents[i] || tokens[k] < tokens[i]);
            assert_int_equal(tree.node[nodes[i]].token, tokens[i]);
            at[tokens[i]] = i;
            own[i] = share[tokens[i]];
        }
        qsort(own, (size_t)wanted, sizeof *own, by_share);
        for (int i = 0; i < wanted; i++) /* but for rounding, as a share is a sum of differences */
            assert_true(own[i] - sorted[i] < 1e-4f && sorted[i] - own[i] < 1e-4f);
    }
}

/* A plan has the best nodes of a tree whose every node has the same shares, none beyond its depth; and what has no token is not written. */
static void test_draft_tree__plan_is_of_numbers_alone(void **state)
{
    static const float shares[CHILDREN] = {-0.4f, -1.9f, -3};
    int32_t tokens[MESSAGE_MAX_DRAFT];
    int8_t parents[MESSAGE_MAX_DRAFT], nodes[MESSAGE_MAX_DRAFT];
    struct draft_tree tree;

    (void)state;
    for (int wanted = 1; wanted <= MESSAGE_MAX_DRAFT; wanted++)
        for (int depth = 1; depth <= LEVELS; depth++) {
            int all = depth == 1 ? 3 : depth == 2 ? 12 : depth == 3 ? 39 : ALL, count = wanted < all ? wanted : all, kept = 0;
            float own[MESSAGE_MAX_DRAFT] = {0}, sorted[ALL];

            for (int i = 0; i < all; i++)
                share[i] = (i < CHILDREN ? 0 : share[i / CHILDREN - 1]) + shares[i % CHILDREN];
            memcpy(sorted, share, sizeof sorted);
            qsort(sorted, (size_t)all, sizeof *sorted, by_share);
            draft_tree_plan(&tree, wanted, depth, shares, CHILDREN);
            assert_int_equal(tree.count, count);
            assert_int_equal(draft_tree_write(&tree, tokens, parents, nodes), 0);
            for (int i = 0; i < count; i++) {
                own[i] = tree.node[i].share;
                assert_int_equal(draft_tree_child(&tree, tree.node[i].parent, tree.node[i].number), i);
                assert_in_range(tree.node[i].depth, 1, depth);
            }
            qsort(own, (size_t)count, sizeof *own, by_share);
            for (int i = 0; i < count; i++)
                assert_true(own[i] - sorted[i] < 1e-4f && sorted[i] - own[i] < 1e-4f);
            for (int i = 0; i < count; i++) { /* second ones are not there, nor what would follow them */
                tree.node[i].token = i;
                for (int at = i; at >= 0; at = tree.node[at].parent)
                    tree.node[i].token = tree.node[at].number == 1 ? -1 : tree.node[i].token;
                kept += tree.node[i].token >= 0;
            }
            assert_int_equal(draft_tree_write(&tree, tokens, parents, nodes), kept);
            for (int i = 0; i < kept; i++)
                assert_true(parents[i] < i && tree.node[nodes[i]].token == tokens[i]);
        }
}

/* Chains of the same length but for one node, which share nothing: all nodes are there. */
static void test_draft_tree__paths_begin_at_the_text_and_part_there(void **state)
{
    static struct draft_tree tree;

    (void)state;
    for (int wanted = 1; wanted <= MESSAGE_MAX_DRAFT; wanted++)
        for (int depth = wanted / 8 + 1; depth <= wanted; depth++) {
            int paths = 0, longest = 0, shortest = MESSAGE_MAX_DRAFT;

            draft_tree_plan_paths(&tree, wanted, depth);
            assert_int_equal(tree.count, wanted);
            for (int i = 0; i < wanted; i++) {
                int child = draft_tree_child(&tree, i, 0);

                assert_int_equal(tree.node[i].token, -1);
                paths += tree.node[i].parent < 0;
                assert_true(tree.node[i].parent < 0 || tree.node[i].number == 0);
                assert_int_equal(draft_tree_child(&tree, i, 1), -1);
                longest = child < 0 && tree.node[i].depth > longest ? tree.node[i].depth : longest;
                shortest = child < 0 && tree.node[i].depth < shortest ? tree.node[i].depth : shortest;
            }
            assert_int_equal(paths, (wanted + depth - 1) / depth);
            assert_in_range(longest - shortest, 0, 1);
            assert_in_range(longest, 1, depth);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draft_tree__has_the_best_of_all),
        cmocka_unit_test(test_draft_tree__plan_is_of_numbers_alone),
        cmocka_unit_test(test_draft_tree__paths_begin_at_the_text_and_part_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
