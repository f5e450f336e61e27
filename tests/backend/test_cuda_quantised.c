/* Weights in blocks on the CUDA backend, emulated or on a device. The reference is dtype_widen, not the CPU's product, which rounds activations.
 *
 * A row with a single 1 gives a weight as it is: the products of all others are 0, and 1 x q, times the scale, and x least added to it, round as
 * dtype_widen does. For whole rows of numbers that bfloat16 holds: n products q x are added in f32 (at most n 2^-23 of the sum of their sizes, which
 * leaves room for units that cut instead of rounding), and so are the parts, with a rounding of each and one of each minimum; the reference is in
 * double precision. So |device - reference| <= n 2^-22 x sum(|d scale q x| + |m least x|). */
#include "common/backend/cuda/blocks.h"
#include "common/backend/cuda/kernels.h"
#include "tests/backend/cuda_rig.h"
#include "tests/support/capture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = CUDA_RIG_COMPANY };

/* Rows of some outputs in one dtype, or, as a mixture, in those of a list in turns. */
struct mixture {
    const char *name;
    enum dtype packed;
    enum dtype of[5];
    int count;
    int group; /* of Q4_Z: so many columns have one scale and zero point; 0: each block its own */
};
static const struct mixture mixtures[] = {
    {"Q8_0", DTYPE_Q8_0, {DTYPE_Q8_0}, 1, 0},
    {"Q4_0", DTYPE_Q4_0, {DTYPE_Q4_0}, 1, 0},
    {"Q4_1", DTYPE_Q4_1, {DTYPE_Q4_1}, 1, 0},
    {"Q5_0", DTYPE_Q5_0, {DTYPE_Q5_0}, 1, 0},
    {"Q5_1", DTYPE_Q5_1, {DTYPE_Q5_1}, 1, 0},
    {"Q2_K", DTYPE_Q2_K, {DTYPE_Q2_K}, 1, 0},
    {"Q3_K", DTYPE_Q3_K, {DTYPE_Q3_K}, 1, 0},
    {"Q4_K", DTYPE_Q4_K, {DTYPE_Q4_K}, 1, 0},
    {"Q5_K", DTYPE_Q5_K, {DTYPE_Q5_K}, 1, 0},
    {"Q6_K", DTYPE_Q6_K, {DTYPE_Q6_K}, 1, 0},
    {"Q8_0 and Q5_0", DTYPE_Q8_0, {DTYPE_Q8_0, DTYPE_Q5_0}, 2, 0},
    {"Q6_K and Q3_K", DTYPE_Q6_K, {DTYPE_Q6_K, DTYPE_Q3_K}, 2, 0},
    {"all k-quants", DTYPE_Q5_K, {DTYPE_Q5_K, DTYPE_Q2_K, DTYPE_Q3_K, DTYPE_Q4_K, DTYPE_Q6_K}, 5, 0},
    {"F8", DTYPE_F8, {DTYPE_F8}, 1, 0},
    {"Q4_Z", DTYPE_Q4_Z, {DTYPE_Q4_Z}, 1, 0},
    {"Q4_Z in groups", DTYPE_Q4_Z, {DTYPE_Q4_Z}, 1, 128},
};
enum { MIXTURES = sizeof mixtures / sizeof mixtures[0] };

static int block_of(const struct mixture *mixture)
{
    return mixture->group > 0 ? mixture->group : (int)dtype_block(mixture->packed);
}

struct blocks {
    const struct mixture *mixture;
    int outputs, columns;
    const void **rows; /* [outputs], each its own memory */
    enum dtype *dtypes;
    float *wide; /* [outputs][columns] */
};

/* Gives the blocks of each group the scale and zero point of its first. */
static void share(unsigned char *row, int columns, int group)
{
    size_t block = dtype_row_bytes(DTYPE_Q4_Z, DTYPE_BLOCK), shared = (size_t)(group / DTYPE_BLOCK);

    for (size_t i = 0; i < (size_t)(columns / DTYPE_BLOCK); i++)
        memcpy(row + i * block, row + (i - i % shared) * block, 3);
}

static void blocks_init(struct blocks *blocks, struct random *random, const struct mixture *mixture, int outputs, int columns)
{
    *blocks = (struct blocks){.mixture = mixture, .outputs = outputs, .columns = columns};
    blocks->rows = zeroed((size_t)outputs, sizeof *blocks->rows);
    blocks->dtypes = zeroed((size_t)outputs, sizeof *blocks->dtypes);
    blocks->wide = zeroed((size_t)outputs * (size_t)columns, sizeof *blocks->wide);
    for (int o = 0; o < outputs; o++) {
        blocks->dtypes[o] = mixture->of[o % mixture->count];
        unsigned char *row = random_weights(random, blocks->dtypes[o], (size_t)columns);

        if (mixture->group > 0)
            share(row, columns, mixture->group);
        blocks->rows[o] = row;
        dtype_widen(blocks->dtypes[o], blocks->rows[o], blocks->wide + (size_t)o * (size_t)columns, (size_t)columns);
    }
}

static void blocks_release(struct blocks *blocks)
{
    for (int o = 0; o < blocks->outputs; o++)
        free((void *)blocks->rows[o]);
    free(blocks->rows);
    free(blocks->dtypes);
    free(blocks->wide);
}

static struct matrix_source source_of(const struct blocks *blocks, int first, int columns)
{
    return (struct matrix_source){.rows = blocks->rows,
                                  .outputs = blocks->outputs,
                                  .columns = columns,
                                  .column_first = first,
                                  .dtype = blocks->mixture->packed,
                                  .row_dtype = blocks->mixture->count > 1 ? blocks->dtypes : NULL,
                                  .row_columns = blocks->columns,
                                  .slices = 1,
                                  .group = blocks->mixture->group};
}

static struct matrix *pack(struct cuda_rig *rig, const struct blocks *blocks, int first, int columns)
{
    const struct matrix_source source = source_of(blocks, first, columns);

    return cuda_rig_pack_source(rig, &source);
}

/* Each column in a row of its own, so many rows at once: 64 or fewer for linear.cu, more for wide.cu. */
static void check_weights(struct cuda_rig *rig, const struct blocks *blocks, int first, int columns, int rows)
{
    size_t in = (size_t)columns, out = (size_t)blocks->outputs;
    float *from = zeroed((size_t)rows * in, sizeof *from), *to = zeroed((size_t)rows * out, sizeof *to);
    float *device_to = cuda_rig_put(rig, NULL, (size_t)rows * out);
    const struct matrix *matrix = pack(rig, blocks, first, columns);

    for (int at = 0; at < columns; at += rows) {
        memset(from, 0, (size_t)rows * in * sizeof *from);
        for (int r = 0; r < rows && at + r < columns; r++)
            from[(size_t)r * in + (size_t)(at + r)] = 1.0f;
        backend_cuda.linear.matmul(rig->cuda, matrix, rows, cuda_rig_put(rig, from, (size_t)rows * in), device_to);
        cuda_rig_get(rig, device_to, to, (size_t)rows * out);
        for (int r = 0; r < rows && at + r < columns; r++)
            for (int o = 0; o < blocks->outputs; o++) {
                float got = to[(size_t)r * out + (size_t)o], expected = blocks->wide[o * blocks->columns + first + at + r];

                if (!(got == expected))
                    fail_msg("%s, column %d of output %d: %a, expected %a", blocks->mixture->name, at + r, o, (double)got, (double)expected);
            }
    }
    free(from);
    free(to);
}

static void test_cuda_quantised__each_weight_is_the_blocks_value(void **state)
{
    struct random random = {1};

    (void)state;
    for (int m = 0; m < MIXTURES; m++)
        for (int wide = 0; wide < 2; wide++) {
            int columns = block_of(&mixtures[m]) == DTYPE_BLOCK ? 9 * DTYPE_BLOCK : 2 * DTYPE_BLOCK_MOST;
            struct blocks blocks;
            struct cuda_rig rig;

            cuda_rig_open(&rig, columns, 0, 0, 0);
            blocks_init(&blocks, &random, &mixtures[m], 19, columns);
            check_weights(&rig, &blocks, 0, columns, wide ? MOST_ROWS : KERNEL_ROWS);
            blocks_release(&blocks);
            cuda_rig_close(&rig);
        }
}

static void test_cuda_quantised__a_shard_has_the_weights_of_its_columns(void **state)
{
    struct random random = {2};

    (void)state;
    for (int m = 0; m < MIXTURES; m++) {
        int block = block_of(&mixtures[m]);
        struct blocks blocks;
        struct cuda_rig rig;

        cuda_rig_open(&rig, 3 * block, 0, 0, 0);
        blocks_init(&blocks, &random, &mixtures[m], 17, 3 * block);
        check_weights(&rig, &blocks, block, block, 32);
        check_weights(&rig, &blocks, block, 2 * block, 64);
        blocks_release(&blocks);
        cuda_rig_close(&rig);
    }
}

/* The sum of the sizes of what is added for one output. */
static double size_of_sum(enum dtype dtype, const void *row, const float *x, int columns)
{
    double size = 0.0;

    if (dtype == DTYPE_F8) {
        float *wide = zeroed((size_t)columns, sizeof *wide);

        dtype_widen(dtype, row, wide, (size_t)columns);
        for (int k = 0; k < columns; k++)
            size += fabs((double)wide[k] * (double)x[k]);
        free(wide);
        return size;
    }
    for (int i = 0; i < columns / DTYPE_BLOCK; i++) {
        struct dtype_part part;
        float d, m;

        dtype_part_of(dtype, row, (size_t)i, &part);
        dtype_widen(DTYPE_F16, &part.d, &d, 1);
        dtype_widen(DTYPE_F16, &part.m, &m, 1);
        for (int k = 0; k < DTYPE_BLOCK; k++)
            size += (fabs((double)d * part.scale[k / 16] * part.q[k]) + fabs((double)m * part.least[k / 16])) * fabs((double)x[i * DTYPE_BLOCK + k]);
    }
    return size;
}

static void check_products(struct random *random, const struct mixture *mixture, int outputs, int columns, int rows)
{
    size_t in = (size_t)columns, out = (size_t)outputs;
    float *from = zeroed((size_t)rows * in, sizeof *from), *to = zeroed((size_t)rows * out, sizeof *to), *device_to;
    struct blocks blocks;
    struct cuda_rig rig;

    cuda_rig_open(&rig, columns, 0, 0, 0);
    blocks_init(&blocks, random, mixture, outputs, columns);
    for (size_t i = 0; i < (size_t)rows * in; i++)
        from[i] = (float)((int)(random_word(random) % 256) - 128) / 128.0f; /* which bfloat16 holds */
    device_to = cuda_rig_put(&rig, NULL, (size_t)rows * out);
    backend_cuda.linear.matmul(rig.cuda, pack(&rig, &blocks, 0, columns), rows, cuda_rig_put(&rig, from, (size_t)rows * in), device_to);
    cuda_rig_get(&rig, device_to, to, (size_t)rows * out);
    for (size_t r = 0; r < (size_t)rows; r++)
        for (size_t o = 0; o < out; o++) {
            double expected = 0.0, bound = size_of_sum(blocks.dtypes[o], blocks.rows[o], from + r * in, columns) * columns * 0x1p-22;

            for (size_t k = 0; k < in; k++)
                expected += (double)blocks.wide[o * in + k] * (double)from[r * in + k];
            if (!(fabs((double)to[r * out + o] - expected) <= bound))
                fail_msg("%s, row %zu, output %zu: %.9g, expected %.9g within %.3g", mixture->name, r, o, (double)to[r * out + o], expected, bound);
        }
    blocks_release(&blocks);
    cuda_rig_close(&rig);
    free(from);
    free(to);
}

/* One panel and many, one chunk of staged rows and several, every number of tiles of rows. */
static void test_cuda_quantised__products_are_those_of_the_values(void **state)
{
    static const struct {
        int outputs, blocks, rows;
    } shapes[] = {{1, 1, 1},    {17, 9, 2},  {33, 35, 7},  {16 * 24 + 3, 3, 12}, {20, 86, 20},
                  {35, 44, 40}, {18, 5, 64}, {35, 10, 65}, {150, 3, MOST_ROWS}};
    struct random random = {3};

    (void)state;
    for (int m = 0; m < MIXTURES; m++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            int block = block_of(&mixtures[m]), columns = (shapes[s].blocks * DTYPE_BLOCK + block - 1) / block * block;

            check_products(&random, &mixtures[m], shapes[s].outputs, columns, shapes[s].rows);
        }
}

static const struct matrix *now;
static const float *now_norm;
static int now_ffn;
static const struct matrix *now_down;

static void run_matmul(struct cuda_rig *rig, int rows, const float *from, float *to)
{
    backend_cuda.linear.matmul(rig->cuda, now, rows, from, to);
}

/* Gate and up, and behind them a map in the same blocks. */
static void run_mlp(struct cuda_rig *rig, int rows, const float *from, float *to)
{
    const struct layer_shape shape = {.ffn = now_ffn, .norm_eps = 1e-5f};
    const struct layer_weights weights = {.gate_up = (struct matrix *)now, .mlp_norm = now_norm, .down = (struct matrix *)now_down};
    float *left = cuda_rig_put(rig, NULL, (size_t)rows * (size_t)now_ffn);

    backend_cuda.layer.mlp_in(rig->cuda, &shape, &weights, rows, from, left);
    backend_cuda.layer.mlp_out(rig->cuda, &shape, &weights, rows, left, to);
}

static void test_cuda_quantised__a_row_has_the_same_bits_in_any_company(void **state)
{
    static const struct {
        int outputs, blocks;
    } shapes[] = {{200, 8}, {17, 72}};
    struct random random = {4};

    (void)state;
    for (int m = 0; m < MIXTURES; m++) {
        int outputs = shapes[m % 2].outputs, columns = shapes[m % 2].blocks * DTYPE_BLOCK;
        struct blocks blocks;
        struct cuda_rig rig;

        cuda_rig_open(&rig, columns, 0, 0, 0);
        blocks_init(&blocks, &random, &mixtures[m], outputs, columns);
        now = pack(&rig, &blocks, 0, columns);
        cuda_rig_check_company(&rig, run_matmul, &random, columns, outputs);
        blocks_release(&blocks);
        cuda_rig_close(&rig);
    }
}

static void test_cuda_quantised__a_normed_row_has_the_same_bits_in_any_company(void **state)
{
    enum { HIDDEN = 512, FFN = 64, OUTPUTS = 30 };
    struct random random = {5};
    float norm[HIDDEN];

    (void)state;
    random_floats(&random, norm, HIDDEN);
    for (int m = 0; m < MIXTURES; m++) {
        struct blocks gate_up, down;
        struct cuda_rig rig;

        cuda_rig_open(&rig, HIDDEN, 0, 0, 0);
        blocks_init(&gate_up, &random, &mixtures[m], 2 * FFN, HIDDEN); /* what is gate, and what up, is all the same here */
        blocks_init(&down, &random, &mixtures[0], OUTPUTS, FFN);
        now = pack(&rig, &gate_up, 0, HIDDEN);
        now_down = pack(&rig, &down, 0, FFN);
        now_ffn = FFN;
        now_norm = cuda_rig_put(&rig, norm, HIDDEN);
        cuda_rig_check_company(&rig, run_mlp, &random, HIDDEN, OUTPUTS);
        blocks_release(&gate_up);
        blocks_release(&down);
        cuda_rig_close(&rig);
    }
}

/* SwiGLU of gate and up, which are read at once, is that of the outputs that the same matrix has one panel at a time. */
static void test_cuda_quantised__gate_and_up_are_the_outputs_of_their_rows(void **state)
{
    enum { HIDDEN = 512, FFN = 32, ROWS = 3 };
    struct random random = {6};
    float from[ROWS * HIDDEN], ones[HIDDEN], plain[ROWS * 2 * FFN];
    uint16_t left[ROWS * FFN];

    (void)state;
    for (int k = 0; k < HIDDEN; k++)
        ones[k] = 1.0f;
    for (int i = 0; i < ROWS * HIDDEN; i++)
        from[i] = random_word(&random) % 2 == 0 ? 1.0f : -1.0f; /* whose norm is 1 */
    for (int m = 0; m < MIXTURES; m++) {
        struct layer_shape shape = {.ffn = FFN, .norm_eps = 0.0f};
        struct layer_weights weights = {0};
        struct blocks blocks, down;
        struct cuda_rig rig;
        float *device_from, *device_to, *device_left;

        cuda_rig_open(&rig, HIDDEN, 0, 0, 0);
        blocks_init(&blocks, &random, &mixtures[m], 2 * FFN, HIDDEN);
        blocks_init(&down, &random, &mixtures[0], 1, FFN);
        weights.gate_up = pack(&rig, &blocks, 0, HIDDEN);
        weights.down = pack(&rig, &down, 0, FFN);
        weights.mlp_norm = cuda_rig_put(&rig, ones, HIDDEN);
        device_from = cuda_rig_put(&rig, from, ROWS * HIDDEN);
        device_to = cuda_rig_put(&rig, NULL, ROWS * 2 * FFN);
        device_left = cuda_rig_put(&rig, NULL, ROWS * FFN / 2);
        backend_cuda.linear.matmul(rig.cuda, weights.gate_up, ROWS, device_from, device_to);
        cuda_rig_get(&rig, device_to, plain, ROWS * 2 * FFN);
        backend_cuda.layer.mlp_in(rig.cuda, &shape, &weights, ROWS, device_from, device_left);
        cuda_rig_get(&rig, device_left, (float *)(void *)left, ROWS * FFN / 2);
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < FFN; c++) {
                float gate = plain[r * 2 * FFN + c / 16 * 32 + c % 16], up = plain[r * 2 * FFN + c / 16 * 32 + 16 + c % 16], got;
                double expected = (double)gate / (1.0 + exp(-(double)gate)) * (double)up;

                dtype_widen(DTYPE_BF16, &left[r * FFN + c], &got, 1);
                if (!(fabs((double)got - expected) <= 0x1p-8 * fabs(expected) + 0x1p-100))
                    fail_msg("%s, row %d, channel %d: %.9g, expected %.9g", mixtures[m].name, r, c, (double)got, expected);
            }
        blocks_release(&blocks);
        blocks_release(&down);
        cuda_rig_close(&rig);
    }
}

/* As many bytes as the file has for so many rows, but for zero points; where a panel is not full, for a full one. */
static void test_cuda_quantised__weights_take_the_bytes_of_their_file(void **state)
{
    struct random random = {7};

    (void)state;
    for (int m = 0; m < MIXTURES; m++) {
        const struct mixture *mixture = &mixtures[m];
        int columns = 3 * DTYPE_BLOCK_MOST;
        struct matrix_source source;
        struct blocks blocks;

        blocks_init(&blocks, &random, mixture, 30, columns);
        source = source_of(&blocks, 0, columns);
        if (mixture->packed == DTYPE_Q4_Z) /* 4 bits for each weight, and two numbers of 16 of those that share them */
            assert_int_equal(backend_cuda.linear.matrix_bytes(&source), 32 * (columns / 2 + columns / block_of(mixture) * 4));
        else if (mixture->count == 1 || mixture->packed != DTYPE_Q5_K)
            assert_int_equal(backend_cuda.linear.matrix_bytes(&source), 32 * dtype_row_bytes(mixture->packed, (size_t)columns));
        else /* 6 bits for each weight, 8 for each of two scales and two minima of 32, and a d and an m of 256 */
            assert_int_equal(backend_cuda.linear.matrix_bytes(&source), 32 * columns / DTYPE_BLOCK_MOST * (192 + 32 + 4));
        blocks_release(&blocks);
    }
}

static void test_cuda_quantised__rows_that_are_not_there_are_zeros(void **state)
{
    struct random random = {8};

    (void)state;
    for (int m = 0; m < MIXTURES; m++) {
        int columns = block_of(&mixtures[m]);
        float from[DTYPE_BLOCK_MOST], to[3], *device_to;
        struct matrix_source source;
        struct blocks blocks;
        const void *kept;
        struct cuda_rig rig;

        cuda_rig_open(&rig, columns, 0, 0, 0);
        blocks_init(&blocks, &random, &mixtures[m], 3, columns);
        random_floats(&random, from, (size_t)columns);
        kept = blocks.rows[1];
        blocks.rows[1] = NULL;
        source = source_of(&blocks, 0, columns);
        device_to = cuda_rig_put(&rig, NULL, 3);
        backend_cuda.linear.matmul(rig.cuda, cuda_rig_pack_source(&rig, &source), 1, cuda_rig_put(&rig, from, (size_t)columns), device_to);
        cuda_rig_get(&rig, device_to, to, 3);
        assert_true(to[1] == 0.0f && to[0] != 0.0f && to[2] != 0.0f);
        blocks.rows[1] = kept;
        blocks_release(&blocks);
        cuda_rig_close(&rig);
    }
}

/* Whoever packs a shard that begins or ends within a block widens it. */
static void test_cuda_quantised__a_cut_block_is_refused(void **state)
{
    struct random random = {9};
    struct blocks blocks;
    struct cuda_rig rig;
    char line[512];

    (void)state;
    cuda_rig_open(&rig, 0, 0, 0, 0);
    blocks_init(&blocks, &random, &mixtures[0], 1, 96);
    for (int cut = 0; cut < 2; cut++) {
        struct matrix_source source = source_of(&blocks, cut == 0 ? 16 : 0, cut == 0 ? 32 : 48);
        struct matrix *matrix = NULL;
        struct arena arena = {0};
        struct capture capture;

        capture_begin(&capture);
        assert_int_equal(backend_cuda.linear.matrix_pack(rig.cuda, &source, &arena, &matrix), STATUS_INTERNAL);
        capture_end(&capture, line, sizeof line);
        capture_assert_one_line(line, cut == 0 ? "cannot pack 1 outputs of 32 columns from column 16"
                                               : "cannot pack 1 outputs of 48 columns from column 0");
    }
    assert_false(backend_cuda.linear.cuts_blocks);
    blocks_release(&blocks);
    cuda_rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_quantised__each_weight_is_the_blocks_value),
        cmocka_unit_test(test_cuda_quantised__a_shard_has_the_weights_of_its_columns),
        cmocka_unit_test(test_cuda_quantised__products_are_those_of_the_values),
        cmocka_unit_test(test_cuda_quantised__a_row_has_the_same_bits_in_any_company),
        cmocka_unit_test(test_cuda_quantised__a_normed_row_has_the_same_bits_in_any_company),
        CUDA_RIG_APART(test_cuda_quantised__products_are_those_of_the_values),
        CUDA_RIG_APART(test_cuda_quantised__a_row_has_the_same_bits_in_any_company),
        CUDA_RIG_APART(test_cuda_quantised__a_normed_row_has_the_same_bits_in_any_company),
        cmocka_unit_test(test_cuda_quantised__gate_and_up_are_the_outputs_of_their_rows),
        cmocka_unit_test(test_cuda_quantised__weights_take_the_bytes_of_their_file),
        cmocka_unit_test(test_cuda_quantised__rows_that_are_not_there_are_zeros),
        cmocka_unit_test(test_cuda_quantised__a_cut_block_is_refused),
    };
    int skipped = cuda_rig_skip();

    return skipped != 0 ? skipped : cmocka_run_group_tests(tests, NULL, NULL);
}
