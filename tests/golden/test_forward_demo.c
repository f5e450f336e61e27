/* The embedded target against Hugging Face transformers (launch/demo/README.md). */
#include "tests/support/golden.h"
#include "tests/support/model_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 2048, TOKENS = 64, PROMPTS = 24 };
#define LARGEST_ERROR 2e-4 /* measured: 2e-5 */
#define NEAR_TIE      1e-3 /* of the two best logits: another order of summation may turn them round */

static struct model_rig rig;

static int open_rig(void **state)
{
    char path[GOLDEN_PATH];

    (void)state;
    golden_path("launch/demo/target", path);
    model_rig_open(&rig, path, NULL, 2, NULL);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    model_rig_close(&rig);
    return 0;
}

static json_t *read_prompts(void)
{
    char path[GOLDEN_PATH];
    json_t *prompts;

    golden_path("launch/demo/golden/greedy.jsonl", path);
    prompts = golden_lines(path);
    assert_int_equal(json_array_size(prompts), PROMPTS);
    return prompts;
}

static void test_forward_demo__logits_of_every_position_are_those_of_transformers(void **state)
{
    static float logits[3][TOKENS * VOCAB];
    static const int stride[3] = {TOKENS, 1, 5};
    char path[GOLDEN_PATH];
    int count;

    (void)state;
    golden_path("launch/demo/golden/all_logits.f32", path);
    float *expected = golden_floats(path, TOKENS * VOCAB);
    golden_path("launch/demo/golden/all_logits.tokens.json", path);
    json_t *json = golden_json(path);
    int32_t *tokens = golden_ids(json, &count);

    assert_int_equal(count, TOKENS);
    for (int way = 0; way < 3; way++) {
        model_rig_poison(&rig, way, 0);
        model_rig_feed(&rig, way, tokens, TOKENS, stride[way], logits[way]);
        assert_memory_equal(logits[way], logits[0], sizeof logits[0]);
    }
    double difference = golden_difference(logits[0], expected, TOKENS * VOCAB);
    print_message("max abs difference to all_logits.f32: %.3g\n", difference);
    assert_true(difference < LARGEST_ERROR);
    free(tokens);
    free(expected);
    json_decref(json);
}

static void test_forward_demo__logits_after_each_prompt_are_those_of_transformers(void **state)
{
    static float logits[TOKENS * VOCAB];
    char path[GOLDEN_PATH];
    double largest = 0;

    (void)state;
    golden_path("launch/demo/golden/last_logits.f32", path);
    float *expected = golden_floats(path, PROMPTS * VOCAB);
    json_t *prompts = read_prompts();

    for (size_t i = 0; i < PROMPTS; i++) {
        int count;
        int32_t *tokens = golden_ids(json_object_get(json_array_get(prompts, i), "prompt_tokens"), &count);

        assert_in_range(count, 1, TOKENS);
        model_rig_feed(&rig, 0, tokens, count, TOKENS, logits);
        double difference = golden_difference(logits + (count - 1) * VOCAB, expected + i * VOCAB, VOCAB);
        largest = difference > largest ? difference : largest;
        free(tokens);
    }
    print_message("max abs difference to last_logits.f32: %.3g\n", largest);
    assert_true(largest < LARGEST_ERROR);
    free(expected);
    json_decref(prompts);
}

/* Returns the step at which a near tie went the other way, or `count`. */
static int follow(int place, const float *first, const int32_t *tokens, int count, const json_t *margins)
{
    static float logits[VOCAB];

    memcpy(logits, first, sizeof logits);
    for (int i = 0; i < count; i++) {
        struct chain chain = {0, place + i, 1, &tokens[i]};

        if (model_rig_argmax(logits, VOCAB, NULL) != tokens[i]) {
            assert_true(golden_number(json_array_get(margins, (size_t)i)) < NEAR_TIE);
            return i;
        }
        model_rig_step(&rig, &chain, 1, logits);
    }
    return count;
}

static void test_forward_demo__greedy_text_is_that_of_transformers(void **state)
{
    static float logits[TOKENS * VOCAB];
    json_t *prompts = read_prompts();
    int turned = 0, compared = 0;

    (void)state;
    for (size_t i = 0; i < PROMPTS; i++) {
        const json_t *line = json_array_get(prompts, i);
        int prompt_count, count;
        int32_t *prompt = golden_ids(json_object_get(line, "prompt_tokens"), &prompt_count);
        int32_t *tokens = golden_ids(json_object_get(line, "tokens"), &count);

        model_rig_feed(&rig, 0, prompt, prompt_count, TOKENS, logits);
        int same = follow(prompt_count, logits + (prompt_count - 1) * VOCAB, tokens, count, json_object_get(line, "top2_margin"));
        compared += same;
        turned += same < count;
        free(prompt);
        free(tokens);
    }
    print_message("%d greedy tokens are the same; %d of %d prompts left the path at a near tie\n", compared, turned, PROMPTS);
    assert_in_range(turned, 0, PROMPTS / 4);
    json_decref(prompts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward_demo__logits_of_every_position_are_those_of_transformers),
        cmocka_unit_test(test_forward_demo__logits_after_each_prompt_are_those_of_transformers),
        cmocka_unit_test(test_forward_demo__greedy_text_is_that_of_transformers),
    };

    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
