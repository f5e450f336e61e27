/* One tiny model of each architecture against Hugging Face transformers (README.md). */
#include "tests/support/golden.h"
#include "tests/support/model_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define LARGEST_ERROR 2e-4 /* measured: 3e-5 */

struct variant {
    struct model_rig rig;
    json_t *golden;
    int vocab;
    int count;
    int32_t *tokens; /* [count] */
    float *logits;   /* [count][vocab] as computed there */
    float *got;      /* the same, as computed here */
};

static void variant_open(struct variant *variant, const char *name)
{
    char folder[GOLDEN_PATH], path[GOLDEN_PATH + 16];

    snprintf(path, sizeof path, "tests/golden/models/%s", name);
    golden_path(path, folder);
    model_rig_open(&variant->rig, folder, NULL, 1, NULL);
    snprintf(path, sizeof path, "%s/golden.json", folder);
    variant->golden = golden_json(path);
    variant->vocab = (int)json_integer_value(json_object_get(variant->golden, "vocab"));
    assert_int_equal(variant->rig.model->vocab_count, variant->vocab);
    variant->tokens = golden_ids(json_object_get(variant->golden, "tokens"), &variant->count);
    assert_in_range(variant->count, 1, BACKEND_MAX_ROWS);
    snprintf(path, sizeof path, "%s/logits.f32", folder);
    variant->logits = golden_floats(path, (size_t)(variant->count * variant->vocab));
    variant->got = calloc((size_t)(variant->count * variant->vocab), sizeof(float));
    assert_non_null(variant->got);
}

static void variant_close(struct variant *variant)
{
    model_rig_close(&variant->rig);
    json_decref(variant->golden);
    free(variant->tokens);
    free(variant->logits);
    free(variant->got);
}

static void check_logits(struct variant *variant, const char *name)
{
    model_rig_feed(&variant->rig, 0, variant->tokens, variant->count, variant->count, variant->got);
    double difference = golden_difference(variant->got, variant->logits, (size_t)(variant->count * variant->vocab));
    print_message("%s: max abs difference to logits.f32: %.3g\n", name, difference);
    assert_true(difference < LARGEST_ERROR);
}

static void check_greedy(struct variant *variant)
{
    int prompt_count, count;
    int32_t *prompt = golden_ids(json_object_get(variant->golden, "prompt"), &prompt_count);
    int32_t *expected = golden_ids(json_object_get(variant->golden, "greedy"), &count);
    const float *last = variant->got + (prompt_count - 1) * variant->vocab;

    model_rig_feed(&variant->rig, 1, prompt, prompt_count, prompt_count, variant->got);
    for (int i = 0; i < count; i++) {
        int32_t token = model_rig_argmax(last, variant->vocab, NULL);
        struct chain chain = {1, prompt_count + i, 1, &token};

        assert_int_equal(token, expected[i]);
        model_rig_step(&variant->rig, &chain, 1, variant->got);
        last = variant->got;
    }
    free(prompt);
    free(expected);
}

static void test_forward_variants__logits_and_greedy_ids_are_those_of_transformers(void **state)
{
    const char *name = *state;
    struct variant variant;

    variant_open(&variant, name);
    check_logits(&variant, name);
    check_greedy(&variant);
    variant_close(&variant);
}

int main(void)
{
    static char names[][12] = {"llama2", "llama31", "linear", "longrope", "mistral", "qwen2", "qwen3", "smollm", "yarn"};
    enum { MODELS = sizeof names / sizeof names[0] };
    struct CMUnitTest tests[MODELS];

    for (int i = 0; i < MODELS; i++)
        tests[i] = (struct CMUnitTest){.name = names[i],
                                       .test_func = test_forward_variants__logits_and_greedy_ids_are_those_of_transformers,
                                       .initial_state = names[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
