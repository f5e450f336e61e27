/* Folders in AWQ, GPTQ and FP8 give the logits of what their numbers stand for, by the tests' own arithmetic. */
#include "tests/support/few_bits.h"
#include "tests/support/golden.h"
#include "tests/support/model_rig.h"

#include "common/model/checkpoint.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TOKENS = 48 };
#define LARGEST_ERROR 0.012 /* relative, root mean square over all logits: activations are rounded to 8 bits beside weights of 4 */

static char work[] = "/tmp/test_few_bits.XXXXXX", to[64], values[64];

static int make_folders(void **state)
{
    (void)state;
    return mkdtemp(work) == NULL;
}

static int remove_folders(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", work);
    return system(command); /* NOLINT: a path of mkdtemp */
}

static void write_folders(const char *from, enum few_bits_kind kind)
{
    char folder[GOLDEN_PATH];
    static int number;

    golden_path(from, folder);
    snprintf(to, sizeof to, "%s/%d", work, number);
    snprintf(values, sizeof values, "%s/%d.values", work, number++);
    few_bits_write(folder, to, values, kind);
}

static const char *const folders[] = {"launch/demo/draft", "tests/golden/models/qwen2", "tests/golden/models/qwen3"};

static float *logits_of(const char *path, int *vocab)
{
    struct model_rig rig;
    int32_t walk[TOKENS];
    float *logits;

    model_rig_open(&rig, path, NULL, 1, NULL);
    *vocab = rig.model->vocab_count;
    for (int i = 0; i < TOKENS; i++)
        walk[i] = (i * 37 + 5) % *vocab;
    logits = calloc((size_t)(TOKENS * *vocab), sizeof *logits);
    assert_non_null(logits);
    model_rig_feed(&rig, 0, walk, TOKENS, TOKENS, logits);
    model_rig_close(&rig);
    return logits;
}

static size_t packed_bytes(const char *path)
{
    struct model_rig rig;
    size_t bytes;

    model_rig_open(&rig, path, NULL, 1, NULL);
    bytes = model_bytes(rig.model);
    model_rig_close(&rig);
    return bytes;
}

/* A map whose rows are one group each has one scale and zero point for each, and with groups of 32 columns it has several. */
static void test_few_bits__scales_and_zero_points_are_packed_as_seldom_as_they_are_kept(void **state)
{
    size_t bytes[2];

    (void)state;
    write_folders(folders[0], FEW_BITS_AWQ);
    bytes[0] = packed_bytes(to);
    write_folders(folders[0], FEW_BITS_GPTQ_ZERO);
    bytes[1] = packed_bytes(to);
    print_message("%zu and %zu bytes\n", bytes[0], bytes[1]);
    assert_true(bytes[1] < bytes[0]);
}

static void test_few_bits__fp8_gives_the_bits_of_its_values(void **state)
{
    int vocab;

    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        for (enum few_bits_kind kind = FEW_BITS_FP8_BLOCK; kind <= FEW_BITS_FP8_ALL; kind++) {
            write_folders(folders[i], kind);
            float *found = logits_of(to, &vocab), *expected = logits_of(values, &vocab);

            if (memcmp(found, expected, (size_t)(TOKENS * vocab) * sizeof *found) != 0)
                fail_msg("%s, %s: other logits", folders[i], few_bits_name[kind]);
            free(found);
            free(expected);
        }
}

static void test_few_bits__of_4_bits_the_logits_are_near_those_of_the_values(void **state)
{
    int vocab;

    (void)state;
    for (enum few_bits_kind kind = FEW_BITS_AWQ; kind <= FEW_BITS_GPTQ_ZERO; kind++) {
        write_folders(folders[0], kind);
        float *found = logits_of(to, &vocab), *expected = logits_of(values, &vocab);
        double error = golden_apart(found, expected, (size_t)(TOKENS * vocab));

        print_message("%s: apart by %.3g of the logits' size\n", few_bits_name[kind], error);
        assert_true(error > 0 && error < LARGEST_ERROR);
        free(found);
        free(expected);
    }
}

static void compare_rows(const struct tensor *found, const struct tensor *expected, const char *name)
{
    size_t columns = (size_t)found->columns;
    float *row = calloc(columns, sizeof *row);

    assert_non_null(row);
    for (int i = 0; i < found->rows; i++) {
        model_rig_map_row(found, i, row);
        for (size_t k = 0; k < columns; k++) {
            float value;

            memcpy(&value, (const char *)expected->data + ((size_t)i * columns + k) * sizeof value, sizeof value);
            if (row[k] != value)
                fail_msg("%s: row %d, column %zu is %g, expected %g", name, i, k, (double)row[k], (double)value);
        }
    }
    free(row);
}

/* Every map of every layer, row by row. */
static void compare_map(const struct checkpoint *made, const struct checkpoint *plain, const struct config *config, enum family_part part, int layer,
                        int rows, int columns, enum dtype dtype)
{
    struct tensor found, expected;
    char name[FAMILY_NAME_MAX];

    family_tensor(config->family, part, layer, name);
    assert_int_equal(checkpoint_find(made, name, rows, columns, &found), STATUS_OK);
    assert_int_equal(checkpoint_find(plain, name, rows, columns, &expected), STATUS_OK);
    assert_int_equal(found.dtype, dtype);
    compare_rows(&found, &expected, name);
}

static void test_few_bits__each_value_is_what_its_numbers_stand_for(void **state)
{
    static const enum dtype dtypes[FEW_BITS_KINDS] = {DTYPE_Q4_Z, DTYPE_Q4_Z, DTYPE_Q4_Z, DTYPE_BF16, DTYPE_BF16, DTYPE_BF16, DTYPE_BF16};
    int f8 = 0;
    struct checkpoint *made, *plain;
    struct config config, other;

    (void)state;
    for (enum few_bits_kind kind = 0; kind < FEW_BITS_KINDS; kind++) {
        write_folders(folders[0], kind);
        assert_int_equal(config_read(to, &config), STATUS_OK);
        assert_int_equal(config_read(values, &other), STATUS_OK);
        assert_int_equal(checkpoint_open(to, &config, &made), STATUS_OK);
        assert_int_equal(checkpoint_open(values, &other, &plain), STATUS_OK);
        for (int layer = 0; layer < config.layers; layer++) {
            compare_map(made, plain, &config, FAMILY_Q, layer, config.heads * config.head_dim, config.hidden, dtypes[kind]);
            compare_map(made, plain, &config, FAMILY_UP, layer, config.ffn, config.hidden, dtypes[kind]);
            compare_map(made, plain, &config, FAMILY_DOWN, layer, config.hidden, config.ffn,
                        few_bits_is_f8(kind, config.ffn) ? DTYPE_F8 : dtypes[kind]);
            f8 += few_bits_is_f8(kind, config.ffn);
        }
        checkpoint_close(made);
        checkpoint_close(plain);
    }
    assert_true(f8 > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_bits__each_value_is_what_its_numbers_stand_for),
        cmocka_unit_test(test_few_bits__scales_and_zero_points_are_packed_as_seldom_as_they_are_kept),
        cmocka_unit_test(test_few_bits__fp8_gives_the_bits_of_its_values),
        cmocka_unit_test(test_few_bits__of_4_bits_the_logits_are_near_those_of_the_values),
    };

    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
