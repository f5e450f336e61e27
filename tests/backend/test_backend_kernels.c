#include "common/backend/cpu/kernels.h"
#include "common/base/math32.h"
#include "tests/backend/rig.h"
#include "tests/support/e4m3.h"

#include <math.h>
#include <string.h>

enum { COUNT = 4099 };

static const char *const isas[] = {"scalar", "avx2", "avx512"};

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Calls check for each instruction set of this CPU. */
static void each_isa(void (*check)(const struct kernels *kernels))
{
    for (int i = 0; i < 3; i++)
        if (kernels_find(isas[i]) != NULL)
            check(kernels_find(isas[i]));
        else
            print_message("skipped: this CPU does not run %s\n", isas[i]);
}

static void check_exp(const struct kernels *kernels)
{
    struct random random = {.state = 1};
    float from[COUNT] = {0.0f, -0.0f, 88.0f, 88.1f, -87.0f, -87.01f, -INFINITY, INFINITY, 1e30f, -1e30f, 1e-40f}, to[COUNT];

    for (int round = 0; round < 300; round++) {
        for (int i = round == 0 ? 11 : 0; i < COUNT; i++)
            from[i] = random_float(&random) * 95.0f;
        kernels->map_exp(from, to, COUNT);
        for (int i = 0; i < COUNT; i++) {
            float expected = math32_exp(from[i]);

            assert_same_bits(&to[i], &expected, 1);
        }
    }
}

static void check_log(const struct kernels *kernels)
{
    struct random random = {.state = 2};
    float from[COUNT] = {0.0f, -0.0f, 1.0f, -1.0f, 0x1p-126f, 0x1.fffffep+127f, 0x1.6a09e6p-1f, 0x1.6a09e8p-1f}, to[COUNT];

    for (int round = 0; round < 300; round++) {
        for (int i = round == 0 ? 8 : 0; i < COUNT; i++)
            from[i] = float_of(0x00800000 + random_word(&random) % 0x7f000000);
        kernels->map_log(from, to, COUNT);
        for (int i = 0; i < COUNT; i++) {
            float expected = math32_log(from[i]);

            assert_same_bits(&to[i], &expected, 1);
        }
    }
}

static void check_gumbel(const struct kernels *kernels)
{
    struct random random = {.state = 3};
    uint32_t from[COUNT] = {0, 1, 2, 3, UINT32_MAX, UINT32_MAX - 1, 0x80000000, 0x7fffffff, 0x01000001, 0xffffff80, 0xffffff00, 0xff};
    float to[COUNT];

    for (int round = 0; round < 300; round++) {
        for (int i = round == 0 ? 12 : 0; i < COUNT; i++)
            from[i] = random_word(&random) >> (round % 4 == 0 ? random_word(&random) % 32 : 0);
        kernels->map_gumbel(from, to, COUNT);
        for (int i = 0; i < COUNT; i++) {
            float expected = rng_gumbel_of(from[i]);

            assert_same_bits(&to[i], &expected, 1);
        }
    }
}

/* What comes after the last value is left alone. */
static void check_round_bf16(const struct kernels *kernels)
{
    struct random random = {.state = 4};
    const float after = float_of(0x3f812345);
    float x[COUNT + 1];
    uint16_t expected[COUNT];

    for (int round = 0; round < 300; round++) {
        int count = round < 40 ? round : COUNT - round;

        for (int i = 0; i < count; i++) {
            uint32_t word = random_word(&random), rest[] = {word & 0xffff, 0x8000, 0x7fff, 0x8001}; /* ties, and what is next to them */

            x[i] = float_of((random_word(&random) & 0xffff0000) | rest[word >> 16 & 3]);
            x[i] = isnan(x[i]) ? INFINITY : x[i];
            expected[i] = nearest_bf16(x[i]);
        }
        x[count] = after;
        kernels->round_bf16(x, count);
        for (int i = 0; i < count; i++)
            assert_same_bits(&x[i], &(float){float_of((uint32_t)expected[i] << 16)}, 1);
        assert_same_bits(&x[count], &after, 1);
    }
}

static void check_round_edges(const struct kernels *kernels)
{
    static const uint32_t edges[][2] = {
        {0x00000000, 0x00000000}, {0x80000000, 0x80000000}, {0x00000001, 0x00000000}, {0x80008000, 0x80000000}, {0x80018000, 0x80020000},
        {0x7f7f7fff, 0x7f7f0000}, {0x7f7f8000, 0x7f800000}, {0xff7fffff, 0xff800000}, {0x7f800000, 0x7f800000}, {0xff800000, 0xff800000},
        {0x7f800001, 0x7fc00000}, {0xff80ffff, 0xffc00000}, {0x7fffffff, 0x7fff0000}, {0xffffffff, 0xffff0000}, {0x7fc12345, 0x7fc10000},
    };

    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        float found = float_of(edges[i][0]), expected = float_of(edges[i][1]);

        kernels->round_bf16(&found, 1);
        assert_same_bits(&found, &expected, 1);
    }
}

/* What comes after the last byte is left alone; so is what is rounded, unless the bytes take its place. */
static void check_round_e4m3(const struct kernels *kernels)
{
    struct random random = {.state = 5};
    float x[COUNT];
    unsigned char to[COUNT + 1], expected[COUNT];

    for (int round = 0; round < 60; round++) {
        int count = round < 40 ? round : COUNT - round;

        for (int i = 0; i < count; i++) {
            uint32_t word = random_word(&random), exponent = 112 + word % 26;                 /* from subnormals to what is too large */
            uint32_t rest[] = {random_word(&random) & 0xfffff, 0x80000, 0x7ffff, 0x80001, 0}; /* and ties, and what is next to them */

            x[i] = float_of((word & 0x80000000) | exponent << 23 | (word >> 8 & 7) << 20 | rest[(word >> 12) % 5]);
            if ((word >> 24) % 8 == 0)
                x[i] = ldexpf((float)(word % 33) / 2, -9); /* ties between subnormals */
            expected[i] = e4m3_nearest(x[i]);
        }
        to[count] = 0x55;
        kernels->round_e4m3(x, count, to);
        assert_memory_equal(to, expected, (size_t)count);
        assert_int_equal(to[count], 0x55);
        kernels->round_e4m3(x, count, (unsigned char *)x);
        assert_memory_equal(x, expected, (size_t)count);
    }
}

static void check_e4m3_edges(const struct kernels *kernels)
{
    static const struct {
        uint32_t bits;
        unsigned char byte;
    } edges[] = {{0x00000000, 0x00}, {0x80000000, 0x80}, {0x00000001, 0x00}, {0x80000001, 0x80}, {0x43e00000, 0x7e}, {0x43e80000, 0x7e},
                 {0x43f00000, 0x7e}, {0xc4000000, 0xfe}, {0x7f7fffff, 0x7e}, {0x7f800000, 0x7e}, {0xff800000, 0xfe}, {0x7fc00000, 0x7f},
                 {0xff800001, 0xff}, {0x3a800000, 0x00}, {0x3a800001, 0x01}, {0x3b000000, 0x01}, {0x3b400000, 0x02}, {0x3c7fffff, 0x08},
                 {0x3c700000, 0x08}, {0x3c6fffff, 0x07}, {0x3c800000, 0x08}};

    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        float x = float_of(edges[i].bits);
        unsigned char found;

        kernels->round_e4m3(&x, 1, &found);
        assert_int_equal(found, edges[i].byte);
    }
}

static void test_kernels__round_e4m3_is_to_the_nearest_and_nan_stays(void **state)
{
    (void)state;
    each_isa(check_round_e4m3);
    each_isa(check_e4m3_edges);
}

static void test_kernels__exp_has_the_bits_of_math32(void **state)
{
    (void)state;
    each_isa(check_exp);
}

static void test_kernels__log_has_the_bits_of_math32(void **state)
{
    (void)state;
    each_isa(check_log);
}

static void test_kernels__gumbel_has_the_bits_of_rng(void **state)
{
    (void)state;
    each_isa(check_gumbel);
}

static void test_kernels__round_bf16_is_to_the_nearest_and_nan_stays(void **state)
{
    (void)state;
    each_isa(check_round_bf16);
    each_isa(check_round_edges);
}

static void test_kernels__every_f16_widens_as_dtype_widen_does(void **state)
{
    static uint16_t halves[65536];
    const float one = 1.0f;

    (void)state;
    for (int i = 0; i < 65536; i++)
        halves[i] = (uint16_t)((i >> 10 & 31) == 31 ? 0 : i); /* infinities and NaN do not stand in weights */
    for (int i = 0; i < RIGS; i += 3) {
        struct backend_context *context = rig_open(i);

        if (context == NULL)
            continue;
        for (int first = 0; first < 65536; first += 4096) {
            const void *rows[4096];
            struct matrix_source source = {.rows = rows, .outputs = 4096, .columns = 1, .dtype = DTYPE_F16, .slices = 1};
            struct matrix *matrix;
            struct arena arena;
            float to[4096], wide;

            for (int o = 0; o < 4096; o++)
                rows[o] = &halves[first + o];
            assert_int_equal(arena_open(&arena, backend_cpu.linear.matrix_bytes(&source), "test"), STATUS_OK);
            assert_int_equal(backend_cpu.linear.matrix_pack(context, &source, &arena, &matrix), STATUS_OK);
            backend_cpu.linear.matmul(context, matrix, 1, &one, to);
            for (int o = 0; o < 4096; o++) {
                dtype_widen(DTYPE_F16, rows[o], &wide, 1);
                assert_true(to[o] == wide);
            }
            arena_close(&arena);
        }
        backend_cpu.close(context);
    }
}

static void test_kernels__an_unknown_isa_is_refused(void **state)
{
    struct backend_options options = {.threads = 1, .isa = "mmx"};
    struct backend_context *context = NULL;

    (void)state;
    assert_int_equal(backend_cpu.open(&options, &context), STATUS_USAGE);
    assert_null(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels__exp_has_the_bits_of_math32),
        cmocka_unit_test(test_kernels__log_has_the_bits_of_math32),
        cmocka_unit_test(test_kernels__gumbel_has_the_bits_of_rng),
        cmocka_unit_test(test_kernels__every_f16_widens_as_dtype_widen_does),
        cmocka_unit_test(test_kernels__round_bf16_is_to_the_nearest_and_nan_stays),
        cmocka_unit_test(test_kernels__round_e4m3_is_to_the_nearest_and_nan_stays),
        cmocka_unit_test(test_kernels__an_unknown_isa_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
