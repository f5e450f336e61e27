/* Quantised weights, read by the block: literal bytes and what ggml's definition of the format makes of them. */
#include "common/backend/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* F16: 0x3800 is 0.5, 0xB400 is -0.25, 0x3555 is 0.333251953125, 0x0001 is 2^-24, 0x4200 is 3. */
static const uint8_t q8_0[34] = {0x00, 0x38, 0, 1, 0xFF, 127, 0x80, 0x81, 2, 3, 4};
static const uint8_t q4_0[18] = {0x00, 0xB4, 0x00, 0x8F, 0xF8, 0x71};
static const uint8_t q4_1[20] = {0x55, 0x35, 0x00, 0x42, 0x00, 0x0F, 0xF0, 0x21};
static const uint8_t smallest[34] = {0x01, 0x00, 1, 0x80};

static void test_dtype__q8_0_is_scale_times_integer(void **state)
{
    float found[DTYPE_BLOCK];

    (void)state;
    dtype_widen(DTYPE_Q8_0, q8_0, found, DTYPE_BLOCK);
    const float expected[DTYPE_BLOCK] = {0, 0.5f, -0.5f, 63.5f, -64, -63.5f, 1, 1.5f, 2};
    assert_memory_equal(found, expected, sizeof expected);
    dtype_widen(DTYPE_Q8_0, smallest, found, DTYPE_BLOCK);
    assert_true(found[0] == 0x1p-24f && found[1] == -0x1p-17f);
}

/* Low halves are the values 0 to 15, high halves 16 to 31. */
static void test_dtype__q4_0_is_scale_times_integer_less_8(void **state)
{
    float found[DTYPE_BLOCK];

    (void)state;
    dtype_widen(DTYPE_Q4_0, q4_0, found, DTYPE_BLOCK);
    assert_true(found[0] == 2 && found[1] == -1.75f && found[2] == 0 && found[3] == 1.75f && found[4] == 2);
    assert_true(found[16] == 2 && found[17] == 0 && found[18] == -1.75f && found[19] == 0.25f && found[31] == 2);
    assert_true(__builtin_signbit(found[2])); /* -0.25 x 0, as ggml has it */
}

static void test_dtype__q4_1_is_scale_times_integer_and_minimum(void **state)
{
    float found[DTYPE_BLOCK];

    (void)state;
    dtype_widen(DTYPE_Q4_1, q4_1, found, DTYPE_BLOCK);
    assert_true(found[0] == 3 && found[1] == 3 + 15 * 0.333251953125f && found[2] == 3 && found[3] == 3.333251953125f);
    assert_true(found[16] == 3 && found[17] == 3 && found[18] == 3 + 15 * 0.333251953125f && found[19] == 3.66650390625f);
}

static void test_dtype__columns_of_a_row_need_not_be_whole_blocks(void **state)
{
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_Q8_0, DTYPE_Q4_0, DTYPE_Q4_1};
    enum { COLUMNS = 3 * DTYPE_BLOCK };
    uint8_t row[COLUMNS * 4];
    float whole[COLUMNS], part[COLUMNS + 1];

    (void)state;
    for (size_t i = 0; i < sizeof row; i++)
        row[i] = (uint8_t)(i * 73 % 59); /* no exponent of all ones in any of the dtypes */
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        assert_int_equal(dtype_row_bytes(dtypes[d], COLUMNS), COLUMNS / DTYPE_BLOCK * dtype_row_bytes(dtypes[d], DTYPE_BLOCK));
        dtype_widen(dtypes[d], row, whole, COLUMNS);
        for (size_t first = 0; first < COLUMNS; first++)
            for (size_t count = 0; first + count <= COLUMNS; count++) {
                part[count] = 77;
                dtype_widen_columns(dtypes[d], row, first, count, part);
                if (count > 0)
                    assert_memory_equal(part, whole + first, count * sizeof *part);
                assert_true(part[count] == 77);
            }
    }
}

static void test_dtype__sizes_and_names(void **state)
{
    static const struct {
        enum dtype dtype;
        const char *name;
        size_t row; /* bytes of 64 values */
    } expected[] = {{DTYPE_F32, "F32", 256},  {DTYPE_F16, "F16", 128},  {DTYPE_BF16, "BF16", 128},
                    {DTYPE_Q8_0, "Q8_0", 68}, {DTYPE_Q4_0, "Q4_0", 36}, {DTYPE_Q4_1, "Q4_1", 40}};

    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_string_equal(dtype_name(expected[i].dtype), expected[i].name);
        assert_int_equal(dtype_row_bytes(expected[i].dtype, 64), expected[i].row);
        assert_int_equal(dtype_is_quantised(expected[i].dtype), i >= 3);
        assert_int_equal(dtype_bytes(expected[i].dtype), i >= 3 ? 0 : expected[i].row / 64);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtype__q8_0_is_scale_times_integer),
        cmocka_unit_test(test_dtype__q4_0_is_scale_times_integer_less_8),
        cmocka_unit_test(test_dtype__q4_1_is_scale_times_integer_and_minimum),
        cmocka_unit_test(test_dtype__columns_of_a_row_need_not_be_whole_blocks),
        cmocka_unit_test(test_dtype__sizes_and_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
