#include "tests/backend/rig.h"
#include "tests/support/e4m3.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2, CONTEXT = 400, ROWS = 20 };

/* A step over two slots: 9 rows of a tree in slot 0, 8 of a chain in slot 1, and 3 more of slot 0 that see only the base. */
struct step {
    struct layer_shape shape;
    struct rows rows;
    int32_t token[ROWS], position[ROWS], slot[ROWS], place[ROWS], base[ROWS];
    uint64_t ancestors[ROWS];
    struct cache_layer cache;
    float *q; /* [ROWS][heads][head_dim] */
};

static size_t cache_floats(const struct layer_shape *shape)
{
    return (size_t)SLOTS * (size_t)shape->kv_heads * CONTEXT * (size_t)shape->head_dim;
}

static float *key_at(const struct step *step, int slot, int h, int place, int d)
{
    size_t dim = (size_t)step->shape.head_dim, head = (size_t)(slot * step->shape.kv_heads + h);

    return (float *)step->cache.keys + (head * CONTEXT + (size_t)(place / 16 * 16)) * dim + (size_t)d * 16 + (size_t)(place % 16);
}

static float *value_at(const struct step *step, int slot, int h, int place, int d)
{
    size_t head = (size_t)(slot * step->shape.kv_heads + h);

    return (float *)step->cache.values + (head * CONTEXT + (size_t)place) * (size_t)step->shape.head_dim + (size_t)d;
}

static int sees(const struct step *step, int row, int place)
{
    int past = place - step->base[row];

    return past < 0 || (past < 64 && (step->ancestors[row] >> past & 1) != 0);
}

static void step_init(struct step *step, int heads, int kv_heads, int head_dim, int base)
{
    struct random random = {.state = (uint32_t)(heads * 1000 + head_dim + base)};

    *step = (struct step){.shape = {.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim, .context = CONTEXT}};
    step->rows = (struct rows){.count = ROWS,
                               .token = step->token,
                               .position = step->position,
                               .slot = step->slot,
                               .place = step->place,
                               .base = step->base,
                               .ancestors = step->ancestors};
    for (int r = 0; r < ROWS; r++) {
        int at = r < 9 ? r : r < 17 ? r - 9 : r - 17;

        step->slot[r] = r >= 9 && r < 17;
        step->base[r] = step->slot[r] ? base / 2 : base;
        step->place[r] = step->base[r] + at;
        step->ancestors[r] =
            r >= 9 && r < 17 ? (UINT64_C(2) << at) - 1 : (random_word(&random) & ((UINT64_C(1) << at) - 1)) | UINT64_C(1) << at;
    }
    step->q = zeroed((size_t)ROWS * (size_t)(heads * head_dim), sizeof(float));
    random_floats(&random, step->q, (size_t)ROWS * (size_t)(heads * head_dim));
    step->cache.keys = zeroed(cache_floats(&step->shape), sizeof(float));
    step->cache.values = zeroed(cache_floats(&step->shape), sizeof(float));
    random_floats(&random, step->cache.keys, cache_floats(&step->shape));
    random_floats(&random, step->cache.values, cache_floats(&step->shape));
}

static void step_release(struct step *step)
{
    free(step->q);
    free(step->cache.keys);
    free(step->cache.values);
}

static size_t row_floats(const struct step *step)
{
    return (size_t)(step->shape.heads * step->shape.head_dim);
}

static void naive_head(const struct step *step, int row, int head, double *to /* [head_dim] */)
{
    int dim = step->shape.head_dim, h = head / (step->shape.heads / step->shape.kv_heads);
    const float *q = step->q + (size_t)row * row_floats(step) + (size_t)head * (size_t)dim;
    double weight[CONTEXT], max = -INFINITY, total = 0;

    memset(to, 0, (size_t)dim * sizeof *to);
    for (int place = 0; place < CONTEXT; place++) {
        weight[place] = sees(step, row, place) ? 0 : -INFINITY;
        for (int d = 0; d < dim; d++)
            weight[place] += (double)q[d] * (double)*key_at(step, step->slot[row], h, place, d);
        max = fmax(max, weight[place]);
    }
    for (int place = 0; place < CONTEXT; place++)
        total += weight[place] = exp(weight[place] - max);
    for (int place = 0; place < CONTEXT; place++)
        for (int d = 0; d < dim; d++)
            to[d] += weight[place] / total * (double)*value_at(step, step->slot[row], h, place, d);
}

static void check_against_naive(const struct step *step, const float *to)
{
    double expected[256];

    for (int r = 0; r < ROWS; r++)
        for (int head = 0; head < step->shape.heads; head++) {
            naive_head(step, r, head, expected);
            assert_close(to + (size_t)r * row_floats(step) + (size_t)(head * step->shape.head_dim), expected, (size_t)step->shape.head_dim,
                         2e-5, 2e-6);
        }
}

/* Fills what no row of the step sees with NaN. */
static void poison(const struct step *step)
{
    for (int slot = 0; slot < SLOTS; slot++)
        for (int place = 0; place < CONTEXT; place++) {
            int seen = 0;

            for (int r = 0; r < step->rows.count; r++)
                seen |= step->slot[r] == slot && sees(step, r, place);
            for (int h = 0; h < step->shape.kv_heads && !seen; h++)
                for (int d = 0; d < step->shape.head_dim; d++)
                    *key_at(step, slot, h, place, d) = *value_at(step, slot, h, place, d) = NAN;
        }
}

static void attend(struct backend_context *context, struct step *step, int first, int count, float *to)
{
    struct rows rows = {.count = count,
                        .token = step->token + first,
                        .position = step->position + first,
                        .slot = step->slot + first,
                        .place = step->place + first,
                        .base = step->base + first,
                        .ancestors = step->ancestors + first};

    backend_cpu.layer.attend(context, &step->shape, NULL, &rows, step->q + (size_t)first * row_floats(step), &step->cache, to);
}

/* One shape: near the naive result, same bits everywhere, each row the same alone, with NaN where nothing is seen. */
static void check_shape(int heads, int kv_heads, int head_dim, int base)
{
    struct step step;
    float *first = NULL, *to, *alone;

    step_init(&step, heads, kv_heads, head_dim, base);
    to = zeroed(ROWS * row_floats(&step), sizeof *to);
    alone = zeroed(row_floats(&step), sizeof *alone);
    for (int i = 0; i < RIGS; i++) {
        struct backend_context *context = rig_open(i);

        if (context == NULL)
            continue;
        attend(context, &step, 0, ROWS, to);
        if (first == NULL) {
            first = zeroed(ROWS * row_floats(&step), sizeof *first);
            memcpy(first, to, ROWS * row_floats(&step) * sizeof *first);
            check_against_naive(&step, first);
            poison(&step);
        }
        assert_same_bits(to, first, ROWS * row_floats(&step));
        for (int r = 0; r < ROWS; r++) {
            attend(context, &step, r, 1, alone);
            assert_same_bits(alone, first + (size_t)r * row_floats(&step), row_floats(&step));
        }
        backend_cpu.close(context);
    }
    free(first);
    free(to);
    free(alone);
    step_release(&step);
}

static void round_all(enum dtype dtype, float *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)nearest_bf16(numbers[i]) << 16;

        if (dtype == DTYPE_E4M3)
            numbers[i] = e4m3_wide(e4m3_nearest(numbers[i]));
        else
            memcpy(numbers + i, &bits, sizeof bits);
    }
}

/* Numbers that the dtype has, in it. */
static void *narrowed(enum dtype dtype, const float *numbers, size_t count)
{
    uint16_t *halves = zeroed(count, sizeof *halves);
    uint8_t *bytes = (uint8_t *)halves;

    for (size_t i = 0; i < count; i++)
        if (dtype == DTYPE_E4M3)
            bytes[i] = e4m3_nearest(numbers[i]);
        else
            halves[i] = nearest_bf16(numbers[i]);
    return halves;
}

/* One shape: the bits of float32 whose numbers were rounded before, everywhere, also of rows alone, with NaN where nothing is seen. */
static void check_narrow(enum dtype dtype, int heads, int kv_heads, int head_dim, int base)
{
    struct backend_context *scalar = rig_open(0);
    struct step wide, narrow;
    size_t count, outputs;
    float *expected, *to;

    step_init(&wide, heads, kv_heads, head_dim, base);
    count = cache_floats(&wide.shape);
    outputs = ROWS * row_floats(&wide);
    expected = zeroed(outputs, sizeof *expected);
    to = zeroed(outputs, sizeof *to);
    round_all(dtype, wide.cache.keys, count);
    round_all(dtype, wide.cache.values, count);
    attend(scalar, &wide, 0, ROWS, expected);
    backend_cpu.close(scalar);
    poison(&wide);
    narrow = wide;
    narrow.cache = (struct cache_layer){dtype, narrowed(dtype, wide.cache.keys, count), narrowed(dtype, wide.cache.values, count)};
    for (int i = 0; i < RIGS; i++) {
        struct backend_context *context = rig_open(i);

        if (context == NULL)
            continue;
        attend(context, &narrow, 0, ROWS, to);
        assert_same_bits(to, expected, outputs);
        for (int r = 0; r < ROWS; r++) {
            attend(context, &narrow, r, 1, to);
            assert_same_bits(to, expected + (size_t)r * row_floats(&wide), row_floats(&wide));
        }
        backend_cpu.close(context);
    }
    free(expected);
    free(to);
    free(narrow.cache.keys);
    free(narrow.cache.values);
    step_release(&wide);
}

static void check_bf16(int heads, int kv_heads, int head_dim, int base)
{
    check_narrow(DTYPE_BF16, heads, kv_heads, head_dim, base);
}

static void check_e4m3(int heads, int kv_heads, int head_dim, int base)
{
    check_narrow(DTYPE_E4M3, heads, kv_heads, head_dim, base);
}

/* Heads, heads of keys, dimensions of a head, and places before the step. */
static void check_shapes(void (*check)(int heads, int kv_heads, int head_dim, int base))
{
    static const int dims[] = {8, 24, 32, 64, 128, 80};

    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        check(6, 2, dims[i], 37);
        check(2, 2, dims[i], 128);
    }
    check(5, 1, 32, 0);
    check(9, 1, 16, 160);
    check(16, 2, 32, 1);
    check(4, 4, 2, 16);
    check(9, 3, 64, 330); /* blocks of 24 queries and of 3, two strips of places, the last one not whole */
    check(7, 1, 128, 250);
    check(4, 1, 64, 330); /* groups of 4, 5 and 6 queries and of 1, 2 and 3 over two strips */
    check(5, 1, 64, 330);
    check(2, 1, 72, 330);
}

static void test_attend__a_cache_of_fewer_bits_is_float32_of_rounded_numbers(void **state)
{
    (void)state;
    check_shapes(check_bf16);
    check_shapes(check_e4m3);
    check_bf16(6, 2, 250, 37);
    check_bf16(2, 2, 250, 128);
    check_e4m3(6, 2, 250, 37);
}

/* In a cache of bytes, on each instruction set: dimension 5 of the values of place 0, which all rows see. */
static void test_attend__a_byte_that_is_no_number_is_told_where_it_is_seen(void **state)
{
    enum { HEADS = 4, DIM = 40 };
    struct step wide, narrow;
    size_t count;
    float *to;

    (void)state;
    step_init(&wide, HEADS, 2, DIM, 50);
    count = cache_floats(&wide.shape);
    for (int slot = 0; slot < SLOTS; slot++)
        for (int h = 0; h < wide.shape.kv_heads; h++)
            *value_at(&wide, slot, h, 0, 5) = slot == 0 ? NAN : -NAN;
    to = zeroed(ROWS * row_floats(&wide), sizeof *to);
    narrow = wide;
    narrow.cache = (struct cache_layer){DTYPE_E4M3, narrowed(DTYPE_E4M3, wide.cache.keys, count), narrowed(DTYPE_E4M3, wide.cache.values, count)};
    for (int i = 0; i < RIGS; i++) {
        struct backend_context *context = rig_open(i);

        if (context == NULL)
            continue;
        attend(context, &narrow, 0, ROWS, to);
        for (size_t k = 0; k < ROWS * row_floats(&wide); k++)
            assert_int_equal(isnan(to[k]) != 0, k % DIM == 5);
        backend_cpu.close(context);
    }
    free(to);
    free(narrow.cache.keys);
    free(narrow.cache.values);
    step_release(&wide);
}

static void test_attend__matches_naive_with_the_same_bits_everywhere(void **state)
{
    (void)state;
    check_shapes(check_shape);
}

/* NaN in the places of the other branch: seen by other rows of the step, not by this one. */
static void test_attend__what_a_row_does_not_see_does_not_matter_to_it(void **state)
{
    struct step step;
    float *before, *after;

    (void)state;
    step_init(&step, 4, 2, 32, 50);
    before = zeroed(ROWS * row_floats(&step), sizeof *before);
    after = zeroed(ROWS * row_floats(&step), sizeof *after);
    step.ancestors[8] = 0x101; /* the base, its first row and itself */
    for (int i = 0; i < RIGS; i += 3) {
        struct backend_context *context = rig_open(i);

        if (context == NULL)
            continue;
        attend(context, &step, 0, ROWS, before);
        for (int h = 0; h < 2; h++)
            for (int d = 0; d < 32; d++)
                *key_at(&step, 0, h, 53, d) = *value_at(&step, 0, h, 53, d) = NAN;
        attend(context, &step, 0, ROWS, after);
        assert_same_bits(after + 8 * row_floats(&step), before + 8 * row_floats(&step), row_floats(&step));
        assert_same_bits(after + 9 * row_floats(&step), before + 9 * row_floats(&step), 8 * row_floats(&step));
        for (int h = 0; h < 2; h++)
            for (int d = 0; d < 32; d++)
                *key_at(&step, 0, h, 53, d) = *value_at(&step, 0, h, 53, d) = 0.5f;
        backend_cpu.close(context);
    }
    free(before);
    free(after);
    step_release(&step);
}

/* A branch of a tree leaves gaps between the places of its tokens; the result is that of the chain without gaps. */
static void test_attend__gaps_of_a_tree_change_no_bits(void **state)
{
    struct step step;
    struct backend_context *context = rig_open(0);
    float chain[4 * 32], tree[4 * 32];

    (void)state;
    step_init(&step, 4, 2, 32, 45);
    step.base[0] = 45;
    step.ancestors[0] = 0x7;
    attend(context, &step, 0, 1, chain);
    for (int h = 0; h < 2; h++)
        for (int d = 0; d < 32; d++) {
            *key_at(&step, 0, h, 45 + 40, d) = *key_at(&step, 0, h, 47, d);
            *key_at(&step, 0, h, 45 + 9, d) = *key_at(&step, 0, h, 46, d);
            *value_at(&step, 0, h, 45 + 40, d) = *value_at(&step, 0, h, 47, d);
            *value_at(&step, 0, h, 45 + 9, d) = *value_at(&step, 0, h, 46, d);
        }
    step.ancestors[0] = UINT64_C(1) | UINT64_C(1) << 9 | UINT64_C(1) << 40;
    attend(context, &step, 0, 1, tree);
    assert_same_bits(tree, chain, 4 * 32);
    step_release(&step);
    backend_cpu.close(context);
}

/* Key or value number d of a place. */
static size_t number_at(const struct layer_shape *shape, int is_key, int slot, int h, int place, int d)
{
    size_t head = (size_t)(slot * shape->kv_heads + h) * (size_t)(shape->context * shape->head_dim);

    return head + (size_t)(is_key ? (place / 16 * shape->head_dim + d) * 16 + place % 16 : place * shape->head_dim + d);
}

/* Places are copied number by number on the one side, by the backend on the other, from the same caches. */
static void check_copy(struct backend_context *context, enum dtype dtype, int head_dim, struct cache_place from, struct cache_place to, int count)
{
    const struct layer_shape shape = {.heads = 6, .kv_heads = 3, .head_dim = head_dim, .context = CONTEXT};
    size_t bytes = dtype_bytes(dtype), all = (size_t)(3 * shape.kv_heads * CONTEXT * head_dim);
    char *expected[2] = {zeroed(all, bytes), zeroed(all, bytes)};
    struct cache_layer cache = {dtype, zeroed(all, bytes), zeroed(all, bytes)};
    void *found[2] = {cache.keys, cache.values};
    struct random random = {.state = (uint32_t)(from.place * 1000 + count)};

    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < all * bytes; i++)
            expected[side][i] = (char)random_word(&random);
        memcpy(found[side], expected[side], all * bytes);
        for (int n = 0; n < count; n++)
            for (int i = 0; i < shape.kv_heads * head_dim; i++)
                memcpy(expected[side] + number_at(&shape, side == 0, to.slot, i / head_dim, to.place + n, i % head_dim) * bytes,
                       expected[side] + number_at(&shape, side == 0, from.slot, i / head_dim, from.place + n, i % head_dim) * bytes, bytes);
    }
    backend_cpu.cache.copy(context, &shape, &cache, from, to, count);
    for (int side = 0; side < 2; side++) {
        assert_memory_equal(found[side], expected[side], all * bytes);
        free(expected[side]);
        free(found[side]);
    }
}

/* Within a tile, over its edges, whole tiles, nothing, and the whole slot; to a later slot, to an earlier one, and within one to other places. */
static void test_cache_copy__moves_the_places_and_nothing_else(void **state)
{
    static const int ranges[][2] = {{0, CONTEXT}, {0, 16}, {0, 1}, {3, 9}, {15, 2}, {5, 11}, {16, 32}, {7, 100}, {30, 35}, {CONTEXT - 1, 1}, {4, 0}};
    static const int moves[][3] = {{21, 17, 4}, {31, 14, 3}, {40, 3, 33}, {3, 40, 33}, {64, 16, 32}, {CONTEXT - 5, 0, 5}};

    (void)state;
    for (int i = 0; i < RIGS; i++) {
        struct backend_context *context = rig_open(i);

        if (context == NULL)
            continue;
        for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
            check_copy(context, DTYPE_F32, 24, (struct cache_place){0, ranges[r][0]}, (struct cache_place){2, ranges[r][0]}, ranges[r][1]);
            check_copy(context, DTYPE_BF16, 10, (struct cache_place){2, ranges[r][0]}, (struct cache_place){1, ranges[r][0]}, ranges[r][1]);
        }
        for (size_t m = 0; m < sizeof moves / sizeof *moves; m++) {
            check_copy(context, DTYPE_F32, 24, (struct cache_place){1, moves[m][0]}, (struct cache_place){1, moves[m][1]}, moves[m][2]);
            check_copy(context, DTYPE_BF16, 10, (struct cache_place){0, moves[m][0]}, (struct cache_place){2, moves[m][1]}, moves[m][2]);
            check_copy(context, DTYPE_E4M3, 6, (struct cache_place){1, moves[m][0]}, (struct cache_place){2, moves[m][1]}, moves[m][2]);
        }
        backend_cpu.close(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attend__matches_naive_with_the_same_bits_everywhere),
        cmocka_unit_test(test_attend__a_cache_of_fewer_bits_is_float32_of_rounded_numbers),
        cmocka_unit_test(test_attend__a_byte_that_is_no_number_is_told_where_it_is_seen),
        cmocka_unit_test(test_attend__what_a_row_does_not_see_does_not_matter_to_it),
        cmocka_unit_test(test_attend__gaps_of_a_tree_change_no_bits),
        cmocka_unit_test(test_cache_copy__moves_the_places_and_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
