/* The golden models and the embedded draft model as GGUF files: the same weights give the same logits, bit for bit, in either form. */
#include "common/options/options.h"
#include "tests/support/gguf_convert.h"
#include "tests/support/golden.h"
#include "tests/support/model_rig.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TOKENS = 48 };
#define LARGEST_ERROR 2e-4 /* of the goldens */
#define LARGEST_QUANTISED_ERROR 0.012 /* relative, root mean square over all logits; 0.0080 is measured, and 0.0102 for the mixture */

static char file[] = "/tmp/test_forward_gguf.XXXXXX.gguf";

static int make_file(void **state)
{
    int descriptor = mkstemps(file, 5);

    (void)state;
    return descriptor < 0 || close(descriptor);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(file);
}

/* Logits of TOKENS tokens, [TOKENS][vocab], of the model with its weights rounded to `quantise`; the caller frees. Tokens are a walk through the
 * vocabulary. */
static float *quantised_logits_of(const char *path, enum dtype quantise, const int32_t *tokens, int *vocab)
{
    struct model_rig rig;
    int32_t walk[TOKENS];
    float *logits;

    model_rig_open_quantised(&rig, path, NULL, quantise);
    *vocab = rig.model->vocab_count;
    for (int i = 0; i < TOKENS; i++)
        walk[i] = tokens != NULL ? tokens[i] : (i * 37 + 5) % *vocab;
    logits = calloc((size_t)(TOKENS * *vocab), sizeof *logits);
    assert_non_null(logits);
    model_rig_feed(&rig, 0, walk, TOKENS, TOKENS, logits);
    model_rig_close(&rig);
    return logits;
}

static float *logits_of(const char *path, const int32_t *tokens, int *vocab)
{
    return quantised_logits_of(path, DTYPE_F32, tokens, vocab);
}

/* Whether the folder and the GGUF file that is made of it give the same bits. */
static int same_bits(const char *folder, const struct gguf_convert *how)
{
    int vocab, other, same;
    float *expected, *found;

    gguf_convert(folder, file, how);
    expected = logits_of(folder, NULL, &vocab);
    found = logits_of(file, NULL, &other);
    assert_int_equal(vocab, other);
    same = memcmp(expected, found, (size_t)(TOKENS * vocab) * sizeof *found) == 0;
    free(expected);
    free(found);
    return same;
}

/* Root mean square of a difference: b NULL is 0. */
static double mean_square(const float *a, const float *b, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        double difference = (double)a[i] - (b != NULL ? (double)b[i] : 0);

        sum += difference * difference;
    }
    return sqrt(sum / (double)count);
}

static const char *model_folder(const char *name)
{
    static char folder[GOLDEN_PATH];
    char path[GOLDEN_PATH];

    snprintf(path, sizeof path, "tests/golden/models/%s", name);
    golden_path(path, folder);
    return folder;
}

static const char *const exact[] = {"llama2", "linear", "mistral", "qwen2", "qwen3", "smollm", "yarn"};
enum { EXACT = sizeof exact / sizeof *exact };

static void test_forward_gguf__float32_weights_give_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < EXACT; i++)
        if (!same_bits(model_folder(exact[i]), &(struct gguf_convert){.dtype = DTYPE_F32}))
            fail_msg("%s: other logits", exact[i]);
}

static void test_forward_gguf__f16_and_bf16_weights_give_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < EXACT; i++)
        if (!same_bits(model_folder(exact[i]), &(struct gguf_convert){.as_stored = 1}))
            fail_msg("%s: other logits", exact[i]);
}

/* Rows of q and k in the order that belongs to the other architectures must be seen, or the order would not matter. */
static void test_forward_gguf__rows_in_the_wrong_order_change_the_logits(void **state)
{
    (void)state;
    for (int i = 0; i < EXACT; i++)
        if (same_bits(model_folder(exact[i]), &(struct gguf_convert){.dtype = DTYPE_F32, .wrong_rows = 1}))
            fail_msg("%s: the same logits", exact[i]);
}

/* The table of divisors is rounded to float32, so here the bits may differ. */
static void test_forward_gguf__llama31_scaling_as_a_table_matches_transformers(void **state)
{
    const char *folder = model_folder("llama31");
    char path[GOLDEN_PATH + 16];
    int vocab, count;
    json_t *golden;
    int32_t *tokens;

    (void)state;
    gguf_convert(folder, file, &(struct gguf_convert){.as_stored = 1});
    snprintf(path, sizeof path, "%s/golden.json", folder);
    golden = golden_json(path);
    tokens = golden_ids(json_object_get(golden, "tokens"), &count);
    assert_int_equal(count, TOKENS);
    float *found = logits_of(file, tokens, &vocab);
    snprintf(path, sizeof path, "%s/logits.f32", folder);
    float *expected = golden_floats(path, (size_t)(TOKENS * vocab));
    double difference = golden_difference(found, expected, (size_t)(TOKENS * vocab));

    print_message("llama31: max abs difference to logits.f32: %.3g\n", difference);
    assert_true(difference < LARGEST_ERROR);
    free(found);
    free(expected);
    free(tokens);
    json_decref(golden);
}

/* A quantised file against a float32 one that holds what the blocks mean, by the tests' own arithmetic; embedding and head included. They differ by
 * the rounding of activations to 8 bits. */
static void test_forward_gguf__quantised_weights_are_near_their_blocks_values(void **state)
{
    char folder[GOLDEN_PATH];
    int vocab;

    (void)state;
    for (int i = DTYPE_Q8_0; i <= DTYPES; i++) { /* the last one is Q4_K's mixture */
        if (i == DTYPE_Q4_Z)
            continue; /* which no such file has */
        int mixed = i == DTYPES;
        enum dtype dtype = mixed ? DTYPE_Q4_K : (enum dtype)i;

        golden_path(dtype >= DTYPE_Q2_K ? "launch/demo/target" : "launch/demo/draft", folder); /* which has no 256 columns */
        gguf_convert(folder, file, &(struct gguf_convert){.dtype = dtype, .rounded = 1, .mixed = mixed});
        float *expected = logits_of(file, NULL, &vocab);
        gguf_convert(folder, file, &(struct gguf_convert){.dtype = dtype, .mixed = mixed});
        float *found = logits_of(file, NULL, &vocab);

        double size = mean_square(expected, NULL, (size_t)(TOKENS * vocab));
        double apart = mean_square(found, expected, (size_t)(TOKENS * vocab));

        print_message("%s%s: apart by %.3g of the logits' size\n", dtype_name(dtype), mixed ? ", v Q6_K" : "", apart / size);
        assert_true(apart > 0 && apart < LARGEST_QUANTISED_ERROR * size);
        free(expected);
        free(found);
    }
}

/* --quantise q8_0 and --draft self:bits=4: rounding while a folder or a GGUF file is loaded is the same as a file that holds the blocks. */
static void test_forward_gguf__weights_rounded_at_load_give_the_bits_of_a_file_of_their_blocks(void **state)
{
    static const enum dtype to[] = {DTYPE_Q8_0, DTYPE_Q4_0};
    static const struct gguf_convert held[] = {{.dtype = DTYPE_F32}, {.as_stored = 1}, {.dtype = DTYPE_Q8_0, .mixed = 1}};
    char folder[GOLDEN_PATH];
    int vocab;

    (void)state;
    golden_path("launch/demo/draft", folder);
    for (int d = 0; d < 2; d++) {
        gguf_convert(folder, file, &(struct gguf_convert){.dtype = to[d]});
        float *expected = logits_of(file, NULL, &vocab), *found = quantised_logits_of(folder, to[d], NULL, &vocab);
        size_t bytes = (size_t)(TOKENS * vocab) * sizeof *found;

        assert_memory_equal(found, expected, bytes);
        free(found);
        for (int h = 0; h < (to[d] == DTYPE_Q8_0 ? 3 : 2); h++) {
            gguf_convert(folder, file, &held[h]);
            found = quantised_logits_of(file, to[d], NULL, &vocab);
            assert_memory_equal(found, expected, bytes);
            free(found);
        }
        free(expected);
    }
}

/* --quantise is for both models; --draft self:bits, and else --draft-quantise, go before it for what drafts, and are never the target's. */
static void test_forward_gguf__bits_of_a_draft_are_not_the_targets(void **state)
{
    static const struct {
        int quantise, draft_quantise, bits;
        enum dtype target, draft;
    } cases[] = {{QUANTISE_NONE, QUANTISE_NONE, 0, DTYPE_F32, DTYPE_F32},   {QUANTISE_NONE, QUANTISE_NONE, 4, DTYPE_F32, DTYPE_Q4_0},
                 {QUANTISE_NONE, QUANTISE_NONE, 8, DTYPE_F32, DTYPE_Q8_0},  {QUANTISE_Q8_0, QUANTISE_NONE, 0, DTYPE_Q8_0, DTYPE_Q8_0},
                 {QUANTISE_Q8_0, QUANTISE_NONE, 4, DTYPE_Q8_0, DTYPE_Q4_0}, {QUANTISE_NONE, QUANTISE_Q8_0, 0, DTYPE_F32, DTYPE_Q8_0},
                 {QUANTISE_Q8_0, QUANTISE_Q4_0, 0, DTYPE_Q8_0, DTYPE_Q4_0}, {QUANTISE_NONE, QUANTISE_Q4_0, 8, DTYPE_F32, DTYPE_Q8_0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct options options = {.model.quantise = cases[i].quantise,
                                        .model.draft_quantise = cases[i].draft_quantise,
                                        .model.draft_way = {.kind = DRAFT_SELF, .bits = cases[i].bits}};

        assert_int_equal(model_quantise(options_bits(&options, 0)), cases[i].target);
        assert_int_equal(model_quantise(options_bits(&options, 1)), cases[i].draft);
    }
}

static void test_forward_gguf__a_draft_has_the_ids_asked_for_but_no_more_than_there_are(void **state)
{
    (void)state;
    assert_int_equal(options_draft_vocab(&(struct options){.rounds.draft_vocabulary = 0}, 100), 100);
    assert_int_equal(options_draft_vocab(&(struct options){.rounds.draft_vocabulary = 7}, 100), 7);
    assert_int_equal(options_draft_vocab(&(struct options){.rounds.draft_vocabulary = 101}, 100), 100);
}

/* What has no more bits than is asked for is as it is in the file. */
static void test_forward_gguf__weights_of_no_more_bits_stay(void **state)
{
    static const struct {
        enum dtype file, to;
    } pairs[] = {{DTYPE_Q8_0, DTYPE_Q8_0}, {DTYPE_Q4_0, DTYPE_Q8_0}, {DTYPE_Q4_1, DTYPE_Q8_0}, {DTYPE_Q4_0, DTYPE_Q4_0}, {DTYPE_Q4_1, DTYPE_Q4_0}};
    char folder[GOLDEN_PATH];
    int vocab;

    (void)state;
    golden_path("launch/demo/draft", folder);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        gguf_convert(folder, file, &(struct gguf_convert){.dtype = pairs[i].file});
        float *expected = logits_of(file, NULL, &vocab), *found = quantised_logits_of(file, pairs[i].to, NULL, &vocab);

        assert_memory_equal(found, expected, (size_t)(TOKENS * vocab) * sizeof *found);
        free(expected);
        free(found);
    }
}

/* Files of published mixtures have q, k and v of several types. */
static void test_forward_gguf__a_matrix_of_several_dtypes_is_near_its_values(void **state)
{
    char folder[GOLDEN_PATH];
    int vocab;

    (void)state;
    golden_path("launch/demo/draft", folder);
    gguf_convert(folder, file, &(struct gguf_convert){.dtype = DTYPE_Q8_0});
    float *expected = logits_of(file, NULL, &vocab);
    gguf_convert(folder, file, &(struct gguf_convert){.dtype = DTYPE_Q8_0, .mixed = 1});
    float *found = logits_of(file, NULL, &vocab);
    double size = mean_square(expected, NULL, (size_t)(TOKENS * vocab));
    double apart = mean_square(found, expected, (size_t)(TOKENS * vocab));

    print_message("with v in float32: apart by %.3g of the logits' size\n", apart / size);
    assert_true(apart > 0 && apart < LARGEST_QUANTISED_ERROR * size);
    free(expected);
    free(found);
}

/* stories260K as its author's GGUF file, in which q and k are interleaved, and as llama2.c's. */
static void test_forward_gguf__a_published_file_gives_the_bits_of_its_llama2c_form(void **state)
{
    char bin[GOLDEN_PATH], gguf[GOLDEN_PATH];
    int vocab, other;

    (void)state;
    if (!golden_shared("tinyllamas-260k/stories260K.bin", bin) || !golden_shared("tinyllamas-260k/stories260Ktok512.gguf", gguf))
        skip();
    float *expected = logits_of(bin, NULL, &vocab);
    float *found = logits_of(gguf, NULL, &other);

    assert_int_equal(vocab, other);
    assert_memory_equal(found, expected, (size_t)(TOKENS * vocab) * sizeof *found);
    free(expected);
    free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward_gguf__float32_weights_give_the_same_bits),
        cmocka_unit_test(test_forward_gguf__f16_and_bf16_weights_give_the_same_bits),
        cmocka_unit_test(test_forward_gguf__rows_in_the_wrong_order_change_the_logits),
        cmocka_unit_test(test_forward_gguf__llama31_scaling_as_a_table_matches_transformers),
        cmocka_unit_test(test_forward_gguf__quantised_weights_are_near_their_blocks_values),
        cmocka_unit_test(test_forward_gguf__weights_rounded_at_load_give_the_bits_of_a_file_of_their_blocks),
        cmocka_unit_test(test_forward_gguf__weights_of_no_more_bits_stay),
        cmocka_unit_test(test_forward_gguf__bits_of_a_draft_are_not_the_targets),
        cmocka_unit_test(test_forward_gguf__a_draft_has_the_ids_asked_for_but_no_more_than_there_are),
        cmocka_unit_test(test_forward_gguf__a_matrix_of_several_dtypes_is_near_its_values),
        cmocka_unit_test(test_forward_gguf__a_published_file_gives_the_bits_of_its_llama2c_form),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
