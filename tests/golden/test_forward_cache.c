/* A cache in bf16 or E4M3, in whole models: logits are those of float32 attention over keys and values that are rounded as they are written. And what
 * is copied from slot to slot, in caches of all dtypes. */
#include "tests/support/e4m3.h"
#include "tests/support/golden.h"
#include "tests/support/model_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TARGET "launch/demo/target"

static const char *const models[] = {"linear", "llama2", "llama31", "longrope", "mistral", "qwen2", "qwen3", "smollm", "yarn"};

enum { MODELS = sizeof models / sizeof *models };

/* How far from float32, in parts of the largest logit; 0.0141 and 0.251 are measured. */
static const struct narrow {
    enum cache_choice cache;
    double largest_difference;
    size_t times; /* as many numbers in the memory of float32's */
} narrows[] = {{CACHE_BF16, 0.03, 2}, {CACHE_E4M3, 0.5, 4}};
enum { NARROWS = sizeof narrows / sizeof *narrows };

/* The CPU's backend with its cache in float32, whose numbers are rounded when they have been written. */
static struct backend rounding;
static enum cache_choice rounds_to;

static float rounded(float value)
{
    uint32_t bits;

    if (rounds_to == CACHE_E4M3)
        return e4m3_wide(e4m3_nearest(value));
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

static void attend_in_and_round(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights,
                                const struct rows *rows, const float *x, const float *cosine, const float *sine,
                                const struct cache_layer *cache, float *q)
{
    size_t dim = (size_t)shape->head_dim;
    float *keys = cache->keys, *values = cache->values;

    backend_cpu.layer.attend_in(context, shape, weights, rows, x, cosine, sine, cache, q);
    for (int r = 0; r < rows->count; r++)
        for (int h = 0; h < shape->kv_heads; h++) {
            size_t head = (size_t)(rows->slot[r] * shape->kv_heads + h) * (size_t)shape->context * dim, place = (size_t)rows->place[r];

            for (size_t d = 0; d < dim; d++) {
                size_t key = head + place / BACKEND_PANEL * BACKEND_PANEL * dim + d * BACKEND_PANEL + place % BACKEND_PANEL;

                keys[key] = rounded(keys[key]);
                values[head + place * dim + d] = rounded(values[head + place * dim + d]);
            }
        }
}

static int make_backend(void **state)
{
    (void)state;
    rounding = backend_cpu;
    rounding.layer.attend_in = attend_in_and_round;
    return 0;
}

/* Some tokens, and room for their logits. */
struct sample {
    char folder[GOLDEN_PATH];
    int32_t *tokens;
    int count;
    size_t logits;
    float *expected, *found; /* [logits] */
};

static void sample_open(struct sample *sample, const char *model)
{
    char path[GOLDEN_PATH + 16];
    json_t *golden;

    snprintf(path, sizeof path, "tests/golden/models/%s", model);
    golden_path(path, sample->folder);
    snprintf(path, sizeof path, "%s/golden.json", sample->folder);
    golden = golden_json(path);
    sample->tokens = golden_ids(json_object_get(golden, "tokens"), &sample->count);
    sample->logits = (size_t)sample->count * (size_t)json_integer_value(json_object_get(golden, "vocab"));
    json_decref(golden);
    sample->expected = calloc(sample->logits, sizeof(float));
    sample->found = calloc(sample->logits, sizeof(float));
    assert_true(sample->expected != NULL && sample->found != NULL);
}

static void sample_close(struct sample *sample)
{
    free(sample->tokens);
    free(sample->expected);
    free(sample->found);
}

static void feed(struct model_rig *rig, const struct sample *sample, int stride, float *logits)
{
    model_rig_feed(rig, 1, sample->tokens, sample->count, stride, logits);
    model_rig_close(rig);
}

static void check_bits(enum cache_choice cache)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512"};
    struct model_rig rig;

    rounds_to = cache;
    for (int m = 0; m < MODELS; m++) {
        struct sample sample;

        sample_open(&sample, models[m]);
        model_rig_open_on(&rig, sample.folder, &rounding);
        feed(&rig, &sample, 1, sample.expected);
        for (int i = 0; i < 6; i++) {
            struct backend_context *probe;
            const struct backend_options options = {.threads = 1, .isa = isas[i / 2]};

            if (backend_cpu.open(&options, &probe) != STATUS_OK) {
                print_message("skipped: this CPU does not run %s\n", isas[i / 2]);
                continue;
            }
            backend_cpu.close(probe);
            model_rig_open_narrow(&rig, sample.folder, i % 2 + 1, isas[i / 2], cache);
            feed(&rig, &sample, i % 2 == 0 ? 5 : sample.count, sample.found);
            assert_memory_equal(sample.found, sample.expected, sample.logits * sizeof(float));
        }
        sample_close(&sample);
    }
}

static void test_forward_cache__fewer_bits_have_those_of_rounded_float32(void **state)
{
    (void)state;
    for (int n = 0; n < NARROWS; n++)
        check_bits(narrows[n].cache);
}

static void check_nearness(const struct narrow *narrow)
{
    struct model_rig rig;

    for (int m = 0; m < MODELS; m++) {
        struct sample sample;
        double size = 0, difference;

        sample_open(&sample, models[m]);
        model_rig_open(&rig, sample.folder, NULL, 1, NULL);
        feed(&rig, &sample, sample.count, sample.expected);
        model_rig_open_narrow(&rig, sample.folder, 1, NULL, narrow->cache);
        feed(&rig, &sample, sample.count, sample.found);
        for (size_t i = 0; i < sample.logits; i++)
            size = (double)sample.expected[i] > size ? (double)sample.expected[i] : size;
        difference = golden_difference(sample.found, sample.expected, sample.logits);
        print_message("%s: %.3g of the largest logit\n", models[m], difference / size);
        assert_true(difference > 0 && difference < narrow->largest_difference * size);
        sample_close(&sample);
    }
}

static void test_forward_cache__fewer_bits_are_near_float32_and_another(void **state)
{
    (void)state;
    for (int n = 0; n < NARROWS; n++)
        check_nearness(&narrows[n]);
}

static void test_forward_cache__fewer_bits_take_less_memory(void **state)
{
    char folder[GOLDEN_PATH];
    struct model_rig wide, narrow;

    (void)state;
    golden_path(TARGET, folder);
    model_rig_open(&wide, folder, NULL, 1, NULL);
    for (int n = 0; n < NARROWS; n++) {
        model_rig_open_narrow(&narrow, folder, 1, NULL, narrows[n].cache);
        assert_int_equal(narrows[n].times * kv_cache_bytes(&narrow.cache), kv_cache_bytes(&wide.cache));
        assert_int_equal(kv_cache_need(narrow.model, MODEL_RIG_SLOTS), kv_cache_bytes(&narrow.cache));
        model_rig_close(&narrow);
    }
    model_rig_close(&wide);
}

static void test_forward_cache__a_copied_prefix_gives_the_bits_of_one_that_is_fed(void **state)
{
    static const int kept[] = {1, 15, 16, 17, 23};

    (void)state;
    for (int m = 0; m < MODELS; m++) {
        struct model_rig rig;
        struct sample sample;

        sample_open(&sample, models[m]);
        assert_true(sample.count > 23);
        for (int cache = CACHE_F32; cache <= CACHE_E4M3; cache++) {
            model_rig_open_narrow(&rig, sample.folder, 2, NULL, (enum cache_choice)cache);
            for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
                model_rig_assert_copied(&rig, sample.tokens, sample.count, kept[k]);
            model_rig_close(&rig);
        }
        sample_close(&sample);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward_cache__fewer_bits_have_those_of_rounded_float32),
        cmocka_unit_test(test_forward_cache__fewer_bits_are_near_float32_and_another),
        cmocka_unit_test(test_forward_cache__fewer_bits_take_less_memory),
        cmocka_unit_test(test_forward_cache__a_copied_prefix_gives_the_bits_of_one_that_is_fed),
    };

    return cmocka_run_group_tests(tests, make_backend, NULL);
}
