/* The linear maps of the CUDA backend against those of the CPU backend.
 *
 * Bounds. The device rounds what enters a product to the type of the weights (a relative error of at most u = 2^-8 for bfloat16, 2^-11 for
 * half precision) and adds n products in f32 in an order of its own (at most n 2^-23 of the sum of their sizes, which leaves room for units
 * that cut instead of rounding); the CPU adds in f32 too (n 2^-24). So |device - CPU| <= (u + n 2^-22) x sum |w x|. Most tests feed numbers
 * that the type holds exactly: then u is 0, and a product that is missing or taken twice is far outside. */
#include "common/backend/cuda/kernels.h"
#include "tests/backend/cuda_rig.h"
#include "tests/support/capture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = CUDA_RIG_COMPANY };

static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32};

/* Numbers that both bfloat16 and half precision hold: seven bits in [-1, 1). */
static void fill_exact(struct random *random, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (float)((int)(random_word(random) % 256) - 128) / 128.0f;
}

/* Largest relative error of what the device makes of one number for these weights. */
static double unit_of(enum dtype dtype)
{
    return dtype == DTYPE_F16 ? 0x1p-11 : 0x1p-8;
}

/* sum |w x| of each output.  from: [rows][weights->columns]  to: [rows][outputs] */
static double *size_of_sums(const struct weights *weights, int rows, const float *from)
{
    size_t outputs = (size_t)weights->outputs, columns = (size_t)weights->columns;
    double *sizes = zeroed((size_t)rows * outputs, sizeof *sizes);

    for (size_t r = 0; r < (size_t)rows; r++)
        for (size_t o = 0; o < outputs; o++)
            for (size_t k = 0; k < columns; k++)
                sizes[r * outputs + o] += fabs((double)weights->wide[o * columns + k] * (double)from[r * columns + k]);
    return sizes;
}

static void assert_within(const float *got, const float *expected, const double *bound, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - (double)expected[i]) <= bound[i]))
            fail_msg("value %zu of %zu: %.9g, expected %.9g within %.3g", i, count, (double)got[i], (double)expected[i], bound[i]);
}

/* One linear map on both backends.  from: [rows][columns]  to, expected: [rows][outputs] */
static void run_both(struct cuda_rig *rig, const struct weights *weights, int rows, const float *from, float *to, float *expected)
{
    size_t outputs = (size_t)weights->outputs * (size_t)rows;
    float *device_to = cuda_rig_put(rig, NULL, outputs);
    struct cuda_pair pair;

    cuda_rig_pack(rig, weights, 0, weights->columns, &pair);
    backend_cuda.linear.matmul(rig->cuda, pair.cuda, rows, cuda_rig_put(rig, from, (size_t)rows * (size_t)weights->columns), device_to);
    cuda_rig_get(rig, device_to, to, outputs);
    backend_cpu.linear.matmul(rig->cpu, pair.cpu, rows, from, expected);
    arena_close(&pair.arena);
}

static void check_matmul(struct random *random, enum dtype dtype, int outputs, int columns, int rows, int exact)
{
    size_t values = (size_t)rows * (size_t)outputs;
    float *from = zeroed((size_t)rows * (size_t)columns, sizeof *from), *to = zeroed(values, sizeof *to),
          *expected = zeroed(values, sizeof *to);
    double *bound, unit = exact ? 0.0 : unit_of(dtype);
    struct weights weights;
    struct cuda_rig rig;

    cuda_rig_open(&rig, columns, 0, 0, 0);
    weights_init(&weights, random, dtype, outputs, columns);
    if (exact)
        fill_exact(random, from, (size_t)rows * (size_t)columns);
    else
        random_floats(random, from, (size_t)rows * (size_t)columns);
    if (dtype == DTYPE_F32)
        unit += 0x1p-8 * (1.0 + unit); /* the weights are rounded as well */
    bound = size_of_sums(&weights, rows, from);
    for (size_t i = 0; i < values; i++)
        bound[i] *= unit + (double)columns * 0x1p-22;
    run_both(&rig, &weights, rows, from, to, expected);
    assert_within(to, expected, bound, values);
    weights_release(&weights);
    cuda_rig_close(&rig);
    free(from);
    free(to);
    free(expected);
    free(bound);
}

static void test_cuda_linear__matmul_matches_cpu(void **state)
{
    static const struct {
        int outputs, columns, rows;
    } shapes[] = {{1, 1, 1},     {17, 5, 2},    {16, 16, 8},   {33, 333, 1},   {33, 333, 7}, {40, 130, 9},  {97, 64, 16},         {50, 77, 17},
                  {31, 1030, 3}, {16, 250, 32}, {49, 100, 33}, {18, 1025, 64}, {35, 48, 65}, {19, 36, 100}, {150, 24, MOST_ROWS}, {17, 1200, 70}};
    struct random random = {1};

    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int d = 0; d < 3; d++)
            for (int exact = 0; exact < 2; exact++)
                check_matmul(&random, dtypes[d], shapes[s].outputs, shapes[s].columns, shapes[s].rows, exact);
}

/* More panels than four for each multiprocessor: a block takes pairs, and several of them; the last pair is half a one. */
static void test_cuda_linear__many_panels_match_cpu(void **state)
{
    struct random random = {2};

    (void)state;
    for (int d = 0; d < 2; d++) {
        check_matmul(&random, dtypes[d], 16 * 24 + 3, 70, 5, 1);
        check_matmul(&random, dtypes[d], 16 * 20, 40, 40, 1);
    }
}

/* More columns than shared memory holds at once: rows are staged in chunks, for one team and for two, of which one has no work in the end. */
static void test_cuda_linear__many_columns_match_cpu(void **state)
{
    static const struct {
        int outputs, columns, rows;
    } shapes[] = {{33, 5200, 1}, {33, 10403, 4}, {20, 5500, 12}, {20, 2700, 20}, {35, 1400, 40}, {70, 10240, 3}, {200, 2700, 20}, {99, 1400, 40}};
    struct random random = {3};

    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        check_matmul(&random, dtypes[s % 2], shapes[s].outputs, shapes[s].columns, shapes[s].rows, 1);
}

struct case_of {
    struct cuda_pair pair;
    const float *norm; /* on the device */
    int ffn;
    enum dtype down;
};
static struct case_of now;

static void run_matmul(struct cuda_rig *rig, int rows, const float *from, float *to)
{
    backend_cuda.linear.matmul(rig->cuda, now.pair.cuda, rows, from, to);
}

static struct matrix *pack_identity(struct cuda_rig *rig, enum dtype dtype, int size)
{
    uint16_t *numbers = zeroed((size_t)size * (size_t)size, sizeof *numbers);
    const void **rows = zeroed((size_t)size, sizeof *rows);
    struct matrix *matrix;

    for (size_t i = 0; i < (size_t)size; i++) {
        rows[i] = numbers + i * (size_t)size;
        numbers[i * (size_t)size + i] = dtype == DTYPE_F16 ? 0x3c00 : 0x3f80;
    }
    matrix = cuda_rig_pack_source(rig, &(struct matrix_source){.rows = rows, .outputs = size, .columns = size, .dtype = dtype, .slices = 1});
    free(rows);
    free(numbers);
    return matrix;
}

/* What mlp_in leaves is read by mlp_out, here with the identity. */
static void run_mlp_in(struct cuda_rig *rig, int rows, const float *from, float *to)
{
    const struct layer_shape shape = {.ffn = now.ffn, .norm_eps = 1e-5f};
    const struct layer_weights weights = {
        .gate_up = now.pair.cuda, .mlp_norm = now.norm, .down = pack_identity(rig, now.down, now.ffn)};
    float *left = cuda_rig_put(rig, NULL, (size_t)rows * (size_t)now.ffn);

    backend_cuda.layer.mlp_in(rig->cuda, &shape, &weights, rows, from, left);
    backend_cuda.layer.mlp_out(rig->cuda, &shape, &weights, rows, left, to);
}

static void test_cuda_linear__a_row_has_the_same_bits_in_any_company(void **state)
{
    static const struct {
        int outputs, columns;
    } shapes[] = {{33, 333}, {200, 72}, {17, 2200}, {70, 2704}};
    struct random random = {4};

    (void)state;
    for (int i = 0; i < 8; i++) {
        struct weights weights;
        struct cuda_rig rig;

        cuda_rig_open(&rig, shapes[i / 2].columns, 0, 0, 0);
        weights_init(&weights, &random, dtypes[i % 2], shapes[i / 2].outputs, shapes[i / 2].columns);
        cuda_rig_pack(&rig, &weights, 0, weights.columns, &now.pair);
        cuda_rig_check_company(&rig, run_matmul, &random, weights.columns, weights.outputs);
        arena_close(&now.pair.arena);
        weights_release(&weights);
        cuda_rig_close(&rig);
    }
}

/* Gate and up rows as model/weights.c lists them: 16 of gate, their 16 of up, and so on, with none beyond ffn. */
static void pack_gate_up(struct cuda_rig *rig, const struct weights *weights /* [2 ffn] outputs */, int ffn, struct cuda_pair *pair)
{
    int blocks = (ffn + BACKEND_PANEL - 1) / BACKEND_PANEL;
    const void **rows = zeroed((size_t)(2 * blocks * BACKEND_PANEL), sizeof *rows);
    size_t bytes = (size_t)weights->columns * dtype_bytes(weights->dtype);
    struct matrix_source source = {
        .rows = rows, .outputs = 2 * blocks * BACKEND_PANEL, .columns = weights->columns, .dtype = weights->dtype, .slices = 1};

    for (int c = 0; c < ffn; c++)
        for (int up = 0; up < 2; up++)
            rows[c / BACKEND_PANEL * 2 * BACKEND_PANEL + up * BACKEND_PANEL + c % BACKEND_PANEL] =
                (const char *)weights->data + (size_t)(up * ffn + c) * bytes;
    assert_int_equal(arena_open(&pair->arena, backend_cpu.linear.matrix_bytes(&source), "a test's matrix"), STATUS_OK);
    assert_int_equal(backend_cpu.linear.matrix_pack(rig->cpu, &source, &pair->arena, &pair->cpu), STATUS_OK);
    pair->cuda = cuda_rig_pack_source(rig, &source);
    free(rows);
}

/* A device of the emulation has the shared memory of sm_89, where less is staged at once; a block that asks for more
 * than it may have ends the test. */
enum { SMALL_DEVICE = 6, OLD_DEVICE = 8, LESS_ROWS = 32, BLOCK_BYTES = 99 << 10 };

static void run_on(int device, const struct weights *weights, cuda_operation *run, const float *norm, const float *from, int rows, int width,
                   float *to)
{
    struct cuda_rig rig;
    float *device_to;

    cuda_rig_on(device);
    cuda_rig_open(&rig, weights->columns, 0, 0, 0);
    cuda_rig_on(0);
    if (now.ffn > 0)
        pack_gate_up(&rig, weights, now.ffn, &now.pair);
    else
        cuda_rig_pack(&rig, weights, 0, weights->columns, &now.pair);
    now.norm = norm != NULL ? cuda_rig_put(&rig, norm, (size_t)weights->columns) : NULL;
    device_to = cuda_rig_put(&rig, NULL, (size_t)rows * (size_t)width);
    run(&rig, rows, cuda_rig_put(&rig, from, (size_t)rows * (size_t)weights->columns), device_to);
    cuda_rig_get(&rig, device_to, to, (size_t)rows * (size_t)width);
    arena_close(&now.pair.arena);
    cuda_rig_close(&rig);
}

static void check_small(struct random *random, cuda_operation *run, enum dtype dtype, int outputs, int columns, int width)
{
    static const int counts[] = {8, LESS_ROWS, LESS_ROWS + 1};
    const size_t most = LESS_ROWS + 1;
    float *from = zeroed(most * (size_t)columns, sizeof *from), *norm = zeroed((size_t)columns, sizeof *norm);
    float *to = zeroed(most * (size_t)width, sizeof *to), *expected = zeroed(most * (size_t)width, sizeof *to);
    struct weights weights;

    weights_init(&weights, random, dtype, outputs, columns);
    random_floats(random, from, most * (size_t)columns);
    random_floats(random, norm, (size_t)columns);
    run_on(0, &weights, run, norm, from, (int)most, width, expected);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        run_on(SMALL_DEVICE, &weights, run, norm, from, counts[c], width, to);
        assert_same_bits(to, expected, (size_t)counts[c] * (size_t)width);
    }
    weights_release(&weights);
    free(from);
    free(norm);
    free(to);
    free(expected);
}

static void test_cuda_linear__a_device_of_less_shared_memory_gives_the_same_bits(void **state)
{
    struct random random = {11};

    (void)state;
    if (!cuda_rig_is_emulated()) {
        print_message("skipped: only the emulation has devices of both kinds\n");
        skip();
    }
    assert_int_equal(linear_rows(BLOCK_BYTES), LESS_ROWS);
    assert_int_equal(linear_rows(163 << 10), KERNEL_ROWS);
    for (int d = 0; d < 2; d++) {
        now.ffn = 0;
        check_small(&random, run_matmul, dtypes[d], 16 * 24 + 3, 900, 16 * 24 + 3);
        now.ffn = 20;
        now.down = dtypes[d];
        check_small(&random, run_mlp_in, dtypes[d], 2 * now.ffn, 4500, now.ffn);
        check_small(&random, run_mlp_in, dtypes[d], 2 * now.ffn, 700, now.ffn);
    }
    now.ffn = 0;
}

/* What silu(gate) up may be off by, when both are off by a part of the size of their sums: silu has a slope of at most 1.1. expf and the
 * division add a few units of 2^-23 of the value. */
static double swiglu_bound(double gate, double up, double gate_off, double up_off)
{
    double silu = fabs(gate / (1.0 + exp(-gate)));

    return 1.1 * gate_off * (fabs(up) + up_off) + (silu + 1.1 * gate_off) * up_off + 0x1p-20 * (silu + gate_off) * (fabs(up) + up_off);
}

static void check_mlp_in(struct random *random, enum dtype dtype, int hidden, int ffn, int rows)
{
    size_t in = (size_t)hidden, out = (size_t)ffn;
    float *x = zeroed((size_t)rows * in, sizeof *x), *norm = zeroed(in, sizeof *norm), *to = zeroed((size_t)rows * out, sizeof *to);
    float *expected = zeroed((size_t)rows * out, sizeof *expected), *device_to;
    double *bound = zeroed((size_t)rows * out, sizeof *bound);
    /* the norm's scale, a sum of squares over n numbers and a root, is off by at most n 2^-23 on either side */
    double off = (dtype == DTYPE_F16 ? unit_of(dtype) : 0.0) + (double)hidden * 0x1p-21;
    struct layer_shape shape = {.hidden = hidden, .ffn = ffn, .norm_eps = 1e-5f};
    struct layer_weights weights_of = {0};
    struct weights weights;
    struct cuda_rig rig;

    cuda_rig_open(&rig, hidden, 0, 0, 0);
    weights_init(&weights, random, dtype, 2 * ffn, hidden);
    fill_exact(random, x, (size_t)rows * in);
    for (size_t k = 0; k < in; k++)
        norm[k] = k % 2 == 0 ? 0.5f : 2.0f; /* so that x norm is exact too */
    pack_gate_up(&rig, &weights, ffn, &now.pair);
    weights_of = (struct layer_weights){.gate_up = now.pair.cpu, .mlp_norm = norm};
    backend_cpu.layer.mlp_in(rig.cpu, &shape, &weights_of, rows, x, expected);
    now.ffn = ffn;
    now.down = dtype == DTYPE_F16 ? DTYPE_BF16 : DTYPE_F16;
    now.norm = cuda_rig_put(&rig, norm, in);
    device_to = cuda_rig_put(&rig, NULL, (size_t)rows * out);
    run_mlp_in(&rig, rows, cuda_rig_put(&rig, x, (size_t)rows * in), device_to);
    cuda_rig_get(&rig, device_to, to, (size_t)rows * out);
    for (size_t r = 0; r < (size_t)rows; r++) {
        double squares = 0.0, scale;

        for (size_t k = 0; k < in; k++)
            squares += (double)x[r * in + k] * (double)x[r * in + k];
        scale = 1.0 / sqrt(squares / hidden + 1e-5);
        for (size_t c = 0; c < out; c++) {
            double sum[2] = {0.0, 0.0}, size[2] = {0.0, 0.0};

            for (size_t k = 0; k < in; k++)
                for (size_t up = 0; up < 2; up++) {
                    double product = (double)weights.wide[(up * out + c) * in + k] * (double)x[r * in + k] * (double)norm[k] * scale;

                    sum[up] += product;
                    size[up] += fabs(product);
                }
            bound[r * out + c] = swiglu_bound(sum[0], sum[1], off * size[0], off * size[1]);
            bound[r * out + c] += unit_of(now.down) * (fabs((double)expected[r * out + c]) + bound[r * out + c]); /* for mlp_out */
        }
    }
    assert_within(to, expected, bound, (size_t)rows * out);
    arena_close(&now.pair.arena);
    weights_release(&weights);
    cuda_rig_close(&rig);
    free(x);
    free(norm);
    free(to);
    free(expected);
    free(bound);
}

static void test_cuda_linear__mlp_in_matches_cpu(void **state)
{
    static const struct {
        int hidden, ffn, rows;
    } shapes[] = {{1, 1, 1},      {64, 16, 1},   {30, 17, 3},   {333, 50, 8}, {130, 31, 9},
                  {1000, 20, 20}, {1100, 20, 2}, {48, 100, 40}, {36, 5, 70}};
    struct random random = {5};

    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int d = 0; d < 2; d++)
            check_mlp_in(&random, dtypes[d], shapes[s].hidden, shapes[s].ffn, shapes[s].rows);
}

static void test_cuda_linear__a_normed_row_has_the_same_bits_in_any_company(void **state)
{
    struct random random = {6};

    (void)state;
    for (int i = 0; i < 4; i++) {
        int hidden = i / 2 == 0 ? 152 : 1208;
        struct weights weights;
        struct cuda_rig rig;
        float norm[1208];

        now.ffn = i / 2 == 0 ? 70 : 9; /* for two teams, the last time for one of them; for one */
        now.down = dtypes[i % 2];
        cuda_rig_open(&rig, hidden, 0, 0, 0);
        weights_init(&weights, &random, dtypes[i % 2], 2 * now.ffn, hidden);
        pack_gate_up(&rig, &weights, now.ffn, &now.pair);
        random_floats(&random, norm, (size_t)hidden);
        now.norm = cuda_rig_put(&rig, norm, (size_t)hidden);
        cuda_rig_check_company(&rig, run_mlp_in, &random, hidden, now.ffn);
        arena_close(&now.pair.arena);
        weights_release(&weights);
        cuda_rig_close(&rig);
    }
}

/* Rows that are rounded already, as mlp_in and attend leave them, give the bits of the same numbers in f32; and those with a residual, of their
 * sum with it. */
static void check_rounded(struct random *random, int device, enum dtype dtype, int outputs, int columns, int rows)
{
    size_t values = (size_t)rows * (size_t)outputs, numbers = (size_t)rows * (size_t)columns;
    float *expected = zeroed(values, sizeof *expected), *to = zeroed(values, sizeof *to), *x = zeroed(values, sizeof *x), *device_to, *from;
    const struct layer_shape shape = {0};
    struct layer_weights layer = {0};
    struct weights weights, row;
    struct cuda_rig rig;

    cuda_rig_on(device);
    cuda_rig_open(&rig, 0, 0, 0, 0);
    cuda_rig_on(0);
    weights_init(&weights, random, dtype, outputs, columns);
    weights_init(&row, random, dtype, rows, columns);
    random_floats(random, x, values);
    cuda_rig_pack(&rig, &weights, 0, columns, &now.pair);
    layer.down = now.pair.cuda;
    device_to = cuda_rig_put(&rig, NULL, values);
    backend_cuda.linear.matmul(rig.cuda, now.pair.cuda, rows, cuda_rig_put(&rig, row.wide, numbers), device_to);
    cuda_rig_get(&rig, device_to, expected, values);
    from = cuda_rig_put(&rig, NULL, (numbers + 1) / 2);
    backend_cuda.memory.write(rig.cuda, from, row.data, numbers * sizeof(uint16_t));
    backend_cuda.layer.mlp_out(rig.cuda, &shape, &layer, rows, from, device_to);
    cuda_rig_get(&rig, device_to, to, values);
    assert_same_bits(to, expected, values);
    device_to = cuda_rig_put(&rig, x, values);
    backend_cuda.linear.matmul_add(rig.cuda, now.pair.cuda, rows, from, device_to);
    cuda_rig_get(&rig, device_to, to, values);
    for (size_t i = 0; i < values; i++)
        expected[i] += x[i];
    assert_same_bits(to, expected, values);
    arena_close(&now.pair.arena);
    weights_release(&weights);
    weights_release(&row);
    cuda_rig_close(&rig);
    free(expected);
    free(to);
    free(x);
}

static void test_cuda_linear__rows_that_are_rounded_give_the_same_bits(void **state)
{
    static const struct {
        int outputs, columns, rows;
    } shapes[] = {{1, 1, 1},      {40, 136, 1},   {33, 333, 7},   {99, 64, 16},  {200, 1040, 9},
                  {70, 2704, 20}, {35, 1400, 65}, {150, 40, 140}, {35, 7001, 5}, {70, 6600, 3}};
    struct random random = {12};
    int devices = cuda_rig_is_emulated() ? 2 : 1;

    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int i = 0; i < 2 * devices; i++) {
            cuda_rig_order((unsigned)(s + (size_t)i) % 4);
            check_rounded(&random, i < 2 ? 0 : SMALL_DEVICE, dtypes[i % 2], shapes[s].outputs, shapes[s].columns, shapes[s].rows);
        }
    cuda_rig_order(0);
}

/* The columns of a rank, and the ranks' partial sums together. */
static void test_cuda_linear__shards_add_up_to_the_whole(void **state)
{
    enum { OUTPUTS = 40, COLUMNS = 90, ROWS = 3, VALUES = ROWS * OUTPUTS };
    float from[ROWS * COLUMNS], shard[ROWS * COLUMNS], to[VALUES], sum[VALUES] = {0}, expected[VALUES];
    struct random random = {7};
    struct weights weights;
    struct cuda_rig rig;
    double *bound;

    (void)state;
    cuda_rig_open(&rig, 0, 0, 0, 0);
    weights_init(&weights, &random, DTYPE_BF16, OUTPUTS, COLUMNS);
    fill_exact(&random, from, ROWS * COLUMNS);
    for (int rank = 0; rank < 3; rank++) {
        int first = COLUMNS / 3 * rank, columns = COLUMNS / 3;
        float *device_to = cuda_rig_put(&rig, NULL, VALUES);

        for (int r = 0; r < ROWS; r++)
            memcpy(shard + r * columns, from + r * COLUMNS + first, (size_t)columns * sizeof *shard);
        cuda_rig_pack(&rig, &weights, first, columns, &now.pair);
        backend_cuda.linear.matmul(rig.cuda, now.pair.cuda, ROWS, cuda_rig_put(&rig, shard, (size_t)(ROWS * columns)), device_to);
        cuda_rig_get(&rig, device_to, to, VALUES);
        for (int i = 0; i < VALUES; i++)
            sum[i] += to[i];
        arena_close(&now.pair.arena);
    }
    bound = size_of_sums(&weights, ROWS, from);
    for (int i = 0; i < VALUES; i++)
        bound[i] *= (COLUMNS + 3) * 0x1p-22;
    run_both(&rig, &weights, ROWS, from, to, expected);
    assert_within(sum, expected, bound, VALUES);
    free(bound);
    weights_release(&weights);
    cuda_rig_close(&rig);
}

static void test_cuda_linear__weights_of_f32_are_rounded_with_one_warning(void **state)
{
    const float exact[2][3] = {{1.0f, -2.0f, 0x1.fep0f}, {0x1.01p0f, 0x1.03p0f, 3.0f}}; /* ties, which go to even */
    const void *rows[2] = {exact[0], exact[1]};
    struct matrix_source source = {.rows = rows, .outputs = 2, .columns = 3, .dtype = DTYPE_F32, .slices = 1};
    const float from[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, expected[6] = {1.0f, 1.0f, -2.0f, 0x1.04p0f, 0x1.fep0f, 3.0f};
    float to[6], *device_to;
    struct matrix *matrix = NULL;
    struct arena device;
    struct cuda_rig rig;
    struct capture capture;
    char text[512];

    (void)state;
    cuda_rig_open(&rig, 0, 0, 0, 0);
    capture_begin(&capture);
    for (int i = 0; i < 2; i++) {
        device = (struct arena){.base = (char *)cuda_rig_put(&rig, NULL, backend_cuda.linear.matrix_bytes(&source) / sizeof(float)),
                                .size = backend_cuda.linear.matrix_bytes(&source)};
        assert_int_equal(backend_cuda.linear.matrix_pack(rig.cuda, &source, &device, &matrix), STATUS_OK);
    }
    capture_end(&capture, text, sizeof text);
    capture_assert_one_line(text, "weights of dtype F32 are rounded to BF16");
    device_to = cuda_rig_put(&rig, NULL, 6);
    backend_cuda.linear.matmul(rig.cuda, matrix, 3, cuda_rig_put(&rig, from, 9), device_to);
    cuda_rig_get(&rig, device_to, to, 6);
    assert_same_bits(to, expected, 6);
    cuda_rig_close(&rig);
}

static void test_cuda_linear__logits_are_there_when_finish_says_so(void **state)
{
    enum { VOCAB = 45, HIDDEN = 36, ROWS = 67 };
    static float x[ROWS * HIDDEN], logits[ROWS * VOCAB], again[ROWS * VOCAB], expected[ROWS * VOCAB];
    float norm[HIDDEN];
    struct random random = {8};
    struct weights weights;
    struct cuda_rig rig;
    double *bound;

    (void)state;
    cuda_rig_open(&rig, HIDDEN, 0, 0, VOCAB);
    weights_init(&weights, &random, DTYPE_BF16, VOCAB, HIDDEN);
    cuda_rig_pack(&rig, &weights, 0, HIDDEN, &now.pair);
    fill_exact(&random, x, ROWS * HIDDEN);
    for (int k = 0; k < HIDDEN; k++)
        norm[k] = 1.0f;
    backend_cpu.output.head(rig.cpu, HIDDEN, 1e-5f, norm, now.pair.cpu, ROWS, x, expected);
    now.norm = cuda_rig_put(&rig, norm, HIDDEN);
    const float *device_x = cuda_rig_put(&rig, x, ROWS * HIDDEN);
    backend_cuda.output.head(rig.cuda, HIDDEN, 1e-5f, now.norm, now.pair.cuda, ROWS, device_x, logits);
    backend_cuda.output.head(rig.cuda, HIDDEN, 1e-5f, now.norm, now.pair.cuda, 2, device_x, again); /* a second one in the step */
    assert_int_equal(backend_cuda.step.finish(rig.cuda), STATUS_OK);
    bound = size_of_sums(&weights, ROWS, x);
    for (int r = 0; r < ROWS; r++) {
        double squares = 0.0;

        for (int k = 0; k < HIDDEN; k++)
            squares += (double)x[r * HIDDEN + k] * (double)x[r * HIDDEN + k];
        for (int o = 0; o < VOCAB; o++)
            bound[r * VOCAB + o] *= HIDDEN * 0x1p-21 / sqrt(squares / HIDDEN + 1e-5);
    }
    assert_within(logits, expected, bound, ROWS * VOCAB);
    assert_same_bits(again, logits, 2 * VOCAB);
    free(bound);
    arena_close(&now.pair.arena);
    weights_release(&weights);
    cuda_rig_close(&rig);
}

static void test_cuda_linear__embed_widens_the_rows_of_the_table(void **state)
{
    enum { TOKENS = 9, HIDDEN = 21, ROWS = 4 };
    int32_t token[ROWS] = {8, 0, 3, 3}, zero[ROWS] = {0};
    uint64_t ancestors[ROWS] = {1, 2, 4, 8};
    const struct rows rows = {ROWS, token, zero, zero, zero, zero, ancestors};
    float to[ROWS * HIDDEN], *device_to;
    struct random random = {9};
    struct cuda_rig rig;

    (void)state;
    cuda_rig_open(&rig, HIDDEN, 0, 0, 0);
    device_to = cuda_rig_put(&rig, NULL, ROWS * HIDDEN);
    for (int d = 0; d < 3; d++) {
        struct weights table;

        weights_init(&table, &random, dtypes[d], TOKENS, HIDDEN);
        backend_cuda.step.embed(rig.cuda, &rows, NULL, 0, dtypes[d], table.data, HIDDEN, device_to);
        cuda_rig_get(&rig, device_to, to, ROWS * HIDDEN);
        for (int r = 0; r < ROWS; r++)
            assert_same_bits(to + r * HIDDEN, table.wide + token[r] * HIDDEN, HIDDEN);
        weights_release(&table);
    }
    cuda_rig_close(&rig);
}

static void test_cuda_linear__tree_sum_gives_the_bits_of_the_cpu(void **state)
{
    enum { SIZE = 301 };
    static float terms[BACKEND_MAX_TERMS * SIZE];
    float to[SIZE], expected[SIZE], *device_terms, *device_to;
    struct random random = {10};
    struct cuda_rig rig;

    (void)state;
    cuda_rig_open(&rig, 0, 0, 0, 0);
    random_floats(&random, terms, BACKEND_MAX_TERMS * SIZE);
    device_terms = cuda_rig_put(&rig, terms, BACKEND_MAX_TERMS * SIZE);
    device_to = cuda_rig_put(&rig, NULL, SIZE);
    for (int count = 1; count <= BACKEND_MAX_TERMS; count += count < 10 ? 1 : 9) {
        backend_cpu.linear.tree_sum(rig.cpu, terms, count, SIZE, expected);
        backend_cuda.linear.tree_sum(rig.cuda, device_terms, count, SIZE, device_to);
        cuda_rig_get(&rig, device_to, to, SIZE);
        assert_same_bits(to, expected, SIZE);
    }
    assert_true(backend_cuda.device.idle(rig.cuda));
    assert_int_equal(backend_cuda.device.which(rig.cuda)->number, 0);
    cuda_rig_close(&rig);
}

static void test_cuda_linear__what_cannot_be_is_refused_in_one_line(void **state)
{
    const struct {
        struct backend_options options;
        enum status status;
        const char *line;
    } cases[] = {
        {{.threads = 0}, STATUS_USAGE, "0 threads"},
        {{.threads = 1, .device = 99}, STATUS_USAGE, "device 99"},
        {{.threads = 1, .max_hidden = KERNEL_MAX_HIDDEN + 1}, STATUS_DATA, "hidden channels"},
        {{.threads = 1, .device = OLD_DEVICE}, STATUS_USAGE, "device 8 (emulation) gives a block 64 KiB of shared memory"},
    };
    struct backend_context *context = NULL;
    struct capture capture;
    struct arena arena;
    char text[512];

    (void)state;
    for (int i = 0; i < (cuda_rig_is_emulated() ? 4 : 3); i++) {
        capture_begin(&capture);
        assert_int_equal(backend_cuda.open(&cases[i].options, &context), cases[i].status);
        capture_end(&capture, text, sizeof text);
        capture_assert_one_line(text, cases[i].line);
        assert_null(context);
    }
    assert_int_equal(backend_cuda.open(&(struct backend_options){.threads = 1}, &context), STATUS_OK);
    capture_begin(&capture);
    assert_int_equal(backend_cuda.memory.open(context, (size_t)1 << 50, "the weights", &arena), STATUS_INTERNAL);
    capture_end(&capture, text, sizeof text);
    capture_assert_one_line(text, "the weights of 1048576.000 GiB: device 0");
    capture_begin(&capture);
    assert_int_equal(backend_cuda.memory.check(context, "a cache", (size_t)1 << 50), STATUS_INTERNAL);
    capture_end(&capture, text, sizeof text);
    capture_assert_one_line(text, "a cache takes 1048576.0 GiB, device 0");
    assert_int_equal(backend_cuda.memory.check(context, "a cache", 1), STATUS_OK);
    backend_cuda.close(context);
}

/* A device of the emulation refuses launches. */
static void test_cuda_linear__a_failure_is_told_by_finish_and_stays(void **state)
{
    const uint16_t weight = 0x3f80;
    const void *rows[1] = {&weight};
    struct matrix_source source = {.rows = rows, .outputs = 1, .columns = 1, .dtype = DTYPE_BF16, .slices = 1};
    struct backend_context *context = NULL;
    struct matrix *matrix = NULL;
    struct capture capture;
    struct arena arena;
    char text[512];

    (void)state;
    if (!cuda_rig_is_emulated()) {
        print_message("skipped: only the emulation has a device that fails\n");
        skip();
    }
    assert_int_equal(backend_cuda.open(&(struct backend_options){.threads = 1, .device = 7}, &context), STATUS_OK);
    assert_int_equal(backend_cuda.memory.open(context, backend_cuda.linear.matrix_bytes(&source) + 128, "a matrix", &arena), STATUS_OK);
    assert_int_equal(backend_cuda.linear.matrix_pack(context, &source, &arena, &matrix), STATUS_OK);
    float *x = arena_take(&arena, sizeof *x), *to = arena_take(&arena, sizeof *to);
    assert_int_equal(backend_cuda.step.finish(context), STATUS_OK);
    capture_begin(&capture);
    backend_cuda.linear.matmul(context, matrix, 1, x, to);
    backend_cuda.linear.add(context, x, to, 1);
    assert_int_equal(backend_cuda.step.finish(context), STATUS_INTERNAL);
    assert_int_equal(backend_cuda.step.finish(context), STATUS_INTERNAL);
    capture_end(&capture, text, sizeof text);
    capture_assert_one_line(text, "matmul on device 7");
    backend_cuda.memory.close(context, &arena);
    backend_cuda.close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_linear__matmul_matches_cpu),
        cmocka_unit_test(test_cuda_linear__many_panels_match_cpu),
        cmocka_unit_test(test_cuda_linear__many_columns_match_cpu),
        cmocka_unit_test(test_cuda_linear__a_row_has_the_same_bits_in_any_company),
        cmocka_unit_test(test_cuda_linear__mlp_in_matches_cpu),
        cmocka_unit_test(test_cuda_linear__a_normed_row_has_the_same_bits_in_any_company),
        CUDA_RIG_APART(test_cuda_linear__many_columns_match_cpu),
        CUDA_RIG_APART(test_cuda_linear__a_row_has_the_same_bits_in_any_company),
        CUDA_RIG_APART(test_cuda_linear__mlp_in_matches_cpu),
        CUDA_RIG_APART(test_cuda_linear__a_normed_row_has_the_same_bits_in_any_company),
        cmocka_unit_test(test_cuda_linear__a_device_of_less_shared_memory_gives_the_same_bits),
        cmocka_unit_test(test_cuda_linear__rows_that_are_rounded_give_the_same_bits),
        cmocka_unit_test(test_cuda_linear__shards_add_up_to_the_whole),
        cmocka_unit_test(test_cuda_linear__weights_of_f32_are_rounded_with_one_warning),
        cmocka_unit_test(test_cuda_linear__logits_are_there_when_finish_says_so),
        cmocka_unit_test(test_cuda_linear__embed_widens_the_rows_of_the_table),
        cmocka_unit_test(test_cuda_linear__tree_sum_gives_the_bits_of_the_cpu),
        cmocka_unit_test(test_cuda_linear__what_cannot_be_is_refused_in_one_line),
        cmocka_unit_test(test_cuda_linear__a_failure_is_told_by_finish_and_stays),
    };
    int skipped = cuda_rig_skip();

    return skipped != 0 ? skipped : cmocka_run_group_tests(tests, NULL, NULL);
}
