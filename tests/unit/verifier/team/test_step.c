#include "verifier/team/step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { WORDS = 2048 };

static int32_t words[WORDS] __attribute__((aligned(64))), copy[WORDS] __attribute__((aligned(64)));

static void test_step__chain_rows_see_their_ancestors(void **state)
{
    enum { COUNT = 150 }; /* more than a mask has bits */
    const int32_t tokens[COUNT] = {7, 8, 9};
    struct step step = {.words = words};

    (void)state;
    step_layout(&step, COUNT, 0, 0);
    assert_int_equal(step_add_chain(&step, 3, 20, tokens, COUNT), 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(step.rows.token[i], tokens[i]);
        assert_int_equal(step.rows.slot[i], 3);
        assert_int_equal(step.rows.place[i], 20 + i);
        assert_int_equal(step.rows.position[i], 20 + i);
        assert_in_range(step.rows.base[i], 20, 20 + i);
        for (int j = step.rows.base[i]; j < step.rows.base[i] + 64; j++)
            assert_int_equal(step.rows.ancestors[i] >> (j - step.rows.base[i]) & 1, j <= 20 + i);
        assert_true(20 + i < step.rows.base[i] + 64);
    }
}

static void test_step__chains_follow_one_another(void **state)
{
    const int32_t tokens[3] = {1, 2, 3};
    struct step step = {.words = words};

    (void)state;
    step_layout(&step, 5, 0, 0);
    assert_int_equal(step_add_chain(&step, 0, 4, tokens, 3), 0);
    assert_int_equal(step_add_chain(&step, 1, 9, tokens + 1, 2), 3);
    assert_int_equal(step.rows.count, 5);
    assert_int_equal(step.rows.token[3], 2);
    assert_int_equal(step.rows.base[4], 9);
    assert_int_equal(step.rows.ancestors[3], 1);
}

/* A node sees the token in front of the tree, those that lead to it, and itself; its position is by its depth, its place by its number. */
static void test_step__rows_of_a_tree_see_their_own_path(void **state)
{
    enum { COUNT = 63 };
    struct step step = {.words = words};
    int32_t tokens[COUNT];
    int8_t parent[COUNT];
    uint32_t random = 3;

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        random = random * 1664525U + 1013904223U;
        tokens[i] = 100 + i;
        parent[i] = (int8_t)((int)(random >> 8) % (i + 1) - 1);
    }
    step_layout(&step, 2 + COUNT + 1, 0, 0);
    assert_int_equal(step_add_chain(&step, 1, 4, tokens, 2), 0);
    assert_int_equal(step_add_tree(&step, 3, 20, 7, tokens, parent, COUNT), 2);
    assert_int_equal(step.rows.count, 2 + COUNT + 1);
    assert_int_equal(step.rows.token[2], 7);
    assert_int_equal(step.rows.position[2], 20);
    for (int i = 0; i < COUNT; i++) {
        int row = 3 + i, depth = 0;
        uint64_t sees = 1;

        for (int at = i; at >= 0; at = parent[at], depth++)
            sees |= UINT64_C(1) << (at + 1);
        assert_int_equal(step.rows.token[row], tokens[i]);
        assert_int_equal(step.rows.slot[row], 3);
        assert_int_equal(step.rows.place[row], 21 + i);
        assert_int_equal(step.rows.position[row], 20 + depth);
        assert_int_equal(step.rows.base[row], 20);
        assert_true(step.rows.ancestors[row] == sees);
    }
}

static void test_step__block_carries_all_of_it(void **state)
{
    const int32_t tokens[4] = {1, 2, 3, 4};
    struct step sent = {.words = words}, received = {.words = copy};

    (void)state;
    step_layout(&sent, 4, 3, 5);
    step_add_chain(&sent, 2, 6, tokens, 4);
    for (int a = 0; a < 3; a++) {
        sent.output_row[a] = a + 1;
        sent.support_first[a + 1] = a + 3;
    }
    for (int i = 0; i < 5; i++)
        sent.id[i] = 40 + i;
    assert_int_equal(sent.bytes, step_bytes(4, 3, 5));
    assert_true((char *)(sent.id + 5) <= (char *)words + sent.bytes);
    memcpy(copy, words, sent.bytes);
    step_adopt(&received);
    assert_int_equal(received.rows.count, 4);
    assert_int_equal(received.outputs, 3);
    assert_int_equal(received.ids, 5);
    assert_int_equal(received.bytes, sent.bytes);
    assert_memory_equal(received.rows.token, tokens, sizeof tokens);
    assert_int_equal(received.rows.ancestors[3], 15);
    assert_int_equal(received.output_row[2], 3);
    assert_int_equal(received.support_first[0], 0);
    assert_int_equal(received.support_first[3], 5);
    assert_int_equal(received.id[4], 44);
}

/* Rows that are scored stand behind the output rows, and have no support. */
static void test_step__block_carries_scored_rows(void **state)
{
    const int32_t tokens[4] = {1, 2, 3, 4};
    struct step sent = {.words = words}, received = {.words = copy};

    (void)state;
    step_layout_scored(&sent, 4, 1, 2, 1);
    step_add_chain(&sent, 2, 6, tokens, 4);
    for (int a = 0; a < 3; a++)
        sent.output_row[a] = a + 1;
    sent.support_first[1] = 1;
    sent.id[0] = 40;
    assert_true(sent.bytes <= step_bytes(4, 3, 1));
    assert_true((char *)(sent.id + 1) == (char *)words + sent.bytes);
    memcpy(copy, words, sent.bytes);
    step_adopt(&received);
    assert_int_equal(received.outputs, 1);
    assert_int_equal(received.scored, 2);
    for (int a = 0; a < 3; a++)
        assert_int_equal(received.output_row[a], a + 1);
    assert_int_equal(received.support_first[1], 1);
    assert_int_equal(received.id[0], 40);
    assert_int_equal(received.bytes, sent.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step__chain_rows_see_their_ancestors),    cmocka_unit_test(test_step__chains_follow_one_another),
        cmocka_unit_test(test_step__rows_of_a_tree_see_their_own_path), cmocka_unit_test(test_step__block_carries_all_of_it),
        cmocka_unit_test(test_step__block_carries_scored_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
