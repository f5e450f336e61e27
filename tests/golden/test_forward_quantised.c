/* Models in few bits that others packed, each as published folders keep them: their values and logits against Hugging Face transformers (README.md).
 */
#include "tests/support/golden.h"
#include "tests/support/model_rig.h"

#include "common/model/checkpoint.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define LARGEST_ROUNDING 0x1p-11 /* of a value: it was loaded as F16 */

/* How far the logits may be apart, relative, root mean square over all of them: beside weights of 4 bits activations are rounded to 8. */
static const struct format {
    const char *name;
    double logits;
} formats[] = {{"awq", 0.02}, {"gptq", 0.02}, {"gptq-asymmetric", 0.02}, {"fp8", 0.001}, {"compressed-tensors", 0.001}};

enum { FORMATS = sizeof formats / sizeof *formats };

struct golden {
    char folder[GOLDEN_PATH];
    json_t *json;
    int vocab, count, every;
    int32_t *tokens; /* [count] */
    float *logits;   /* [count][vocab] */
    float *value;    /* [values] of rows of maps */
    size_t values;
};

static void golden_open(struct golden *golden, const char *name)
{
    char path[GOLDEN_PATH + 16];

    snprintf(path, sizeof path, "tests/golden/quantised/%s", name);
    golden_path(path, golden->folder);
    snprintf(path, sizeof path, "%s/golden.json", golden->folder);
    golden->json = golden_json(path);
    golden->vocab = (int)json_integer_value(json_object_get(golden->json, "vocab"));
    golden->every = (int)json_integer_value(json_object_get(golden->json, "every"));
    golden->tokens = golden_ids(json_object_get(golden->json, "tokens"), &golden->count);
    snprintf(path, sizeof path, "%s/logits.f32", golden->folder);
    golden->logits = golden_floats(path, (size_t)(golden->count * golden->vocab));
    snprintf(path, sizeof path, "%s/values.f32", golden->folder);
    golden->value = (float *)(void *)golden_bytes(path, &golden->values);
    golden->values /= sizeof *golden->value;
}

static void golden_close(struct golden *golden)
{
    json_decref(golden->json);
    free(golden->tokens);
    free(golden->logits);
    free(golden->value);
}

static void test_forward_quantised__logits_are_near_those_of_transformers(void **state)
{
    const struct format *format = *state;
    struct golden golden;
    struct model_rig rig;
    size_t size;
    float *got;
    double error;

    golden_open(&golden, format->name);
    size = (size_t)(golden.count * golden.vocab);
    got = calloc(size, sizeof *got);
    assert_non_null(got);
    model_rig_open(&rig, golden.folder, NULL, 1, NULL);
    assert_int_equal(rig.model->vocab_count, golden.vocab);
    model_rig_feed(&rig, 0, golden.tokens, golden.count, golden.count, got);
    error = golden_apart(got, golden.logits, size);
    print_message("%s: apart by %.3g of the logits' size\n", format->name, error);
    assert_true(error < format->logits);
    model_rig_close(&rig);
    free(got);
    golden_close(&golden);
}

/* The rows of a map that are kept. Returns how many values they have; `widest` gets how far one is off, in parts of itself. */
static size_t compare_rows(const struct tensor *map, int every, const float *expected, double *widest)
{
    size_t columns = (size_t)map->columns, used = 0;
    float *row = calloc(columns, sizeof *row);

    assert_non_null(row);
    for (int i = 0; i < map->rows; i += every) {
        model_rig_map_row(map, i, row);
        for (size_t k = 0; k < columns; k++, used++) {
            assert_true(isfinite(row[k]));
            double off = fabs((double)row[k] - (double)expected[used]) - 0x1p-25; /* half of F16's smallest number */

            *widest = fmax(*widest, off > 0 ? off / fabs((double)row[k]) : 0);
        }
    }
    free(row);
    return used;
}

/* A map of a layer of this model. */
static void find_map(const struct checkpoint *checkpoint, const struct config *config, enum family_part part, int layer, struct tensor *map)
{
    int heads = part == FAMILY_K || part == FAMILY_V ? config->kv_heads : config->heads;
    int is_out = part == FAMILY_SELF_OUT || part == FAMILY_DOWN, is_mlp = part == FAMILY_GATE || part == FAMILY_UP || part == FAMILY_DOWN;
    int inner = is_mlp ? config->ffn : heads * config->head_dim;
    char name[FAMILY_NAME_MAX];

    family_tensor(config->family, part, layer, name);
    assert_int_equal(checkpoint_find(checkpoint, name, is_out ? config->hidden : inner, is_out ? inner : config->hidden, map), STATUS_OK);
}

static void test_forward_quantised__values_are_those_of_transformers(void **state)
{
    static const enum family_part parts[] = {FAMILY_Q, FAMILY_K, FAMILY_V, FAMILY_SELF_OUT, FAMILY_GATE, FAMILY_UP, FAMILY_DOWN};
    const struct format *format = *state;
    struct golden golden;
    struct checkpoint *checkpoint;
    struct config config;
    double widest = 0;
    size_t used = 0;

    golden_open(&golden, format->name);
    assert_int_equal(config_read(golden.folder, &config), STATUS_OK);
    assert_int_equal(checkpoint_open(golden.folder, &config, &checkpoint), STATUS_OK);
    for (int layer = 0; layer < config.layers; layer++)
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
            struct tensor map;

            find_map(checkpoint, &config, parts[p], layer, &map);
            assert_in_range(used + (size_t)((map.rows + golden.every - 1) / golden.every * map.columns), 1, golden.values);
            used += compare_rows(&map, golden.every, golden.value + used, &widest);
        }
    print_message("%s: %zu values, off by at most %.3g of themselves\n", format->name, used, widest);
    assert_int_equal(used, golden.values);
    assert_true(widest <= LARGEST_ROUNDING);
    checkpoint_close(checkpoint);
    golden_close(&golden);
}

int main(void)
{
    struct CMUnitTest tests[2 * FORMATS];

    for (int i = 0; i < FORMATS; i++) {
        tests[2 * i] =
            (struct CMUnitTest)cmocka_unit_test_prestate(test_forward_quantised__values_are_those_of_transformers, (void *)(uintptr_t)&formats[i]);
        tests[2 * i + 1] = (struct CMUnitTest)cmocka_unit_test_prestate(test_forward_quantised__logits_are_near_those_of_transformers,
                                                                        (void *)(uintptr_t)&formats[i]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
