/* What a token's logits depend on: the tokens before it, and nothing else. */
#include "tests/support/golden.h"
#include "tests/support/model_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 2048, TOKENS = 64 };

static struct model_rig rig;
static char folder[GOLDEN_PATH];
static int32_t *tokens; /* [TOKENS] */

static int open_rig(void **state)
{
    char path[GOLDEN_PATH];
    int count;

    (void)state;
    golden_path("launch/demo/golden/all_logits.tokens.json", path);
    json_t *json = golden_json(path);
    tokens = golden_ids(json, &count);
    json_decref(json);
    golden_path("launch/demo/target", folder);
    model_rig_open(&rig, folder, NULL, 2, NULL);
    return count == TOKENS ? 0 : -1;
}

static int close_rig(void **state)
{
    (void)state;
    free(tokens);
    model_rig_close(&rig);
    return 0;
}

static void test_forward__rows_of_other_slots_do_not_change_bits(void **state)
{
    static const int prompt[3] = {30, 3, 11}, fed[3] = {1, 5, 17};
    static float alone[23 * VOCAB], together[23 * VOCAB];
    struct chain chains[3];

    (void)state;
    for (int c = 0, at = 0; c < 3; at += fed[c++]) {
        int first = 7 * c; /* three sequences of different tokens */

        chains[c] = (struct chain){c, prompt[c], fed[c], tokens + first + prompt[c]};
        model_rig_poison(&rig, c, 0);
        model_rig_feed(&rig, c, tokens + first, prompt[c], TOKENS, NULL);
        model_rig_step(&rig, &chains[c], 1, alone + at * VOCAB);
        model_rig_poison(&rig, c, prompt[c]);
    }
    model_rig_step(&rig, chains, 3, together);
    assert_memory_equal(together, alone, sizeof alone);
    assert_int_equal(golden_difference(alone, alone, 23 * VOCAB), 0); /* no NaN */
}

/* A step asks for the logits of some rows, in any order. */
static void test_forward__asked_rows_get_the_logits_of_their_rows(void **state)
{
    static float all[4 * VOCAB], some[2 * VOCAB];
    int32_t place[4] = {0, 1, 2, 3}, slot[4] = {0}, base[4] = {0};
    uint64_t ancestors[4] = {1, 3, 7, 15};
    const struct rows rows = {4, tokens, place, slot, place, base, ancestors};

    (void)state;
    assert_int_equal(forward_run(&rig.forward, &rows, (const int32_t[]){0, 1, 2, 3}, 4, all), STATUS_OK);
    assert_int_equal(forward_run(&rig.forward, &rows, (const int32_t[]){3, 1}, 2, some), STATUS_OK);
    assert_memory_equal(some, all + 3 * VOCAB, VOCAB * sizeof *some);
    assert_memory_equal(some + VOCAB, all + VOCAB, VOCAB * sizeof *some);
}

/* Rows 2 and 3 are two guesses for place 2 of the same sequence, each seeing the prefix and itself; row 4 continues row 3. */
static void test_forward__a_branch_of_a_tree_gets_the_bits_of_its_chain(void **state)
{
    static float chain_logits[4 * VOCAB], tree[5 * VOCAB];
    int32_t token[5] = {tokens[0], tokens[1], tokens[20], tokens[2], tokens[3]}, position[5] = {0, 1, 2, 2, 3};
    int32_t place[5] = {0, 1, 2, 3, 4}, slot[5] = {0}, base[5] = {0};
    uint64_t ancestors[5] = {1, 3, 7, 8 | 3, 16 | 8 | 3};
    const struct rows rows = {5, token, position, slot, place, base, ancestors};

    (void)state;
    model_rig_feed(&rig, 1, tokens, 4, 4, chain_logits);
    assert_int_equal(forward_run(&rig.forward, &rows, (const int32_t[]){0, 1, 2, 3, 4}, 5, tree), STATUS_OK);
    assert_memory_equal(tree, chain_logits, 2 * VOCAB * sizeof *tree);
    assert_memory_equal(tree + 3 * VOCAB, chain_logits + 2 * VOCAB, 2 * VOCAB * sizeof *tree);
}

static void test_forward__feeding_again_from_an_earlier_place_truncates(void **state)
{
    enum { KEPT = 20, REJECTED = 9, AFTER = 6 };
    static float fresh[TOKENS * VOCAB], again[AFTER * VOCAB];
    struct chain rejected = {0, KEPT, REJECTED, tokens + 40}, other = {0, KEPT, AFTER, tokens + KEPT};

    (void)state;
    model_rig_poison(&rig, 1, 0);
    model_rig_feed(&rig, 1, tokens, KEPT + AFTER, TOKENS, fresh);
    for (int poisoned = 0; poisoned < 2; poisoned++) {
        model_rig_feed(&rig, 0, tokens, KEPT, TOKENS, NULL);
        model_rig_step(&rig, &rejected, 1, NULL);
        if (poisoned)
            model_rig_poison(&rig, 0, KEPT);
        model_rig_step(&rig, &other, 1, again);
        assert_memory_equal(again, fresh + KEPT * VOCAB, sizeof again);
    }
}

static void test_forward__threads_and_instruction_sets_give_the_same_bits(void **state)
{
    static const char *const isa[] = {"scalar", "avx2", "avx512"};
    static float expected[TOKENS * VOCAB], logits[TOKENS * VOCAB];

    (void)state;
    model_rig_feed(&rig, 0, tokens, TOKENS, 7, expected);
    for (int i = 0; i < 6; i++) {
        struct backend_context *probe;
        struct model_rig other;

        if (backend_cpu.open(&(struct backend_options){.threads = 1, .max_rows = 1, .isa = isa[i / 2]}, &probe) != STATUS_OK) {
            print_message("skipped: this CPU lacks %s\n", isa[i / 2]);
            continue;
        }
        backend_cpu.close(probe);
        model_rig_open(&other, folder, NULL, 1 + i % 2, isa[i / 2]);
        model_rig_feed(&other, 0, tokens, TOKENS, TOKENS, logits);
        assert_memory_equal(logits, expected, sizeof logits);
        model_rig_close(&other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward__rows_of_other_slots_do_not_change_bits),
        cmocka_unit_test(test_forward__asked_rows_get_the_logits_of_their_rows),
        cmocka_unit_test(test_forward__a_branch_of_a_tree_gets_the_bits_of_its_chain),
        cmocka_unit_test(test_forward__feeding_again_from_an_earlier_place_truncates),
        cmocka_unit_test(test_forward__threads_and_instruction_sets_give_the_same_bits),
    };

    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
