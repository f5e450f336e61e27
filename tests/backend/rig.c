#include "tests/backend/rig.h"

#include "common/backend/cpu/matrix.h"
#include "tests/support/block_encode.h"

#include "common/backend/cpu/kernels.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OTHERS = 65 << 20 /* bytes beside a matrix, never touched */ };

struct backend_context *rig_open(int i)
{
    static const char *const isas[] = {"scalar", "avx2", "avxvnni", "avx512", "avx512vnni"};
    const char *isa = isas[i / 3];
    struct backend_options options = {
        .threads = i % 3 + 1, .max_rows = 128, .max_hidden = RIG_HIDDEN, .max_qkv = RIG_QKV, .max_columns = RIG_COLUMNS,
        .max_context = RIG_CONTEXT, .max_vocab = RIG_VOCAB, .isa = isa};
    struct backend_context *context = NULL;

    if (kernels_find(isa) == NULL) {
        if (i % 3 == 0)
            printf("skipped: this CPU does not run %s\n", isa);
        return NULL;
    }
    assert_int_equal(backend_cpu.open(&options, &context), STATUS_OK);
    return context;
}

uint32_t random_word(struct random *random)
{
    uint32_t x = random->state += 0x9e3779b9;

    x = (x ^ x >> 16) * 0x85ebca6b;
    x = (x ^ x >> 13) * 0xc2b2ae35;
    return x ^ x >> 16;
}

float random_float(struct random *random)
{
    return (float)(random_word(random) >> 8) * 0x1p-23f - 1.0f;
}

void random_floats(struct random *random, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = random_float(random);
}

static double widened(uint32_t half)
{
    uint32_t bits = half << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return isinf(value) ? copysign(0x1p128, value) : value; /* as if exponents went on */
}

uint16_t nearest_bf16(float value)
{
    uint32_t bits, below;
    double low, high;

    memcpy(&bits, &value, sizeof bits);
    if (isinf(value))
        return (uint16_t)(bits >> 16);
    below = bits >> 16; /* towards zero; the next one is away from it */
    low = fabs((double)value - widened(below));
    high = fabs(widened(below + 1) - (double)value);
    return (uint16_t)(high < low || (high == low && below % 2 == 1) ? below + 1 : below);
}

void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    assert_non_null(memory);
    return memory;
}

/* Integers anyhow, d and m below 2^-3. */
static void *random_blocks(struct random *random, enum dtype dtype, size_t count)
{
    size_t bytes = dtype_row_bytes(dtype, count), block = dtype_row_bytes(dtype, dtype_block(dtype)), at[2];
    unsigned char *to = zeroed(1, bytes);
    int halves = block_halves(dtype, at);

    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)random_word(random);
    for (size_t i = 0; i < bytes; i += block)
        for (int h = 0; h < halves; h++) {
            unsigned char *high = &to[i + at[h] + 1];

            *high = (unsigned char)((*high & 0x83) | (random_word(random) % 12) << 2);
        }
    return to;
}

/* All bytes that are numbers, and scales of any size that leaves room for sums. */
static void *random_f8(struct random *random, size_t count)
{
    size_t block = dtype_row_bytes(DTYPE_F8, DTYPE_BLOCK_F8), bytes = dtype_row_bytes(DTYPE_F8, count);
    unsigned char *to = zeroed(1, bytes);

    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(random_word(random) % 127 | (random_word(random) & 0x80));
    for (size_t i = 0; i < bytes; i += block) {
        float scale = ldexpf(random_float(random), -(int)(random_word(random) % 20));

        memcpy(to + i, &scale, sizeof scale);
    }
    return to;
}

void *random_weights(struct random *random, enum dtype dtype, size_t count)
{
    unsigned char *bytes;

    if (dtype == DTYPE_F8)
        return random_f8(random, count);
    if (dtype_is_quantised(dtype))
        return random_blocks(random, dtype, count);
    bytes = zeroed(count, dtype_bytes(dtype));
    for (size_t i = 0; i < count; i++) {
        float value = random_float(random);
        uint32_t bits, word = random_word(random);
        uint16_t half;

        memcpy(&bits, &value, sizeof bits);
        half = dtype == DTYPE_BF16 ? (uint16_t)(bits >> 16)
                                   : (uint16_t)((word & 0x83ff) | (word >> 16) % 15 << 10); /* below 1, subnormals too */
        if (dtype == DTYPE_F32)
            memcpy(bytes + 4 * i, &value, 4);
        else
            memcpy(bytes + 2 * i, &half, 2);
    }
    return bytes;
}

void weights_init(struct weights *weights, struct random *random, enum dtype dtype, int outputs, int columns)
{
    size_t count = (size_t)outputs * (size_t)columns;

    *weights = (struct weights){.dtype = dtype, .outputs = outputs, .columns = columns};
    weights->data = random_weights(random, dtype, count);
    weights->wide = zeroed(count, sizeof(float));
    dtype_widen(dtype, weights->data, weights->wide, count);
}

void weights_share(struct weights *weights, int group)
{
    size_t block = dtype_row_bytes(DTYPE_Q4_Z, DTYPE_BLOCK), blocks = (size_t)(weights->columns / DTYPE_BLOCK),
           shared = (size_t)(group / DTYPE_BLOCK);
    unsigned char *bytes = weights->data;

    assert_int_equal(weights->dtype, DTYPE_Q4_Z);
    for (size_t i = 0; i < (size_t)weights->outputs * blocks; i++)
        memcpy(bytes + i * block, bytes + (i - i % blocks % shared) * block, 3);
    dtype_widen(DTYPE_Q4_Z, bytes, weights->wide, (size_t)weights->outputs * (size_t)weights->columns);
    weights->group = group;
}

void weights_release(struct weights *weights)
{
    free(weights->data);
    free(weights->wide);
}

struct matrix *weights_pack(const struct weights *weights, struct backend_context *context, const int *bounds, int slices,
                            struct arena *arena)
{
    const void **rows = zeroed((size_t)weights->outputs, sizeof *rows);
    int relative[BACKEND_MAX_SLICES + 1];
    struct matrix_source source = {.rows = rows,
                                   .outputs = weights->outputs,
                                   .columns = bounds[slices] - bounds[0],
                                   .column_first = bounds[0],
                                   .dtype = weights->dtype,
                                   .slice_bounds = slices > 1 ? relative : NULL,
                                   .slices = slices,
                                   .group = weights->group};
    static unsigned packed;
    struct matrix *matrix = NULL;
    int alone = (source.columns + slices) % 2; /* else as one among many, more than a cache keeps, which other kernels read */

    for (int i = 0; i <= slices; i++)
        relative[i] = bounds[i] - bounds[0];
    for (int o = 0; o < weights->outputs; o++)
        rows[o] = (const char *)weights->data + (size_t)o * dtype_row_bytes(weights->dtype, (size_t)weights->columns);
    assert_int_equal(arena_open(arena, backend_cpu.linear.matrix_bytes(&source) + (alone ? 0 : OTHERS), "a test's matrix"), STATUS_OK);
    assert_int_equal(backend_cpu.linear.matrix_pack(context, &source, arena, &matrix), STATUS_OK);
    assert_true(arena->used + (alone ? 0 : OTHERS) == arena->size);
    assert_int_equal(matrix->streams, !alone);
    matrix->row_goes_alone = packed++ % 2; /* whatever this core reads faster */
    free(rows);
    return matrix;
}

void assert_same_bits(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(a + i, b + i, sizeof *a) != 0)
            fail_msg("value %zu of %zu: %a is not %a", i, count, (double)a[i], (double)b[i]);
}

void assert_close(const float *a, const double *b, size_t count, double relative, double absolute)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)a[i] - b[i]) <= relative * fabs(b[i]) + absolute))
            fail_msg("value %zu of %zu: %.9g is far from %.9g", i, count, (double)a[i], b[i]);
}
