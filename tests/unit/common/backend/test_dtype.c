/* Quantised weights, read by the block: literal bytes and what ggml's definition of the format makes of them. */
#include "common/backend/backend.h"
#include "tests/support/block_encode.h"

#include <math.h>
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

/* d, the zero point, and halves of bytes: value k in the low half of byte k % 16 for k < 16, else in the high one. */
static void test_dtype__q4_z_is_scale_times_integer_less_the_zero_point(void **state)
{
    static const uint8_t block[19] = {0x55, 0x35 /* 0.333251953125 */, 11, 0x0b, 0xf0, 0x15, [18] = 0xb0};
    float found[DTYPE_BLOCK];
    struct dtype_part part;

    (void)state;
    dtype_widen(DTYPE_Q4_Z, block, found, DTYPE_BLOCK);
    assert_true(found[0] == 0 && found[1] == -11 * 0.333251953125f && found[2] == -6 * 0.333251953125f && found[15] == -11 * 0.333251953125f);
    assert_true(found[16] == -11 * 0.333251953125f && found[17] == 4 * 0.333251953125f && found[18] == -10 * 0.333251953125f && found[31] == 0);
    dtype_part_of(DTYPE_Q4_Z, block, 0, &part);
    assert_true(part.zero == 11 && part.q[17] == 4 && part.d == 0x3555 && !part.has_least);
}

/* Four blocks of each format out of a generator, their scales' signs and exponents small, and the values that ggml's own Python package (gguf 0.19.0,
 * dequantize) makes of them: FNV-1a of their bits, the first and the last. */
static const struct golden {
    enum dtype dtype;
    uint64_t digest;
    float first, last;
} goldens[] = {
    {DTYPE_Q8_0, 0x3a366c3b5dd2ebf2, -0x1.b627p-8f, 0x1.3b3cp-3f},    {DTYPE_Q4_0, 0xeeb06e12ec888474, -0x1.a7cp-10f, -0x1.e48p-5f},
    {DTYPE_Q4_1, 0xeee97d9306a85aa0, 0x1.3ad5cap-1f, 0x1.611a8p-2f},  {DTYPE_Q5_0, 0x0d3621a999246ea8, -0x1.67cp-12f, -0x1.01c4p-7f},
    {DTYPE_Q5_1, 0x791dcb23495cc411, 0x1.d08p-8f, 0x1.71f8p-10f},     {DTYPE_Q2_K, 0x31d85bdef97f6fea, -0x1.11e8p-10f, -0x1.eef6p-7f},
    {DTYPE_Q3_K, 0x22c21767cc88141c, 0x1.443p-6f, -0x1.28cp-6f},      {DTYPE_Q4_K, 0x10c844c0d8f80319, -0x1.2f3cp+1f, -0x1.efc8ap-2f},
    {DTYPE_Q5_K, 0xca4980fa53e3a8dc, 0x1.63c7d8p+7f, 0x1.f2e868p+0f}, {DTYPE_Q6_K, 0xf14c18052975f40e, -0x1.9b54p+3f, 0x1.d6cap-7f},
};

static uint64_t fnv1a(const void *bytes, size_t count)
{
    uint64_t digest = 0xcbf29ce484222325;

    for (size_t i = 0; i < count; i++)
        digest = (digest ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3;
    return digest;
}

static void test_dtype__blocks_are_what_ggmls_package_makes_of_them(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof goldens / sizeof *goldens; n++) {
        const struct golden *golden = &goldens[n];
        size_t count = 4 * dtype_block(golden->dtype), size = dtype_row_bytes(golden->dtype, count), each = size / 4;
        uint8_t bytes[4 * 210];
        float values[4 * DTYPE_BLOCK_MOST];
        uint32_t word = 1000 + (uint32_t)n;
        size_t at[2];
        int halves = block_halves(golden->dtype, at);

        for (size_t i = 0; i < size; i++) {
            word = word * 1664525 + 1013904223;
            bytes[i] = (uint8_t)(word >> 24);
        }
        for (size_t i = 0; i < size; i += each)
            for (int h = 0; h < halves; h++) {
                uint8_t *high = &bytes[i + at[h] + 1];

                *high = (uint8_t)((*high & 3) | (*high >> 2 & 31) % 15 << 2);
            }
        dtype_widen(golden->dtype, bytes, values, count);
        assert_true(values[0] == golden->first && values[count - 1] == golden->last);
        if (fnv1a(values, count * sizeof *values) != golden->digest)
            fail_msg("%s: values are others than ggml's", dtype_name(golden->dtype));
    }
}

/* Rows of two dtypes can be packed as one that keeps both as they are, whatever came first. */
static void test_dtype__the_common_dtype_keeps_both(void **state)
{
    static const struct {
        enum dtype one, other, common;
    } pairs[] = {{DTYPE_Q8_0, DTYPE_Q5_0, DTYPE_Q8_0}, {DTYPE_Q3_K, DTYPE_Q6_K, DTYPE_Q6_K}, {DTYPE_Q4_K, DTYPE_Q6_K, DTYPE_Q5_K},
                 {DTYPE_Q2_K, DTYPE_Q3_K, DTYPE_Q5_K}, {DTYPE_Q4_K, DTYPE_Q5_K, DTYPE_Q5_K}, {DTYPE_Q4_0, DTYPE_Q8_0, DTYPE_F32},
                 {DTYPE_Q5_1, DTYPE_Q5_0, DTYPE_F32},  {DTYPE_F16, DTYPE_BF16, DTYPE_F32},   {DTYPE_Q6_K, DTYPE_F16, DTYPE_F32},
                 {DTYPE_Q6_K, DTYPE_Q8_0, DTYPE_F32},  {DTYPE_Q4_Z, DTYPE_Q4_0, DTYPE_F32},  {DTYPE_Q4_Z, DTYPE_Q4_K, DTYPE_F32}};

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(dtype_common(pairs[i].one, pairs[i].other), pairs[i].common);
        assert_int_equal(dtype_common(pairs[i].other, pairs[i].one), pairs[i].common);
    }
    for (enum dtype dtype = DTYPE_F32; dtype < DTYPES; dtype++)
        assert_int_equal(dtype_common(dtype, dtype), dtype);
}

static void test_dtype__columns_of_a_row_need_not_be_whole_blocks(void **state)
{
    uint8_t row[2 * DTYPE_BLOCK_MOST * 4];
    float whole[2 * DTYPE_BLOCK_MOST], part[2 * DTYPE_BLOCK_MOST + 1];

    (void)state;
    for (size_t i = 0; i < sizeof row; i++)
        row[i] = (uint8_t)(i * 73 % 59); /* no exponent of all ones in any of the dtypes */
    for (enum dtype dtype = DTYPE_F32; dtype < DTYPES; dtype++) {
        size_t columns = dtype_block(dtype) > DTYPE_BLOCK ? 2 * DTYPE_BLOCK_MOST : 3 * DTYPE_BLOCK, step = columns > 96 ? 37 : 1;

        dtype_widen(dtype, row, whole, columns);
        for (size_t first = 0; first < columns; first += step)
            for (size_t count = 0; first + count <= columns; count++) {
                part[count] = 77;
                dtype_widen_columns(dtype, row, first, count, part);
                if (count > 0)
                    assert_memory_equal(part, whole + first, count * sizeof *part);
                assert_true(part[count] == 77);
            }
    }
}

/* (8 + fraction) 2^(exponent - 10), or fraction 2^-9 where the exponent is 0; all ones are no number, nor is what shares a scale with them. */
static void test_dtype__each_byte_of_f8_is_its_e4m3_times_the_scale(void **state)
{
    const float scale = 0x1.54321p-5f;
    uint8_t row[2 * (4 + DTYPE_BLOCK_F8)];
    float values[2 * DTYPE_BLOCK_F8];

    (void)state;
    for (int half = 0; half < 2; half++) {
        memcpy(row + half * 132, &scale, sizeof scale);
        for (int i = 0; i < DTYPE_BLOCK_F8; i++)
            row[half * 132 + 4 + i] = (uint8_t)(half << 7 | (i < 127 ? i : 0));
    }
    dtype_widen(DTYPE_F8, row, values, 2 * DTYPE_BLOCK_F8);
    for (int i = 0; i < 2 * DTYPE_BLOCK_F8; i++) {
        int code = i % 128 == 127 ? 0 : i % 128, exponent = code >> 3, fraction = code & 7;
        double size = exponent == 0 ? ldexp(fraction, -9) : ldexp(8 + fraction, exponent - 10);

        assert_true(values[i] == (float)((i < 128 ? size : -size) * (double)scale));
        assert_true(!signbit(values[i]) == (i < 128));
    }
    assert_true(values[126] == (float)(448.0 * (double)scale));
    row[132 + 4 + 31] = 0x7f;
    dtype_widen(DTYPE_F8, row, values, 2 * DTYPE_BLOCK_F8);
    for (int i = 0; i < 2 * DTYPE_BLOCK_F8; i++)
        assert_int_equal(isnan(values[i]) != 0, i >= 128);
}

/* Of caches: every byte. */
static void test_dtype__a_byte_of_e4m3_widens_without_a_scale(void **state)
{
    uint8_t bytes[256];
    float values[256];

    (void)state;
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    dtype_widen(DTYPE_E4M3, bytes, values, 256);
    for (int i = 0; i < 256; i++) {
        int code = i % 128, exponent = code >> 3, fraction = code & 7;
        double size = exponent == 0 ? ldexp(fraction, -9) : ldexp(8 + fraction, exponent - 10);

        if (code == 127)
            assert_true(isnan(values[i]));
        else
            assert_true(values[i] == (float)(i < 128 ? size : -size) && !signbit(values[i]) == (i < 128));
    }
    assert_int_equal(dtype_bytes(DTYPE_E4M3), 1);
    assert_int_equal(dtype_is_quantised(DTYPE_E4M3), 0);
    assert_string_equal(dtype_name(DTYPE_E4M3), "E4M3");
}

static void test_dtype__sizes_and_names(void **state)
{
    static const struct {
        enum dtype dtype;
        const char *name;
        size_t row; /* bytes of 512 values */
        int bits;
    } expected[] = {{DTYPE_F32, "F32", 2048, 32}, {DTYPE_F16, "F16", 1024, 16}, {DTYPE_BF16, "BF16", 1024, 16}, {DTYPE_F8, "F8_E4M3", 528, 8},
                    {DTYPE_Q8_0, "Q8_0", 544, 8}, {DTYPE_Q4_0, "Q4_0", 288, 4}, {DTYPE_Q4_1, "Q4_1", 320, 4},   {DTYPE_Q5_0, "Q5_0", 352, 5},
                    {DTYPE_Q5_1, "Q5_1", 384, 5}, {DTYPE_Q4_Z, "Q4_Z", 304, 4}, {DTYPE_Q2_K, "Q2_K", 168, 2},   {DTYPE_Q3_K, "Q3_K", 220, 3},
                    {DTYPE_Q4_K, "Q4_K", 288, 4}, {DTYPE_Q5_K, "Q5_K", 352, 5}, {DTYPE_Q6_K, "Q6_K", 420, 6}};

    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_string_equal(dtype_name(expected[i].dtype), expected[i].name);
        assert_int_equal(dtype_row_bytes(expected[i].dtype, 512), expected[i].row);
        assert_int_equal(dtype_is_quantised(expected[i].dtype), i >= 4);
        assert_int_equal(dtype_bits(expected[i].dtype), expected[i].bits);
        assert_int_equal(dtype_bytes(expected[i].dtype), i >= 3 ? 0 : expected[i].row / 512);
        assert_int_equal(dtype_block(expected[i].dtype), i < 3 ? 1 : i == 3 ? 128 : i < 10 ? 32 : 256);
    }
}

/* d is 1 where the largest is 127: quotients are the values. Ties go away from zero, and the number below a tie does not. */
static void test_dtype__rounding_to_q8_0_is_ggmls(void **state)
{
    static const float values[DTYPE_BLOCK] = {-127, 0.5f, -0.5f, 0.49999997f, 1.5f, 2.5f, -126.5f, 126.49999f};
    static const uint8_t expected[34] = {0x00, 0x3C, 0x81, 1, 0xFF, 0, 2, 3, 0x81, 126};
    uint8_t block[35];

    (void)state;
    block[34] = 0x77;
    dtype_round(DTYPE_Q8_0, values, block);
    assert_memory_equal(block, expected, sizeof expected);
    assert_int_equal(block[34], 0x77);
}

/* 1 / 127 is 0x2008 as F16, a little less: divided by that 0.49998 would be 63.5025, which is 64. */
static void test_dtype__quotients_of_q8_0_are_of_the_scale_before_it_is_stored(void **state)
{
    static const float values[DTYPE_BLOCK] = {0.49998f, 1, -0.49998f};
    static const uint8_t expected[34] = {0x08, 0x20, 63, 127, 0xC1};
    uint8_t block[34];

    (void)state;
    dtype_round(DTYPE_Q8_0, values, block);
    assert_memory_equal(block, expected, sizeof expected);
}

/* The first value of largest magnitude becomes -8 d, whatever its sign; what would be 8 d is 7 d. */
static void test_dtype__rounding_to_q4_0_is_ggmls(void **state)
{
    static const float falling[DTYPE_BLOCK] = {8, -8, 0, 1, [16] = -1, 0.5f, 0.6f, -0.5f}, rising[DTYPE_BLOCK] = {-8, 8, 0, 1, [16] = -1};
    static const uint8_t expected_falling[18] = {0x00, 0xBC, 0x90, 0x8F, 0x78, 0x97, 0x88, 0x88, 0x88,
                                                 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88};
    static const uint8_t expected_rising[18] = {0x00, 0x3C, 0x70, 0x8F, 0x88, 0x89, 0x88, 0x88, 0x88,
                                                0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88};
    uint8_t block[19];

    (void)state;
    block[18] = 0x77;
    dtype_round(DTYPE_Q4_0, falling, block);
    assert_memory_equal(block, expected_falling, sizeof expected_falling);
    dtype_round(DTYPE_Q4_0, rising, block);
    assert_memory_equal(block, expected_rising, sizeof expected_rising);
    assert_int_equal(block[18], 0x77);
}

static void test_dtype__scales_are_rounded_to_nearest_even(void **state)
{
    static const float edges[] = {1 + 0x1p-11f, 1 + 0x1.8p-10f, 0x1p-25f, 0x1.8p-25f, 0x1.8p-24f, 0x1.ffep-15f,
                                  0x1.fffp-15f, 65504,          65519,    65520,      1e6f};
    enum { EDGES = sizeof edges / sizeof *edges, DRAWN = 20000 };
    uint32_t word = 12345;

    (void)state;
    for (int i = 0; i < EDGES + DRAWN; i++) {
        float values[DTYPE_BLOCK] = {0}, scale;
        uint8_t block[18];
        _Float16 half;

        word = word * 1664525 + 1013904223;
        values[0] = i < EDGES ? -8 * edges[i] : ldexpf((float)(int32_t)(word | 1), (int)(word >> 24) % 44 - 56);
        scale = values[0] / -8;
        half = (_Float16)scale;
        dtype_round(DTYPE_Q4_0, values, block);
        if (memcmp(block, &half, sizeof half) != 0)
            fail_msg("%a is 0x%02x%02x as F16", (double)scale, block[1], block[0]);
    }
}

/* What cannot be said in a block is seen in what is made of it; what is too small for a scale is nothing. */
static void test_dtype__values_that_are_not_finite_spoil_their_block_and_tiny_ones_are_zeros(void **state)
{
    static const float strange[] = {NAN, INFINITY, -INFINITY};
    static const enum dtype dtypes[] = {DTYPE_Q8_0, DTYPE_Q4_0};
    float values[DTYPE_BLOCK] = {1, 2, 3}, found[DTYPE_BLOCK], tiny[DTYPE_BLOCK] = {0x1p-149f, -0x1p-140f}, none[DTYPE_BLOCK] = {0};
    uint8_t block[34];

    (void)state;
    for (int d = 0; d < 2; d++) {
        for (int i = 0; i < 3; i++) {
            values[20] = strange[i];
            dtype_round(dtypes[d], values, block);
            dtype_widen(dtypes[d], block, found, DTYPE_BLOCK);
            for (int k = 0; k < DTYPE_BLOCK; k++)
                assert_true(isnan(found[k]));
        }
        dtype_round(dtypes[d], tiny, block);
        dtype_widen(dtypes[d], block, found, DTYPE_BLOCK);
        for (int k = 0; k < DTYPE_BLOCK; k++)
            assert_true(found[k] == 0);
        dtype_round(dtypes[d], none, block);
        dtype_widen(dtypes[d], block, found, DTYPE_BLOCK);
        for (int k = 0; k < DTYPE_BLOCK; k++)
            assert_true(found[k] == 0);
    }
}

static void test_dtype__a_round_trip_fills_the_last_block_with_zeros(void **state)
{
    enum { COUNT = DTYPE_BLOCK + 5 };
    float values[COUNT + 1], full[2 * DTYPE_BLOCK] = {0};
    uint8_t block[34];

    (void)state;
    for (int i = 0; i < COUNT; i++)
        full[i] = values[i] = (float)(i * 37 % 41) / 7 - 2.5f;
    values[COUNT] = 77;
    dtype_round_trip(DTYPE_Q8_0, values, COUNT);
    for (int i = 0; i < 2 * DTYPE_BLOCK; i += DTYPE_BLOCK) {
        dtype_round(DTYPE_Q8_0, full + i, block);
        dtype_widen(DTYPE_Q8_0, block, full + i, DTYPE_BLOCK);
    }
    assert_memory_equal(values, full, COUNT * sizeof *values);
    assert_true(values[COUNT] == 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtype__q8_0_is_scale_times_integer),
        cmocka_unit_test(test_dtype__q4_0_is_scale_times_integer_less_8),
        cmocka_unit_test(test_dtype__q4_1_is_scale_times_integer_and_minimum),
        cmocka_unit_test(test_dtype__q4_z_is_scale_times_integer_less_the_zero_point),
        cmocka_unit_test(test_dtype__blocks_are_what_ggmls_package_makes_of_them),
        cmocka_unit_test(test_dtype__the_common_dtype_keeps_both),
        cmocka_unit_test(test_dtype__columns_of_a_row_need_not_be_whole_blocks),
        cmocka_unit_test(test_dtype__each_byte_of_f8_is_its_e4m3_times_the_scale),
        cmocka_unit_test(test_dtype__a_byte_of_e4m3_widens_without_a_scale),
        cmocka_unit_test(test_dtype__sizes_and_names),
        cmocka_unit_test(test_dtype__rounding_to_q8_0_is_ggmls),
        cmocka_unit_test(test_dtype__quotients_of_q8_0_are_of_the_scale_before_it_is_stored),
        cmocka_unit_test(test_dtype__rounding_to_q4_0_is_ggmls),
        cmocka_unit_test(test_dtype__scales_are_rounded_to_nearest_even),
        cmocka_unit_test(test_dtype__values_that_are_not_finite_spoil_their_block_and_tiny_ones_are_zeros),
        cmocka_unit_test(test_dtype__a_round_trip_fills_the_last_block_with_zeros),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
