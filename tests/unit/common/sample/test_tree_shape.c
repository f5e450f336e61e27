/* Shapes of trees: as they are asked for, and what share a child has. */
#include "common/sample/tree_shape.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_tree_shape__texts_are_read(void **state)
{
    static const struct {
        const char *text;
        struct tree_shape shape;
    } told[] = {{"chain", {TREE_CHAIN, 0}},
                {"dynamic", {TREE_DYNAMIC, 0}},
                {"dynamic:depth=1", {TREE_DYNAMIC, 1}},
                {"dynamic:depth=32", {TREE_DYNAMIC, 32}},
                {"top-k", {TREE_TOP_K, 0}},
                {"sequoia:depth=3", {TREE_SEQUOIA, 3}},
                {"top-k:depth=5", {TREE_TOP_K, 5}},
                {"iid", {TREE_IID, 0}},
                {"auto", {TREE_AUTO, 0}},
                {"auto:depth=4", {TREE_AUTO, 4}},
                {"iid:depth=3", {TREE_IID, 3}}};
    static const char *const wrong[] = {
        "",        "dyn",      "dynamics", "dynamic:",      "dynamic:depth=",   "dynamic:depth=0",  "dynamic:depth=33",
        "top-k:5", ":depth=3", "topk",     "chain:depth=2", "dynamic:depth=3x", "dynamic:depth=-3", "dynamic:depth= 3"};
    struct tree_shape shape;

    (void)state;
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        assert_true(tree_shape_read(told[i].text, &shape));
        assert_true(shape.kind == told[i].shape.kind && shape.depth == told[i].shape.depth);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        shape = (struct tree_shape){TREE_TOP_K, 7};
        assert_false(tree_shape_read(wrong[i], &shape));
        assert_true(shape.kind == TREE_TOP_K && shape.depth == 7);
    }
}

/* The lead's word holds where the job leaves the shape to it, and nowhere else. */
static void test_tree_shape__one_proposal_has_one(void **state)
{
    (void)state;
    for (int kind = 0; kind < TREE_KINDS; kind++)
        for (int asked = 0; asked < TREE_AUTO; asked++) {
            const struct tree_shape job = {(enum tree_kind)kind, 5}, shape = tree_shape_of(&job, (enum tree_kind)asked);

            assert_int_equal(shape.kind, kind == TREE_AUTO ? asked : kind);
            assert_int_equal(shape.depth, 5);
        }
}

static void test_tree_shape__no_path_is_longer_than_all_nodes(void **state)
{
    (void)state;
    for (int nodes = 1; nodes <= 32; nodes++) {
        assert_int_equal(tree_shape_depth(&(struct tree_shape){TREE_DYNAMIC, 0}, nodes), nodes);
        assert_int_equal(tree_shape_depth(&(struct tree_shape){TREE_DYNAMIC, 5}, nodes), nodes < 5 ? nodes : 5);
        assert_int_equal(tree_shape_depth(&(struct tree_shape){TREE_IID, 5}, nodes), nodes < 5 ? nodes : 5);
        assert_int_equal(tree_shape_depth(&(struct tree_shape){TREE_IID, 0}, nodes), ceil(sqrt(nodes)));
    }
}

/* They fall as the scores do; the dynamic ones add up to 1 and depend on differences of scores alone, the others on the rank alone. */
static void test_tree_shape__shares_are_of_one_row(void **state)
{
    const float scores[TREE_CHILDREN] = {9, 8.5f, 7, 7, 4, 3, 2, -1}, moved[TREE_CHILDREN] = {-1, -1.5f, -3, -3, -6, -7, -8, -11};
    float shares[TREE_CHILDREN], again[TREE_CHILDREN];

    (void)state;
    for (int kind = TREE_TOP_K; kind < TREE_KINDS; kind++)
        for (int is_greedy = 0; is_greedy < 2; is_greedy++)
            for (int count = 1; count <= TREE_CHILDREN; count++) {
                const struct tree_shape shape = {.kind = (enum tree_kind)kind};
                double sum = 0;

                tree_shape_shares(&shape, is_greedy, scores, count, shares);
                tree_shape_shares(&shape, is_greedy, moved, count, again);
                for (int i = 0; i < count; i++) {
                    assert_true(shares[i] <= 0 && shares[i] == again[i]);
                    assert_true(i == 0 || shares[i] <= shares[i - 1]);
                    sum += exp((double)shares[i]);
                }
                assert_true(kind == TREE_DYNAMIC ? fabs(sum - 1) < 1e-6 : sum < 1);
            }
    /* A difference of a half, to the fourth power at temperature 0. */
    tree_shape_shares(&(struct tree_shape){TREE_DYNAMIC, 0}, 1, scores, 2, shares);
    assert_true(fabsf(shares[0] - shares[1] - 2) < 1e-5f);
    tree_shape_shares(&(struct tree_shape){TREE_DYNAMIC, 0}, 0, scores, 2, shares);
    assert_true(fabsf(shares[0] - shares[1] - 0.75f) < 1e-5f);
}

/* At first top-k's; then what was counted, of old times less; never rising, whatever was counted. */
static void test_tree_ranks__shares_are_what_was_counted(void **state)
{
    float shares[TREE_CHILDREN], first[TREE_CHILDREN];
    struct tree_ranks ranks = {{0}, {0}};

    (void)state;
    tree_shape_shares_drawn(TREE_CHILDREN, first);
    tree_ranks_shares(&ranks, TREE_CHILDREN, shares);
    for (int i = 0; i < TREE_CHILDREN; i++)
        assert_true(fabsf(shares[i] - first[i]) < 1e-6f);
    for (int i = 0; i < 1000; i++)
        tree_ranks_add(&ranks, 3, i % 10 < 3 ? 0 : i % 10 < 5 ? 1 : i % 10 < 6 ? 2 : -1);
    tree_ranks_shares(&ranks, TREE_CHILDREN, shares);
    assert_true(fabs(exp((double)shares[0]) - 0.3) < 0.05 && fabs(exp((double)shares[1]) - 0.2) < 0.05 && fabs(exp((double)shares[2]) - 0.1) < 0.05);
    assert_true(fabsf(shares[5] - first[5]) < 1e-6f); /* of which nothing was seen */
    for (int i = 0; i < 1000; i++)
        tree_ranks_add(&ranks, 2, 1);
    tree_ranks_shares(&ranks, TREE_CHILDREN, shares);
    for (int i = 1; i < TREE_CHILDREN; i++)
        assert_true(shares[i] <= shares[i - 1]);
    assert_true(exp((double)shares[0]) < 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree_shape__texts_are_read),
        cmocka_unit_test(test_tree_shape__one_proposal_has_one),
        cmocka_unit_test(test_tree_ranks__shares_are_what_was_counted),
        cmocka_unit_test(test_tree_shape__no_path_is_longer_than_all_nodes),
        cmocka_unit_test(test_tree_shape__shares_are_of_one_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
