/* Matrices that are packed quantised, against the contract of backend.h, computed from the file's bytes. */
#include "common/backend/cpu/matrix.h"
#include "tests/backend/rig.h"
#include "tests/support/block_encode.h"
#include "tests/support/capture.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 70, MOST_COLUMNS = 768 };

/* So many columns and what fills the last block of the file. */
static int whole(enum dtype dtype, int columns)
{
    int block = (int)dtype_block(dtype);

    return (columns + block - 1) / block * block;
}

static float half_of(uint16_t bits)
{
    _Float16 half;

    memcpy(&half, &bits, sizeof half);
    return (float)half;
}

/* Those packed by halves of blocks: the k-quants but Q4_K, unless its rows are among others. */
static int goes_by_halves(enum dtype dtype)
{
    return dtype >= DTYPE_Q2_K && dtype != DTYPE_Q4_K;
}

/* A block of two halves, but for the activations' scale. */
static float of_halves(const struct dtype_part *part, const int *products, const int *totals)
{
    float both = 0;

    for (int i = 0; i < 2; i++) {
        float of = half_of(part->d) * (float)part->scale[i];

        both = i == 0 ? (float)products[i] * of : fmaf((float)products[i], of, both);
        if (part->has_least)
            both = fmaf(half_of(part->m) * (float)part->least[i], (float)totals[i], both);
    }
    return both;
}

/* The chain over one slice: the columns [first, last) of the row.  x: of column 0 of the whole; steps: in each block, 1 or 2 */
static float chain(enum dtype dtype, const unsigned char *row, const float *x, int first, int last, int steps)
{
    float sum = 0;

    for (int begin = first, end; begin < last; begin = end) {
        int products[2] = {0}, totals[2] = {0};
        float largest = 0, scale;
        struct dtype_part part;

        dtype_part_of(dtype, row, (size_t)(begin / 32), &part);
        end = (begin / 32 + 1) * 32 < last ? (begin / 32 + 1) * 32 : last;
        for (int k = begin; k < end; k++)
            if (fabsf(x[k]) > fabsf(largest) || x[k] == fabsf(largest))
                largest = x[k];
        scale = fabsf(largest) > 0x1p-100f ? largest / -128 : 0;
        for (int k = begin; k < end; k++) {
            int value = fabsf(largest) > 0x1p-100f ? (int)fminf(nearbyintf(x[k] * (-128 / largest)), 127) : 0, step = k % 32 / (32 / steps);

            products[step] += part.q[k % 32] * value;
            totals[step] += value;
        }
        if (steps == 2) {
            sum = fmaf(of_halves(&part, products, totals), scale, sum);
            continue;
        }
        sum = fmaf((float)products[0], half_of(part.d) * (float)part.scale[0] * scale, sum);
        if (part.has_least)
            sum = fmaf(half_of(part.m) * (float)part.least[0], scale * (float)totals[0], sum);
    }
    return sum;
}

static const unsigned char *row_of(const struct weights *weights, int o)
{
    return (const unsigned char *)weights->data + (size_t)o * dtype_row_bytes(weights->dtype, (size_t)weights->columns);
}

/* x: of column 0 of the whole */
static float contract(const struct weights *weights, int o, const float *x, const int *bounds, int slices)
{
    float terms[BACKEND_MAX_SLICES];

    for (int i = 0; i < slices; i++)
        terms[i] = chain(weights->dtype, row_of(weights, o), x, bounds[i], bounds[i + 1], 1 + goes_by_halves(weights->dtype));
    return backend_tree_sum(terms, slices);
}

/* What one shard takes of the weights, and what must come of it. */
struct shard {
    const char *name;
    int columns, outputs; /* of the whole */
    int slices;
    int bounds[BACKEND_MAX_SLICES + 1]; /* of the whole's columns */
};
static const struct shard shards[] = {
    {"whole blocks, whole panels", 64, 32, 1, {0, 64}},
    {"one column", 32, 1, 1, {0, 1}},
    {"the last column of a block", 32, 17, 1, {31, 32}},
    {"three slices that end with blocks", 576, 40, 3, {0, 192, 384, 576}},
    {"slices that share blocks", 192, 33, 4, {0, 43, 86, 129, 172}},
    {"a shard that begins within a block", 192, 70, 2, {86, 129, 172}},
    {"several slices in one block, one of them empty", 64, 24, 5, {1, 3, 3, 17, 31, 40}},
    {"a shard that begins in the second 256 columns", 768, 20, 2, {300, 500, 700}},
    {"sixteen slices", 640, 150, 16, {0, 40, 80, 120, 160, 200, 240, 280, 320, 360, 400, 440, 480, 520, 560, 600, 640}},
};

/* The product on top of what is there, element by element.  x: [rows + 1][outputs], overwritten */
static void check_add(struct backend_context *context, const struct matrix *matrix, int rows, const float *from, const float *expected,
                      float *x)
{
    size_t count = (size_t)(rows * matrix->outputs);

    for (size_t i = 0; i <= count; i++)
        x[i] = 0.25f * (float)(i % 97);
    backend_cpu.linear.matmul_add(context, matrix, rows, from, x);
    for (size_t i = 0; i < count; i++) {
        float sum = 0.25f * (float)(i % 97) + expected[i];

        assert_same_bits(&x[i], &sum, 1);
    }
    assert_true(x[count] == 0.25f * (float)(count % 97));
}

static void check_rows(struct backend_context *context, const struct matrix *matrix, const struct shard *shard, const float *from,
                       const float *expected)
{
    size_t outputs = (size_t)shard->outputs;
    float *to = zeroed((ROWS + 1) * outputs, sizeof *to);

    for (int rows = 1; rows <= ROWS; rows += rows < 17 ? 1 : rows < 64 ? 47 : 6) {
        to[(size_t)rows * outputs] = 12345.0f;
        backend_cpu.linear.matmul(context, matrix, rows, from, to);
        assert_same_bits(to, expected, (size_t)rows * outputs);
        assert_true(to[(size_t)rows * outputs] == 12345.0f); /* nothing beyond the rows */
        check_add(context, matrix, rows, from, expected, to);
    }
    free(to);
}

static void check_shard(struct backend_context *const *contexts, const struct shard *shard, enum dtype dtype)
{
    struct random random = {.state = (uint32_t)(shard->columns * 100 + shard->slices)};
    int first = shard->bounds[0], own = shard->bounds[shard->slices] - first;
    float *from = zeroed((size_t)(ROWS * own), sizeof *from), *expected = zeroed((size_t)(ROWS * shard->outputs), sizeof *expected);
    struct weights weights;

    weights_init(&weights, &random, dtype, shard->outputs, whole(dtype, shard->columns));
    random_floats(&random, from, (size_t)(ROWS * own));
    for (int r = 0; r < ROWS; r++) {
        float x[MOST_COLUMNS];

        memcpy(x + first, from + r * own, (size_t)own * sizeof *x);
        for (int o = 0; o < shard->outputs; o++)
            expected[r * shard->outputs + o] = contract(&weights, o, x, shard->bounds, shard->slices);
    }
    for (int i = 0; i < RIGS; i++) {
        struct arena arena;

        if (contexts[i] == NULL)
            continue;
        check_rows(contexts[i], weights_pack(&weights, contexts[i], shard->bounds, shard->slices, &arena), shard, from, expected);
        arena_close(&arena);
    }
    weights_release(&weights);
    free(from);
    free(expected);
}

static void check_dtype(enum dtype dtype)
{
    struct backend_context *contexts[RIGS];

    for (int i = 0; i < RIGS; i++)
        contexts[i] = rig_open(i);
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i++) {
        print_message("%s: %s\n", dtype_name(dtype), shards[i].name);
        check_shard(contexts, &shards[i], dtype);
    }
    for (int i = 0; i < RIGS; i++)
        backend_cpu.close(contexts[i]);
}

static void test_quantised__is_the_contract_on_every_isa_thread_count_and_row_count(void **state)
{
    (void)state;
    for (enum dtype dtype = DTYPE_Q8_0; dtype < DTYPES; dtype++)
        check_dtype(dtype);
}

/* Scales and zero points that several blocks share lie in the panel once, wherever a shard begins. */
static void test_quantised__a_group_has_its_scale_once(void **state)
{
    static const int groups[] = {64, 96, 128, 256};

    (void)state;
    for (int i = 0; i < RIGS; i += 3) {
        struct backend_context *context = rig_open(i);

        for (size_t g = 0; g < sizeof groups / sizeof *groups && context != NULL; g++)
            for (size_t s = 0; s < sizeof shards / sizeof *shards; s++) {
                const struct shard *shard = &shards[s];
                int first = shard->bounds[0], own = shard->bounds[shard->slices] - first, rows = 3;
                float from[3 * MOST_COLUMNS], x[MOST_COLUMNS], to[3 * 150];
                struct random random = {.state = (uint32_t)(s + 10 * g)};
                struct weights weights;
                struct arena arena;

                weights_init(&weights, &random, DTYPE_Q4_Z, shard->outputs, shard->columns);
                weights_share(&weights, groups[g]);
                random_floats(&random, from, (size_t)(rows * own));
                backend_cpu.linear.matmul(context, weights_pack(&weights, context, shard->bounds, shard->slices, &arena), rows, from, to);
                for (int r = 0; r < rows; r++) {
                    memcpy(x + first, from + r * own, (size_t)own * sizeof *x);
                    for (int o = 0; o < shard->outputs; o++) {
                        float expected = contract(&weights, o, x, shard->bounds, shard->slices);

                        assert_same_bits(to + r * shard->outputs + o, &expected, 1);
                    }
                }
                arena_close(&arena);
                weights_release(&weights);
            }
        backend_cpu.close(context);
    }
}

/* 4 bits of each weight, and 64 bytes for 16 channels of a group: of 128 columns 4.25 bits, where the file has 4.16. */
static void test_quantised__4_bits_with_zero_points_take_little_more_than_in_the_file(void **state)
{
    const struct {
        int group;
        double bits;
    } cases[] = {{32, 5}, {64, 4.5}, {128, 4.25}, {256, 4.125}, {96, 5}, {4096, 4 + 1.0 / 128}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct matrix_source source = {.outputs = 1024, .columns = 4096, .dtype = DTYPE_Q4_Z, .slices = 1, .group = cases[i].group};
        double bits = 8.0 * (double)backend_cpu.linear.matrix_bytes(&source) / 4096 / 1024;

        if (bits < cases[i].bits || bits > cases[i].bits + 0.001)
            fail_msg("groups of %d columns take %g bits a weight, expected %g", cases[i].group, bits, cases[i].bits);
    }
}

/* Calls check in one context of each instruction set, for each dtype. */
static void each_isa_and_dtype(void (*check)(struct backend_context *context, enum dtype dtype))
{
    for (int i = 0; i < RIGS; i += 3) {
        struct backend_context *context = rig_open(i);

        for (enum dtype dtype = DTYPE_Q8_0; dtype < DTYPES && context != NULL; dtype++)
            check(context, dtype);
        backend_cpu.close(context);
    }
}

enum { COLUMNS = 96, OUTPUTS = 37, COMPANY = 3 };

/* The products of COMPANY rows with random weights of a sound size.  to: [COMPANY][OUTPUTS] */
static void multiply(struct backend_context *context, enum dtype dtype, const float *from, float *to, struct weights *weights)
{
    struct random random = {.state = 77};
    struct arena arena;

    weights_init(weights, &random, dtype, OUTPUTS, whole(dtype, COLUMNS));
    backend_cpu.linear.matmul(context, weights_pack(weights, context, (const int[]){0, COLUMNS}, 1, &arena), COMPANY, from, to);
    arena_close(&arena);
}

/* Rounding an activation moves it by half a scale at most; the rest is the rounding of float32. */
static void check_near(struct backend_context *context, enum dtype dtype)
{
    struct random random = {.state = 6};
    float from[COMPANY * COLUMNS], to[COMPANY * OUTPUTS];
    struct weights weights;

    random_floats(&random, from, COMPANY * COLUMNS);
    multiply(context, dtype, from, to, &weights);
    for (int i = 0; i < COMPANY * OUTPUTS; i++) {
        const float *x = from + i / OUTPUTS * COLUMNS, *w = weights.wide + i % OUTPUTS * weights.columns;
        double exact = 0, bound = 0;

        for (int b = 0; b < COLUMNS; b += 32) {
            double most = 0, size = 0, parts = 0;

            for (int k = b; k < b + 32; k++) {
                exact += (double)x[k] * (double)w[k];
                size += fabs((double)w[k]);
                parts = fmax(parts, fabs((double)w[k]));
                most = fmax(most, fabs((double)x[k]));
            }
            bound += size * most * 0.5 / 128 + 64 * parts * most * 0x1p-16; /* scales and minima are summed apart, and may be larger than their sum */
        }
        assert_true(fabs((double)to[i] - exact) <= bound);
    }
    weights_release(&weights);
}

static void test_quantised__is_within_half_a_step_of_the_product_in_double(void **state)
{
    (void)state;
    each_isa_and_dtype(check_near);
}

static void check_not_finite(struct backend_context *context, enum dtype dtype)
{
    static const float spoils[] = {NAN, -NAN, INFINITY, -INFINITY};
    struct random random = {.state = 8};
    float from[COMPANY * COLUMNS], sound[COMPANY * OUTPUTS], to[COMPANY * OUTPUTS];
    struct weights weights;

    random_floats(&random, from, COMPANY * COLUMNS);
    multiply(context, dtype, from, sound, &weights);
    weights_release(&weights);
    for (int i = 0; i < 4; i++) {
        for (int at = 0; at < COLUMNS; at += 19) {
            float kept = from[COLUMNS + at];

            from[COLUMNS + at] = spoils[i];
            multiply(context, dtype, from, to, &weights);
            weights_release(&weights);
            from[COLUMNS + at] = kept;
            for (int o = 0; o < OUTPUTS; o++)
                assert_true(isnan(to[OUTPUTS + o]));
            assert_same_bits(to, sound, OUTPUTS);
            assert_same_bits(to + 2 * OUTPUTS, sound + 2 * OUTPUTS, OUTPUTS);
        }
    }
}

static void test_quantised__a_value_that_is_not_finite_spoils_its_row_and_no_other(void **state)
{
    (void)state;
    each_isa_and_dtype(check_not_finite);
}

/* Blocks of zeros, of the least numbers, and of the largest ones: nothing overflows on the way to an integer. */
static void check_sizes(struct backend_context *context, enum dtype dtype)
{
    static const float sizes[] = {0, 0x1p-149f, 0x1p-126f, 0x1p-100f, 0x1.000002p-100f, 0x1p-60f, 1, 0x1p100f};
    float from[COMPANY * COLUMNS], to[COMPANY * OUTPUTS], x[COLUMNS];
    struct random random = {.state = 9};
    struct weights weights;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int k = 0; k < COMPANY * COLUMNS; k++)
            from[k] = sizes[i] * random_float(&random);
        multiply(context, dtype, from, to, &weights);
        for (int r = 0; r < COMPANY; r++)
            for (int o = 0; o < OUTPUTS; o++) {
                memcpy(x, from + r * COLUMNS, sizeof x);
                float expected = contract(&weights, o, x, (const int[]){0, COLUMNS}, 1);

                assert_true(isfinite(expected));
                assert_same_bits(to + r * OUTPUTS + o, &expected, 1);
            }
        weights_release(&weights);
    }
}

static void test_quantised__any_size_of_activations_is_the_contract(void **state)
{
    (void)state;
    each_isa_and_dtype(check_sizes);
}

/* Integers at their ends: pairs of products leave 16 bits. All other bits are ones, zeros, or the lowest byte's; d and m are 1. */
static void check_ends(struct backend_context *context, enum dtype dtype)
{
    float from[COMPANY * COLUMNS], to[COMPANY * OUTPUTS];
    size_t at[2], size = dtype_row_bytes(dtype, dtype_block(dtype));
    struct random random = {.state = 77};
    int halves = block_halves(dtype, at);
    struct weights weights;
    struct arena arena;

    weights_init(&weights, &random, dtype, OUTPUTS, whole(dtype, COLUMNS));
    for (int o = 0; o < OUTPUTS; o++)
        for (int b = 0; b < weights.columns / (int)dtype_block(dtype); b++) {
            unsigned char *block = (unsigned char *)row_of(&weights, o) + (size_t)b * size;

            memset(block, o % 2 == 0 ? 0xff : dtype == DTYPE_Q8_0 ? 0x7f : 0, size);
            if (dtype == DTYPE_Q8_0 && o % 3 == 0)
                memset(block, 0x80, size);
            for (int h = 0; h < halves; h++)
                memcpy(block + at[h], (const unsigned char[]){0, 0x3c}, 2);
        }
    for (int k = 0; k < COLUMNS; k++) {
        from[k] = 128;
        from[COLUMNS + k] = -128;
        from[2 * COLUMNS + k] = k % 2 == 0 ? 128 : -128; /* of which only one can be whole */
    }
    backend_cpu.linear.matmul(context, weights_pack(&weights, context, (const int[]){0, COLUMNS}, 1, &arena), COMPANY, from, to);
    for (int i = 0; i < COMPANY * OUTPUTS; i++) {
        struct dtype_part part;
        int exact = 0;

        for (int k = 0; k < COLUMNS; k++) {
            int taken = i / OUTPUTS == 2 && k % 2 != 0 ? -127 : (int)from[i / OUTPUTS * COLUMNS + k], half = k % 32 / 16;

            dtype_part_of(dtype, row_of(&weights, i % OUTPUTS), (size_t)(k / 32), &part);
            exact += taken * (part.scale[half] * part.q[k % 32] + part.least[half]);
        }
        assert_true(to[i] == (float)exact);
    }
    arena_close(&arena);
    weights_release(&weights);
}

static void test_quantised__products_of_the_largest_integers_are_exact(void **state)
{
    (void)state;
    each_isa_and_dtype(check_ends);
}

/* As published mixtures have q, k and v: each row keeps its values, by halves of blocks; and Q5_0 among Q8_0. Whole rows, and a shard of them. */
static void check_mixture(struct backend_context *context, const enum dtype *mixture, int count, enum dtype as, int steps)
{
    enum { WIDE = 512 };
    static const int bounds[][4] = {{0, 192, 384, 512}, {200, 256, 300, 490}};
    struct random random = {.state = 5};
    enum dtype row_dtype[OUTPUTS];
    const void *rows[OUTPUTS];
    float from[WIDE], to[OUTPUTS];

    random_floats(&random, from, WIDE);
    for (int o = 0; o < OUTPUTS; o++) {
        row_dtype[o] = mixture[o % count];
        rows[o] = random_weights(&random, row_dtype[o], WIDE);
    }
    for (int i = 0; i < 2; i++) {
        const int *bound = bounds[i], relative[] = {0, bound[1] - bound[0], bound[2] - bound[0], bound[3] - bound[0]};
        struct matrix_source source = {.rows = rows,
                                       .outputs = OUTPUTS,
                                       .columns = relative[3],
                                       .column_first = bound[0],
                                       .dtype = as,
                                       .row_dtype = row_dtype,
                                       .row_columns = WIDE,
                                       .slice_bounds = relative,
                                       .slices = 3};
        struct matrix *matrix;
        struct arena arena;

        assert_int_equal(arena_open(&arena, backend_cpu.linear.matrix_bytes(&source), "test"), STATUS_OK);
        assert_int_equal(backend_cpu.linear.matrix_pack(context, &source, &arena, &matrix), STATUS_OK);
        backend_cpu.linear.matmul(context, matrix, 1, from + bound[0], to);
        for (int o = 0; o < OUTPUTS; o++) {
            float terms[3], expected;

            for (int t = 0; t < 3; t++)
                terms[t] = chain(row_dtype[o], rows[o], from, bound[t], bound[t + 1], steps);
            expected = backend_tree_sum(terms, 3);
            assert_same_bits(to + o, &expected, 1);
        }
        arena_close(&arena);
    }
    for (int o = 0; o < OUTPUTS; o++)
        free((void *)(uintptr_t)rows[o]);
}

static void test_quantised__rows_of_several_k_quants_are_one_matrix(void **state)
{
    static const enum dtype all[] = {DTYPE_Q2_K, DTYPE_Q3_K, DTYPE_Q4_K, DTYPE_Q5_K, DTYPE_Q6_K};
    static const enum dtype three_and_six[] = {DTYPE_Q3_K, DTYPE_Q6_K}, five_and_eight[] = {DTYPE_Q5_0, DTYPE_Q8_0};

    (void)state;
    for (int i = 0; i < RIGS; i += 3) {
        struct backend_context *context = rig_open(i);

        if (context == NULL)
            continue;
        check_mixture(context, all, 5, DTYPE_Q5_K, 2);
        check_mixture(context, three_and_six, 2, DTYPE_Q6_K, 2);
        check_mixture(context, five_and_eight, 2, DTYPE_Q8_0, 1);
        backend_cpu.close(context);
    }
}

/* Tensor parallelism: the slices of one rank, summed by the tree, equal the tree over ranks that own some slices each, also where ranks
 * share a block. */
static void test_quantised__slices_of_one_rank_equal_the_tree_of_its_shards(void **state)
{
    enum { WHOLE = 172, ALL = 192, SLICES = 8, RANKS = 8 };
    struct backend_context *context = rig_open(0);
    struct random random = {.state = 9};
    int bounds[SLICES + 1];
    float from[ALL], alone[OUTPUTS], part[RANKS][OUTPUTS];

    (void)state;
    for (int i = 0; i <= SLICES; i++)
        bounds[i] = WHOLE * i / SLICES;
    random_floats(&random, from, ALL);
    for (enum dtype dtype = DTYPE_Q8_0; dtype < DTYPES; dtype++) {
        struct weights weights;
        struct arena arena;

        weights_init(&weights, &random, dtype, OUTPUTS, (ALL + 255) / 256 * 256);
        backend_cpu.linear.matmul(context, weights_pack(&weights, context, bounds, SLICES, &arena), 1, from, alone);
        arena_close(&arena);
        for (int ranks = 2; ranks <= RANKS; ranks *= 2) {
            for (int rank = 0; rank < ranks; rank++) {
                const int *own = bounds + rank * (SLICES / ranks);

                backend_cpu.linear.matmul(context, weights_pack(&weights, context, own, SLICES / ranks, &arena), 1, from + own[0], part[rank]);
                arena_close(&arena);
            }
            for (int o = 0; o < OUTPUTS; o++) {
                float terms[RANKS], sum;

                for (int rank = 0; rank < ranks; rank++)
                    terms[rank] = part[rank][o];
                sum = backend_tree_sum(terms, ranks);
                assert_same_bits(&sum, alone + o, 1);
            }
        }
        weights_release(&weights);
    }
    backend_cpu.close(context);
}

/* Rows of several dtypes, [OUTPUTS][whole] each, and the blocks that dtype_round makes of them; row 3 is not there. */
struct rounded {
    enum dtype to;
    int whole;
    void *data[OUTPUTS];
    unsigned char *blocks[OUTPUTS];
    const void *rows[OUTPUTS], *block_rows[OUTPUTS];
    enum dtype dtypes[OUTPUTS];
};

static void rounded_init(struct rounded *rounded, enum dtype to, int whole)
{
    static const enum dtype from[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F32, DTYPE_Q8_0};
    int count = (whole + DTYPE_BLOCK - 1) / DTYPE_BLOCK, wide = count * DTYPE_BLOCK;
    size_t block = dtype_row_bytes(to, DTYPE_BLOCK);
    struct random random = {.state = (uint32_t)whole};
    float values[MOST_COLUMNS];

    *rounded = (struct rounded){.to = to, .whole = whole};
    for (int o = 0; o < OUTPUTS; o++) {
        enum dtype dtype = rounded->dtypes[o] = from[o % (whole == wide ? 5 : 4)];

        rounded->data[o] = random_weights(&random, dtype, (size_t)whole);
        rounded->blocks[o] = zeroed((size_t)count, block);
        memset(values, 0, sizeof values);
        dtype_widen(dtype, rounded->data[o], values, (size_t)whole);
        for (int b = 0; b < count; b++)
            dtype_round(to, values + b * DTYPE_BLOCK, rounded->blocks[o] + (size_t)b * block);
        if (dtype == to)
            memcpy(rounded->blocks[o], rounded->data[o], (size_t)count * block);
        rounded->rows[o] = o != 3 ? rounded->data[o] : NULL;
        rounded->block_rows[o] = o != 3 ? rounded->blocks[o] : NULL;
    }
}

static void rounded_release(struct rounded *rounded)
{
    for (int o = 0; o < OUTPUTS; o++) {
        free(rounded->data[o]);
        free(rounded->blocks[o]);
    }
}

static void check_rounded(struct backend_context *context, const struct rounded *rounded, const int *bounds, int slices)
{
    int relative[BACKEND_MAX_SLICES + 1];
    struct matrix_source source = {.rows = rounded->block_rows,
                                   .outputs = OUTPUTS,
                                   .columns = bounds[slices] - bounds[0],
                                   .column_first = bounds[0],
                                   .dtype = rounded->to,
                                   .slice_bounds = relative,
                                   .slices = slices};
    struct matrix *expected, *found;
    struct arena arena, again;

    for (int i = 0; i <= slices; i++)
        relative[i] = bounds[i] - bounds[0];
    assert_int_equal(arena_open(&arena, backend_cpu.linear.matrix_bytes(&source), "test"), STATUS_OK);
    assert_int_equal(backend_cpu.linear.matrix_pack(context, &source, &arena, &expected), STATUS_OK);
    source.rows = rounded->rows;
    source.row_dtype = rounded->dtypes;
    source.row_columns = rounded->whole;
    assert_int_equal(arena_open(&again, backend_cpu.linear.matrix_bytes(&source), "test"), STATUS_OK);
    assert_int_equal(backend_cpu.linear.matrix_pack(context, &source, &again, &found), STATUS_OK);
    assert_int_equal(again.size, arena.size);
    assert_int_equal(found->panel_bytes, expected->panel_bytes);
    assert_memory_equal(found->data, expected->data, (size_t)expected->panels * expected->panel_bytes);
    arena_close(&again);
    arena_close(&arena);
}

/* By blocks of the whole row, wherever shards and slices cut it, and with zeros beyond its end. */
static void test_quantised__rows_that_are_rounded_are_packed_as_their_blocks(void **state)
{
    static const enum dtype to[] = {DTYPE_Q8_0, DTYPE_Q4_0};

    (void)state;
    for (int threads = 0; threads < 3; threads++) {
        struct backend_context *context = rig_open(threads);

        for (int d = 0; d < 2; d++)
            for (size_t i = 0; i < sizeof shards / sizeof *shards; i++)
                for (int short_by = 0; short_by < 2; short_by++) {
                    const struct shard *shard = &shards[i];
                    int last = shard->bounds[shard->slices];
                    struct rounded rounded;

                    rounded_init(&rounded, to[d], short_by ? last : shard->columns);
                    check_rounded(context, &rounded, shard->bounds, shard->slices);
                    rounded_release(&rounded);
                }
        backend_cpu.close(context);
    }
}

static void check_null_rows(struct backend_context *context, enum dtype dtype)
{
    struct random random = {.state = 4};
    unsigned char *row = random_weights(&random, dtype, (size_t)whole(dtype, COLUMNS));
    const void *rows[3] = {row, NULL, row};
    struct matrix_source source = {.rows = rows, .outputs = 3, .columns = COLUMNS, .dtype = dtype, .slices = 1};
    struct matrix *matrix;
    struct arena arena;
    float from[COLUMNS], to[3];

    random_floats(&random, from, COLUMNS);
    assert_int_equal(arena_open(&arena, backend_cpu.linear.matrix_bytes(&source), "test"), STATUS_OK);
    assert_int_equal(backend_cpu.linear.matrix_pack(context, &source, &arena, &matrix), STATUS_OK);
    backend_cpu.linear.matmul(context, matrix, 1, from, to);
    assert_true(to[1] == 0.0f && to[0] == to[2] && to[0] == chain(dtype, row, from, 0, COLUMNS, 1 + goes_by_halves(dtype)));
    arena_close(&arena);
    free(row);
}

static void test_quantised__null_rows_are_zero(void **state)
{
    (void)state;
    each_isa_and_dtype(check_null_rows);
}

static void test_quantised__a_matrix_wider_than_the_scratch_is_refused(void **state)
{
    const void *row = "";
    struct matrix_source source = {
        .rows = &row, .outputs = 1, .columns = RIG_COLUMNS + 1, .column_first = 0, .dtype = DTYPE_Q8_0, .slices = 1};
    struct backend_context *context = rig_open(0);
    struct matrix *matrix;
    struct arena arena;
    struct capture capture;
    char line[256];

    (void)state;
    assert_int_equal(arena_open(&arena, backend_cpu.linear.matrix_bytes(&source), "test"), STATUS_OK);
    capture_begin(&capture);
    assert_int_equal(backend_cpu.linear.matrix_pack(context, &source, &arena, &matrix), STATUS_INTERNAL);
    capture_end(&capture, line, sizeof line);
    capture_assert_one_line(line, "a quantised matrix of 1025 columns, and the backend was opened for 1024");
    arena_close(&arena);
    backend_cpu.close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantised__is_the_contract_on_every_isa_thread_count_and_row_count),
        cmocka_unit_test(test_quantised__a_group_has_its_scale_once),
        cmocka_unit_test(test_quantised__4_bits_with_zero_points_take_little_more_than_in_the_file),
        cmocka_unit_test(test_quantised__rows_of_several_k_quants_are_one_matrix),
        cmocka_unit_test(test_quantised__is_within_half_a_step_of_the_product_in_double),
        cmocka_unit_test(test_quantised__a_value_that_is_not_finite_spoils_its_row_and_no_other),
        cmocka_unit_test(test_quantised__any_size_of_activations_is_the_contract),
        cmocka_unit_test(test_quantised__products_of_the_largest_integers_are_exact),
        cmocka_unit_test(test_quantised__slices_of_one_rank_equal_the_tree_of_its_shards),
        cmocka_unit_test(test_quantised__rows_that_are_rounded_are_packed_as_their_blocks),
        cmocka_unit_test(test_quantised__null_rows_are_zero),
        cmocka_unit_test(test_quantised__a_matrix_wider_than_the_scratch_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
