/* The first layers of a model, followed by its norm and head, are the model that a config.json with so many layers describes; without some of its
 * layers it is the model of the others. */
#include "tests/support/capture.h"
#include "tests/support/model_rig.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define TARGET TANDEM_SOURCE_DIR "/launch/demo/target"
enum { LAYERS = 6, TOKENS = 12 };

static char folder[] = "/tmp/test_layers.XXXXXX";

/* The embedded target with another number of layers in its config. */
static void write_variant(int layers)
{
    char line[1 << 16], path[PATH_MAX], *at;
    size_t length;
    FILE *file = fopen(TARGET "/config.json", "r");

    assert_non_null(file);
    length = fread(line, 1, sizeof line - 1, file);
    line[length] = '\0';
    fclose(file);
    at = strstr(line, "\"num_hidden_layers\": 6");
    assert_non_null(at);
    at[strlen("\"num_hidden_layers\": ")] = (char)('0' + layers);
    snprintf(path, sizeof path, "%s/config.json", folder);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(line, 1, length, file), length);
    fclose(file);
}

static struct model *open_cut(const char *path, int layers)
{
    const struct model_options options = {.threads = 1, .max_rows = BACKEND_MAX_ROWS, .context = 64, .layers = layers};
    static struct group self;
    struct model *model;

    group_open_self(&self);
    assert_int_equal(model_open(path, &self, &options, &model), STATUS_OK);
    return model;
}

/* Of the last of some tokens.  logits: [vocab] */
static void feed(struct model *model, float *logits)
{
    static const int32_t tokens[TOKENS] = {20, 300, 17, 4, 900, 33, 33, 71, 8, 120, 15, 6};
    struct model_rig rig = {.model = model};

    assert_int_equal(kv_cache_open(&rig.cache, model, MODEL_RIG_SLOTS), STATUS_OK);
    assert_int_equal(forward_open(&rig.forward, model, &rig.cache), STATUS_OK);
    for (int i = 0; i < TOKENS; i++) {
        const struct chain chain = {0, i, 1, &tokens[i]};

        model_rig_step(&rig, &chain, 1, logits);
    }
    forward_close(&rig.forward);
    kv_cache_close(&rig.cache);
}

static void test_layers__the_first_ones_are_a_model(void **state)
{
    (void)state;
    for (int layers = 1; layers <= LAYERS; layers++) {
        write_variant(layers);
        struct model *cut = open_cut(TARGET, layers), *whole = open_cut(folder, 0);
        size_t bytes = (size_t)cut->vocab * sizeof(float);
        float *got = malloc(bytes), *expected = malloc(bytes);

        assert_int_equal(cut->config.layers, layers);
        assert_int_equal(model_bytes(cut), model_bytes(whole));
        feed(cut, got);
        feed(whole, expected);
        assert_memory_equal(got, expected, bytes);
        free(got);
        free(expected);
        model_close(cut);
        model_close(whole);
    }
}

static void test_layers__those_that_are_skipped_are_not_there(void **state)
{
    static const int left[] = {0, 1, 3};
    struct model_options options = {.threads = 1, .max_rows = BACKEND_MAX_ROWS, .context = 64, .layers = 5};
    struct model *whole = open_cut(TARGET, 0), part = *whole, *skipped;
    size_t bytes = (size_t)whole->vocab * sizeof(float);
    float *got = malloc(bytes), *expected = malloc(bytes);
    struct layer_weights layer[3];
    struct group self;

    (void)state;
    layer_set_add(&options.skip, 2);
    layer_set_add(&options.skip, 4);
    for (int i = 0; i < 3; i++)
        layer[i] = whole->layer[left[i]];
    part.layer = layer;
    part.config.layers = 3;
    group_open_self(&self);
    assert_int_equal(model_open(TARGET, &self, &options, &skipped), STATUS_OK);
    assert_int_equal(skipped->config.layers, 3);
    feed(skipped, got);
    feed(&part, expected);
    assert_memory_equal(got, expected, bytes);
    feed(whole, expected);
    assert_memory_not_equal(got, expected, bytes);
    free(got);
    free(expected);
    model_close(skipped);
    model_close(whole);
}

/* A llama2.c file says by its header how long it is, for all layers: 3 here, of zeros. */
static void test_layers__a_file_of_more_layers_is_no_fault(void **state)
{
    enum { DIM = 32, FFN = 64, HEADS = 2, VOCAB = 64, SEQUENCE = 64 };
    static const int32_t header[] = {DIM, FFN, 3, HEADS, HEADS, VOCAB, SEQUENCE};
    const size_t layer = 2 * DIM + 4 * DIM * DIM + 3 * DIM * FFN, count = VOCAB * DIM + 3 * layer + DIM + SEQUENCE * DIM / HEADS;
    float *weights = calloc(count, sizeof *weights);
    char path[PATH_MAX];
    FILE *file;

    (void)state;
    snprintf(path, sizeof path, "%s/model.bin", folder);
    file = fopen(path, "w");
    assert_true(weights != NULL && file != NULL);
    assert_int_equal(fwrite(header, sizeof header, 1, file), 1);
    assert_int_equal(fwrite(weights, sizeof *weights, count, file), count);
    fclose(file);
    free(weights);
    for (int layers = 1; layers <= 3; layers++) {
        struct model *model = open_cut(path, layers);

        assert_int_equal(model->config.layers, layers);
        model_close(model);
    }
}

static void test_layers__others_than_there_are_are_refused(void **state)
{
    static const struct {
        struct model_options options;
        const char *expected;
    } cases[] = {
        {{.layers = LAYERS + 1}, "launch/demo/target has 6 layers, expected layers=1 to 6, not 7"},
        {{.skip = {{1 << 1 | 1 << 6}}}, "skip names layer 6, expected some of 0 to 5: "},
        {{.skip = {{0, 1}}}, "skip names layer 64, expected some of 0 to 5: "},
        {{.layers = 3, .skip = {{1 << 3}}}, "skip names layer 3, expected some of 0 to 2: "},
        {{.skip = {{63}}}, "skip names all 6 layers of "},
        {{.layers = 2, .skip = {{3}}}, "skip names all 2 layers of "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct capture capture;
        char logged[1024];

        capture_begin(&capture);
        assert_int_equal(model_check(TARGET, 1, &cases[i].options), STATUS_USAGE);
        capture_end(&capture, logged, sizeof logged);
        capture_assert_one_line(logged, cases[i].expected);
    }
}

static int make_folder(void **state)
{
    char path[PATH_MAX];

    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    return symlink(TARGET "/model.safetensors", path);
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"config.json", "model.safetensors", "model.bin"};
    char path[PATH_MAX];

    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers__the_first_ones_are_a_model),
        cmocka_unit_test(test_layers__those_that_are_skipped_are_not_there),
        cmocka_unit_test(test_layers__a_file_of_more_layers_is_no_fault),
        cmocka_unit_test(test_layers__others_than_there_are_are_refused),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
