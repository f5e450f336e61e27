#include "tests/backend/rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 70 };

struct shape {
    int columns, outputs;
};
static const struct shape shapes[] = {{1, 1}, {16, 16}, {43, 24}, {172, 40}, {64, 150}, {255, 33}};
static const struct shape f8_shapes[] = {{128, 1}, {256, 150}, {384, 33}, {1152, 24}}; /* whole blocks; slices cut them */

/* slices nearly equal, odd widths among them */
static void cut(int columns, int slices, int *bounds)
{
    for (int i = 0; i <= slices; i++)
        bounds[i] = columns * i / slices;
}

/* The contract of backend.h, word by word. */
static float contract(const struct weights *weights, int o, const float *from, const int *bounds, int slices)
{
    float terms[BACKEND_MAX_SLICES];

    for (int i = 0; i < slices; i++) {
        terms[i] = 0;
        for (int k = bounds[i]; k < bounds[i + 1]; k++)
            terms[i] = fmaf(weights->wide[(size_t)o * (size_t)weights->columns + (size_t)k], from[k], terms[i]);
    }
    return backend_tree_sum(terms, slices);
}

static void check_rows(struct backend_context *context, const struct matrix *matrix, const float *from, const float *expected,
                       const struct weights *weights)
{
    size_t outputs = (size_t)weights->outputs;
    float *to = zeroed((ROWS + 1) * outputs, sizeof *to);

    for (int rows = 1; rows <= ROWS; rows += rows < 17 ? 1 : rows < 64 ? 47 : 6) {
        to[(size_t)rows * outputs] = 12345.0f;
        backend_cpu.linear.matmul(context, matrix, rows, from, to);
        assert_same_bits(to, expected, (size_t)rows * outputs);
        assert_true(to[(size_t)rows * outputs] == 12345.0f); /* nothing beyond the rows */
    }
    free(to);
}

static void check_shape(struct backend_context *const *contexts, struct shape shape, enum dtype dtype, int slices)
{
    struct random random = {.state = (uint32_t)(shape.columns * 100 + slices)};
    struct weights weights;
    float *from = zeroed((size_t)ROWS * (size_t)shape.columns, sizeof *from);
    float *expected = zeroed((size_t)ROWS * (size_t)shape.outputs, sizeof *expected);
    int bounds[BACKEND_MAX_SLICES + 1];

    cut(shape.columns, slices, bounds);
    weights_init(&weights, &random, dtype, shape.outputs, shape.columns);
    random_floats(&random, from, (size_t)ROWS * (size_t)shape.columns);
    for (int r = 0; r < ROWS; r++)
        for (int o = 0; o < shape.outputs; o++)
            expected[r * shape.outputs + o] = contract(&weights, o, from + r * shape.columns, bounds, slices);
    for (int i = 0; i < RIGS; i++) {
        struct arena arena;

        if (contexts[i] == NULL)
            continue;
        check_rows(contexts[i], weights_pack(&weights, contexts[i], bounds, slices, &arena), from, expected, &weights);
        arena_close(&arena);
    }
    weights_release(&weights);
    free(from);
    free(expected);
}

static void check_dtype(enum dtype dtype)
{
    static const int slices[] = {1, 2, 3, 4, 16};
    const struct shape *shape = dtype == DTYPE_F8 ? f8_shapes : shapes;
    size_t count = dtype == DTYPE_F8 ? sizeof f8_shapes / sizeof *f8_shapes : sizeof shapes / sizeof *shapes;
    struct backend_context *contexts[RIGS];

    for (int i = 0; i < RIGS; i++)
        contexts[i] = rig_open(i);
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < sizeof slices / sizeof *slices; i++)
            check_shape(contexts, shape[s], dtype, slices[i]);
    for (int i = 0; i < RIGS; i++)
        backend_cpu.close(contexts[i]);
}

static void test_matmul__f32_is_the_chain_on_every_isa_thread_count_and_row_count(void **state)
{
    (void)state;
    check_dtype(DTYPE_F32);
}

static void test_matmul__f16_is_the_chain_on_every_isa_thread_count_and_row_count(void **state)
{
    (void)state;
    check_dtype(DTYPE_F16);
}

static void test_matmul__bf16_is_the_chain_on_every_isa_thread_count_and_row_count(void **state)
{
    (void)state;
    check_dtype(DTYPE_BF16);
}

static void test_matmul__f8_is_the_chain_on_every_isa_thread_count_and_row_count(void **state)
{
    (void)state;
    check_dtype(DTYPE_F8);
}

static void test_matmul__is_near_the_product_in_double(void **state)
{
    enum { COLUMNS = 577, OUTPUTS = 45 };
    struct random random = {.state = 5};
    struct backend_context *context;
    struct weights weights;
    struct arena arena;
    float from[COLUMNS], to[OUTPUTS];

    (void)state;
    weights_init(&weights, &random, DTYPE_BF16, OUTPUTS, COLUMNS);
    random_floats(&random, from, COLUMNS);
    for (int i = 0; i < RIGS; i += 3) {
        if ((context = rig_open(i)) == NULL)
            continue;
        backend_cpu.linear.matmul(context, weights_pack(&weights, context, (const int[]){0, COLUMNS}, 1, &arena), 1, from, to);
        for (int o = 0; o < OUTPUTS; o++) {
            double exact = 0, size = 0;

            for (int k = 0; k < COLUMNS; k++) {
                exact += (double)from[k] * (double)weights.wide[o * COLUMNS + k];
                size += fabs((double)from[k] * (double)weights.wide[o * COLUMNS + k]);
            }
            assert_true(fabs((double)to[o] - exact) <= COLUMNS * 0x1p-24 * size);
        }
        arena_close(&arena);
        backend_cpu.close(context);
    }
    weights_release(&weights);
}

/* Tensor parallelism: the slices of one rank, summed by the tree, equal the tree over ranks that own some slices each. */
static void check_shards(enum dtype dtype, int columns)
{
    enum { MOST_COLUMNS = 384, OUTPUTS = 40, SLICES = 8, RANKS_MAX = 8 };
    struct random random = {.state = 9};
    struct backend_context *context = rig_open(0);
    int bounds[SLICES + 1];
    struct weights weights;
    struct arena arena;
    float from[MOST_COLUMNS], whole[OUTPUTS], part[RANKS_MAX][OUTPUTS];

    cut(columns, SLICES, bounds);
    weights_init(&weights, &random, dtype, OUTPUTS, columns);
    random_floats(&random, from, (size_t)columns);
    backend_cpu.linear.matmul(context, weights_pack(&weights, context, bounds, SLICES, &arena), 1, from, whole);
    arena_close(&arena);
    for (int ranks = 2; ranks <= RANKS_MAX; ranks *= 2) {
        for (int rank = 0; rank < ranks; rank++) {
            const int *own = bounds + rank * (SLICES / ranks);

            backend_cpu.linear.matmul(context, weights_pack(&weights, context, own, SLICES / ranks, &arena), 1, from + own[0], part[rank]);
            arena_close(&arena);
        }
        for (int o = 0; o < OUTPUTS; o++) {
            float terms[RANKS_MAX], sum;

            for (int rank = 0; rank < ranks; rank++)
                terms[rank] = part[rank][o];
            sum = backend_tree_sum(terms, ranks);
            assert_same_bits(&sum, whole + o, 1);
        }
    }
    weights_release(&weights);
    backend_cpu.close(context);
}

static void test_matmul__slices_of_one_rank_equal_the_tree_of_its_shards(void **state)
{
    (void)state;
    check_shards(DTYPE_BF16, 172);
    check_shards(DTYPE_F8, 384); /* every shard but the first begins within a block */
}

/* What stands beside the columns of a shard must not leak into its odd last pair, or its last four. */
static void check_neighbours(enum dtype dtype, int columns)
{
    struct random random = {.state = 3};
    struct weights weights;
    float from[8] = {1, 2, 3, 4, 5, NAN, NAN, NAN};

    weights_init(&weights, &random, dtype, 20, columns);
    for (int i = 0; i < RIGS; i += 3) {
        struct backend_context *context = rig_open(i);
        struct arena arena;
        float to[20];

        if (context == NULL)
            continue;
        backend_cpu.linear.matmul(context, weights_pack(&weights, context, (const int[]){0, 5}, 1, &arena), 1, from, to);
        for (int o = 0; o < 20; o++)
            assert_false(isnan(to[o]));
        arena_close(&arena);
        backend_cpu.close(context);
    }
    weights_release(&weights);
}

static void test_matmul__odd_columns_do_not_touch_their_neighbour(void **state)
{
    (void)state;
    check_neighbours(DTYPE_BF16, 8);
    check_neighbours(DTYPE_F8, DTYPE_BLOCK_F8);
}

/* A byte or a scale that is not a number is told by what comes out, and the other outputs of the panel have none of it. */
static void test_matmul__an_f8_block_that_is_not_a_number_makes_its_output_none(void **state)
{
    static const float scales[] = {NAN, INFINITY, DTYPE_F8_SCALE, -DTYPE_F8_SCALE};
    float from[2 * DTYPE_BLOCK_F8];

    (void)state;
    for (int k = 0; k < 2 * DTYPE_BLOCK_F8; k++)
        from[k] = 1.0f;
    for (int i = 0; i < RIGS; i += 3) {
        struct backend_context *context = rig_open(i);

        for (size_t s = 0; s <= sizeof scales / sizeof *scales && context != NULL; s++) {
            struct random random = {.state = 4};
            struct weights weights;
            struct arena arena;
            unsigned char *second;
            float to[3];

            weights_init(&weights, &random, DTYPE_F8, 3, 2 * DTYPE_BLOCK_F8);
            second = (unsigned char *)weights.data + 3 * dtype_row_bytes(DTYPE_F8, DTYPE_BLOCK_F8); /* block of output 1 */
            if (s == 0)
                second[sizeof(float) + 77] = 0xff;
            else
                memcpy(second, &scales[s - 1], sizeof scales[0]);
            backend_cpu.linear.matmul(context, weights_pack(&weights, context, (const int[]){0, 2 * DTYPE_BLOCK_F8}, 1, &arena), 1, from, to);
            assert_true(isfinite(to[0]) && isnan(to[1]) && isfinite(to[2]));
            arena_close(&arena);
            weights_release(&weights);
        }
        backend_cpu.close(context);
    }
}

static void test_matmul__null_rows_are_zero(void **state)
{
    const float row[3] = {1, 2, 3}, from[3] = {1, 1, 1};
    const void *rows[3] = {row, NULL, row};
    struct matrix_source source = {.rows = rows, .outputs = 3, .columns = 3, .dtype = DTYPE_F32, .slices = 1};
    struct backend_context *context = rig_open(0);
    struct matrix *matrix;
    struct arena arena;
    float to[3];

    (void)state;
    assert_int_equal(arena_open(&arena, backend_cpu.linear.matrix_bytes(&source), "test"), STATUS_OK);
    assert_int_equal(backend_cpu.linear.matrix_pack(context, &source, &arena, &matrix), STATUS_OK);
    backend_cpu.linear.matmul(context, matrix, 1, from, to);
    assert_true(to[0] == 6.0f && to[1] == 0.0f && to[2] == 6.0f);
    arena_close(&arena);
    backend_cpu.close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul__f32_is_the_chain_on_every_isa_thread_count_and_row_count),
        cmocka_unit_test(test_matmul__f16_is_the_chain_on_every_isa_thread_count_and_row_count),
        cmocka_unit_test(test_matmul__bf16_is_the_chain_on_every_isa_thread_count_and_row_count),
        cmocka_unit_test(test_matmul__an_f8_block_that_is_not_a_number_makes_its_output_none),
        cmocka_unit_test(test_matmul__f8_is_the_chain_on_every_isa_thread_count_and_row_count),
        cmocka_unit_test(test_matmul__is_near_the_product_in_double),
        cmocka_unit_test(test_matmul__slices_of_one_rank_equal_the_tree_of_its_shards),
        cmocka_unit_test(test_matmul__odd_columns_do_not_touch_their_neighbour),
        cmocka_unit_test(test_matmul__null_rows_are_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
