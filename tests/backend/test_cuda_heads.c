/* The heads of q, k and v on their way to the cache, and the small kernels, against the CPU's loops. Where there is no norm every bit is
 * the CPU's; a norm adds its squares in another order. */
#include "tests/backend/cuda_rig.h"
#include "tests/backend/device_rig.h"
#include "tests/support/e4m3.h"

#include "common/backend/cpu/kernel/table.h"
#include "common/backend/cpu/kernels.h"
#include "common/backend/cuda/kernels.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 3, CONTEXT = 48, ROWS = 11 };

/* A layer's heads as they come from the product, and where they go. */
struct heads {
    int heads, kv_heads, dim, all;
    int is_e4m3; /* the cache; else it is bfloat16 */
    float *qkv, *bias, *q_norm, *k_norm, *cosine, *sine;
    int32_t position[ROWS], slot[ROWS], place[ROWS];
    const float *with_bias, *with_q_norm, *with_k_norm; /* NULL where the layer has none */
};

struct outcome {
    float *q;                /* [ROWS][heads][dim] */
    uint16_t *keys, *values; /* [SLOTS][kv_heads][CONTEXT][dim], or as many bytes of E4M3; all ones where nothing was written */
};

static const float eps = 1e-5f;

static float *random_array(struct random *random, size_t count)
{
    float *array = zeroed(count, sizeof *array);

    random_floats(random, array, count);
    return array;
}

static void heads_init(struct heads *heads, int count, int kv_heads, int dim, int decorated)
{
    struct random random = {.state = (uint32_t)(count * 77 + dim)};
    size_t one = (size_t)dim;

    *heads = (struct heads){.heads = count, .kv_heads = kv_heads, .dim = dim, .all = count + 2 * kv_heads};
    heads->qkv = random_array(&random, (size_t)(ROWS * heads->all) * one);
    heads->bias = random_array(&random, (size_t)heads->all * one);
    heads->q_norm = random_array(&random, one);
    heads->k_norm = random_array(&random, one);
    heads->cosine = random_array(&random, CONTEXT * one / 2);
    heads->sine = random_array(&random, CONTEXT * one / 2);
    if (decorated) {
        heads->with_bias = heads->bias;
        heads->with_q_norm = heads->q_norm;
        heads->with_k_norm = heads->k_norm;
    }
    for (int r = 0; r < ROWS; r++) {
        heads->slot[r] = r * 2 % SLOTS;
        heads->place[r] = 3 + r * 4;
        heads->position[r] = (r * 7 + 2) % CONTEXT;
    }
}

static void heads_release(struct heads *heads)
{
    free(heads->qkv);
    free(heads->bias);
    free(heads->q_norm);
    free(heads->k_norm);
    free(heads->cosine);
    free(heads->sine);
}

static size_t q_count(const struct heads *heads)
{
    return (size_t)(ROWS * heads->heads * heads->dim);
}

static size_t cache_count(const struct heads *heads)
{
    return (size_t)(SLOTS * heads->kv_heads * CONTEXT * heads->dim);
}

static void outcome_init(struct outcome *outcome, const struct heads *heads)
{
    outcome->q = zeroed(q_count(heads), sizeof(float));
    outcome->keys = zeroed(cache_count(heads), sizeof(uint16_t));
    outcome->values = zeroed(cache_count(heads), sizeof(uint16_t));
    memset(outcome->q, 0xff, q_count(heads) * sizeof(float));
    memset(outcome->keys, 0xff, cache_count(heads) * sizeof(uint16_t));
    memset(outcome->values, 0xff, cache_count(heads) * sizeof(uint16_t));
}

static void outcome_release(struct outcome *outcome)
{
    free(outcome->q);
    free(outcome->keys);
    free(outcome->values);
}

/* Rows first .. first + count - 1 on the device, into the outcome. */
static void run(const struct heads *heads, int first, int count, struct outcome *outcome)
{
    size_t dim = (size_t)heads->dim, row = (size_t)heads->all * dim, q_row = (size_t)heads->heads * dim;
    size_t norm = dim * sizeof(float), table = CONTEXT * dim / 2 * sizeof(float), cache = cache_count(heads) * sizeof(uint16_t);
    size_t rows = (size_t)count * sizeof(int32_t);
    void *given[] = {device_put(heads->qkv + (size_t)first * row, (size_t)count * row * sizeof(float)),
                     device_put(heads->position + first, rows),
                     device_put(heads->slot + first, rows),
                     device_put(heads->place + first, rows),
                     device_put(heads->bias, row * sizeof(float)),
                     device_put(heads->q_norm, norm),
                     device_put(heads->k_norm, norm),
                     device_put(heads->cosine, table),
                     device_put(heads->sine, table),
                     device_put(outcome->keys, cache),
                     device_put(outcome->values, cache),
                     device_blank((size_t)count * q_row * sizeof(float))};
    struct heads_launch launch = {.rows = {.count = count, .position = given[1], .slot = given[2], .place = given[3]},
                                  .cache = {.keys = given[9],
                                            .values = given[10],
                                            .is_e4m3 = heads->is_e4m3,
                                            .heads = heads->heads,
                                            .kv_heads = heads->kv_heads,
                                            .head_dim = heads->dim,
                                            .context = CONTEXT},
                                  .qkv = given[0],
                                  .bias = heads->with_bias != NULL ? given[4] : NULL,
                                  .q_norm = heads->with_q_norm != NULL ? given[5] : NULL,
                                  .k_norm = heads->with_k_norm != NULL ? given[6] : NULL,
                                  .norm_eps = eps,
                                  .cosine = given[7],
                                  .sine = given[8],
                                  .q = given[11],
                                  .overlaps = device_overlaps(device_rig_open())};

    heads_start(&launch, device_stream(device_rig_open()));
    device_launched(device_rig_open(), "heads");
    device_get(outcome->q + (size_t)first * q_row, launch.q, (size_t)count * q_row * sizeof(float));
    device_get(outcome->keys, launch.cache.keys, cache);
    device_get(outcome->values, launch.cache.values, cache);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        device_free(given[i]);
}

/* The CPU's way with head h of a row. head: [dim] */
static void expect(const struct heads *heads, int row, int h, float *head)
{
    const struct kernels *kernels = kernels_find("scalar");
    int half = heads->dim / 2, is_query = h < heads->heads, is_key = !is_query && h < heads->heads + heads->kv_heads;
    const float *norm = is_query ? heads->with_q_norm : is_key ? heads->with_k_norm : NULL;

    memcpy(head, heads->qkv + (row * heads->all + h) * heads->dim, (size_t)heads->dim * sizeof *head);
    if (heads->with_bias != NULL)
        kernels->add(head, heads->bias + h * heads->dim, (size_t)heads->dim);
    if (norm != NULL)
        kernels->norm(head, norm, heads->dim, eps, head);
    if (is_query || is_key)
        kernels->rope(head, heads->cosine + heads->position[row] * half, heads->sine + heads->position[row] * half, half,
                      is_query ? 1.0f / sqrtf((float)heads->dim) : 1.0f);
}

/* How far a number of head h may be from the CPU's. A sum of squares of n terms, none negative, errs by n / 2 units of 2^-23 at most on
 * either side, the scale by half of that and 3 more, and the turn keeps it in parts of |a c| + |b s|, which is no more than the size of
 * what the pair becomes. A head without a norm has the CPU's bits. */
static double allowed(const struct heads *heads, int h, double x, double other)
{
    if (heads->with_q_norm == NULL || h >= heads->heads + heads->kv_heads)
        return 0;
    return hypot(x, other) * (heads->dim / 2 + 4) * 0x1p-23;
}

static void check(const struct heads *heads, float got, float expected, double bound)
{
    if (!(fabs((double)got - (double)expected) <= bound))
        fail_msg("heads of %d: %a is not %a, within %a", heads->dim, (double)got, (double)expected, bound);
}

static void check_row(const struct heads *heads, int row, const struct outcome *outcome)
{
    float head[256];

    for (int h = 0; h < heads->all; h++) {
        int kv = (h - heads->heads) % heads->kv_heads, dim = heads->dim;
        size_t place = (size_t)(((heads->slot[row] * heads->kv_heads + kv) * CONTEXT + heads->place[row]) * dim);
        const uint16_t *stored = h < heads->heads + heads->kv_heads ? outcome->keys : outcome->values;

        expect(heads, row, h, head);
        for (int d = 0; d < dim; d++) {
            double bound = allowed(heads, h, (double)head[d], (double)head[(d + dim / 2) % dim]);

            if (h < heads->heads)
                check(heads, outcome->q[(row * heads->heads + h) * dim + d], head[d], bound);
            else if (heads->is_e4m3)
                check(heads, e4m3_wide(((const uint8_t *)stored)[place + (size_t)d]), e4m3_wide(e4m3_nearest(head[d])),
                      bound > 0 ? bound + fmax(fabs((double)head[d]) * 0x1p-3, 0x1p-9) : 0);
            else /* half a unit of bfloat16 more, on either side, where the two may round apart */
                check(heads, bf16_wide(stored[place + (size_t)d]), bf16_wide(bf16_of(head[d])),
                      bound > 0 ? bound + fabs((double)head[d]) * 0x1p-7 : 0);
        }
    }
}

/* Where no row was written nothing has changed. */
static void check_rest(const struct heads *heads, const struct outcome *outcome)
{
    for (int slot = 0; slot < SLOTS; slot++)
        for (int place = 0; place < CONTEXT; place++) {
            int written = 0;

            for (int r = 0; r < ROWS; r++)
                written |= heads->slot[r] == slot && heads->place[r] == place;
            for (int i = 0; i < heads->kv_heads * heads->dim && !written; i++) {
                size_t at = (size_t)(((slot * heads->kv_heads + i / heads->dim) * CONTEXT + place) * heads->dim + i % heads->dim);

                assert_int_equal(heads->is_e4m3 ? ((uint8_t *)outcome->keys)[at] | 0xff00 : outcome->keys[at], 0xffff);
                assert_int_equal(heads->is_e4m3 ? ((uint8_t *)outcome->values)[at] | 0xff00 : outcome->values[at], 0xffff);
            }
        }
}

/* A cache of bytes lies in memory for twice as many. */
static void check_behind(const struct heads *heads, const struct outcome *outcome)
{
    for (size_t i = cache_count(heads); heads->is_e4m3 && i < 2 * cache_count(heads); i++) {
        assert_int_equal(((uint8_t *)outcome->keys)[i], 0xff);
        assert_int_equal(((uint8_t *)outcome->values)[i], 0xff);
    }
}

static void check_cache(int count, int kv_heads, int dim, int decorated, int is_e4m3)
{
    struct heads heads;
    struct outcome together, apart;

    heads_init(&heads, count, kv_heads, dim, decorated);
    heads.is_e4m3 = is_e4m3;
    for (int i = 0; is_e4m3 && !decorated && i < ROWS * heads.all * dim; i++)
        if (i / dim % heads.all >= heads.heads + heads.kv_heads && i % 3 == 0)
            heads.qkv[i] = ldexpf(8 + (float)(i % 16) / 2, i % 12 - 8); /* values between two numbers */
        else
            heads.qkv[i] = ldexpf(heads.qkv[i], i % 26 - 12); /* also subnormal, and too large */
    outcome_init(&together, &heads);
    run(&heads, 0, ROWS, &together);
    for (int r = 0; r < ROWS; r++)
        check_row(&heads, r, &together);
    check_rest(&heads, &together);
    check_behind(&heads, &together);
    for (unsigned seed = 1; seed < 4; seed++) {
        device_rig_order(seed);
        outcome_init(&apart, &heads);
        for (int r = 0; r < ROWS; r++)
            run(&heads, r, 1, &apart);
        assert_memory_equal(apart.q, together.q, q_count(&heads) * sizeof(float));
        assert_memory_equal(apart.keys, together.keys, cache_count(&heads) * sizeof(uint16_t));
        assert_memory_equal(apart.values, together.values, cache_count(&heads) * sizeof(uint16_t));
        outcome_release(&apart);
    }
    device_rig_order(0);
    outcome_release(&together);
    heads_release(&heads);
}

static void check_heads(int count, int kv_heads, int dim, int decorated)
{
    check_cache(count, kv_heads, dim, decorated, 0);
    check_cache(count, kv_heads, dim, decorated, 1);
}

static void test_cuda_heads__have_the_bits_of_the_cpu_without_norms(void **state)
{
    (void)state;
    check_heads(4, 2, 64, 0);
    check_heads(9, 3, 18, 0);
    check_heads(1, 1, 256, 0);
}

static void test_cuda_heads__match_the_cpu_with_bias_and_norms(void **state)
{
    (void)state;
    check_heads(4, 2, 128, 1);
    check_heads(9, 3, 64, 1);
    check_heads(3, 1, 22, 1);
    check_heads(2, 2, 250, 1);
}

static void test_cuda_step__picks_rows_and_adds(void **state)
{
    enum { HIDDEN = 515 };
    struct random random = {.state = 5};
    float *x = random_array(&random, ROWS * HIDDEN), *sum = random_array(&random, ROWS * HIDDEN), picked[3 * HIDDEN], added[ROWS * HIDDEN];
    const int32_t asked[] = {7, 0, 10};
    void *given[] = {device_put(x, ROWS * HIDDEN * sizeof *x), device_put(sum, ROWS * HIDDEN * sizeof *sum),
                     device_put(asked, sizeof asked), device_blank(sizeof picked)};

    (void)state;
    pick_start(given[2], 3, HIDDEN, given[0], given[3], device_stream(device_rig_open()));
    add_start(given[0], given[1], ROWS * HIDDEN - 1, device_overlaps(device_rig_open()), device_stream(device_rig_open()));
    device_launched(device_rig_open(), "pick and add");
    device_get(picked, given[3], sizeof picked);
    device_get(added, given[0], sizeof added);
    for (int i = 0; i < 3; i++)
        assert_same_bits(picked + i * HIDDEN, x + asked[i] * HIDDEN, HIDDEN);
    for (int i = 0; i < ROWS * HIDDEN - 1; i++)
        x[i] += sum[i];
    assert_same_bits(added, x, ROWS * HIDDEN); /* the last one was not asked for */
    for (int i = 0; i < 4; i++)
        device_free(given[i]);
    free(x);
    free(sum);
}

/* Places of a cache by the backend, against a copy of two bytes at a time. */
static void check_copy_of(enum dtype dtype, struct cache_place from, struct cache_place to, int count)
{
    const struct layer_shape shape = {.heads = 4, .kv_heads = 2, .head_dim = 52 / (int)dtype_bytes(dtype), .context = CONTEXT};
    size_t dim = 26, head = CONTEXT * dim, slot = (size_t)shape.kv_heads * head, all = SLOTS * slot;
    uint16_t *expected = zeroed(all, sizeof *expected), *found = zeroed(all, sizeof *found);
    struct random random = {.state = (uint32_t)(from.place + count)};
    struct cuda_rig rig;

    for (size_t i = 0; i < all; i++)
        expected[i] = (uint16_t)random_word(&random);
    cuda_rig_open(&rig, 64, 208, CONTEXT, 0);

    struct cache_layer cache = {dtype, cuda_rig_put(&rig, (float *)(void *)expected, all / 2),
                                cuda_rig_put(&rig, (float *)(void *)expected, all / 2)};

    backend_cuda.cache.copy(rig.cuda, &shape, &cache, from, to, count);
    for (int h = 0; h < shape.kv_heads; h++)
        for (size_t i = 0; i < (size_t)count * dim; i++)
            expected[(size_t)to.slot * slot + (size_t)h * head + (size_t)to.place * dim + i] =
                expected[(size_t)from.slot * slot + (size_t)h * head + (size_t)from.place * dim + i];
    for (int side = 0; side < 2; side++) {
        cuda_rig_get(&rig, side == 0 ? cache.keys : cache.values, (float *)(void *)found, all / 2);
        assert_memory_equal(found, expected, all * sizeof *found);
    }
    free(expected);
    free(found);
    cuda_rig_close(&rig);
}

static void check_copy(struct cache_place from, struct cache_place to, int count)
{
    check_copy_of(DTYPE_BF16, from, to, count);
    check_copy_of(DTYPE_E4M3, from, to, count);
}

static void test_cuda_cache_copy__moves_the_places_and_nothing_else(void **state)
{
    (void)state;
    check_copy((struct cache_place){0, 0}, (struct cache_place){2, 0}, CONTEXT);
    check_copy((struct cache_place){2, 0}, (struct cache_place){1, 0}, 1);
    check_copy((struct cache_place){1, 7}, (struct cache_place){0, 7}, 30);
    check_copy((struct cache_place){1, CONTEXT - 1}, (struct cache_place){2, CONTEXT - 1}, 1);
    check_copy((struct cache_place){0, 5}, (struct cache_place){1, 5}, 0);
    check_copy((struct cache_place){1, 20}, (struct cache_place){1, 16}, 4);
    check_copy((struct cache_place){1, 31}, (struct cache_place){2, 3}, 9);
}

enum { HIDDEN = 72 };

/* What attend_in gives for all rows by the layer's shape and weights: q, keys and values, of the sizes that `whole` has them in, NaN where nothing
 * is written. Returns what is to be freed. */
static float *attend_in(const struct heads *heads, const struct layer_shape *shape, struct weights weights, const float *bias, const float *x)
{
    struct heads placed = *heads;
    int32_t zeros[ROWS] = {0};
    uint64_t ancestors[ROWS] = {0};
    const struct rows rows = {ROWS, zeros, placed.position, placed.slot, placed.place, zeros, ancestors};
    size_t dim = (size_t)heads->dim, q = q_count(heads), side = cache_count(heads) / 2, table = CONTEXT * dim / 2;
    float *found = zeroed(q + 2 * side, sizeof *found);
    struct cuda_pair pair;
    struct cuda_rig rig;

    cuda_rig_open(&rig, HIDDEN, heads->all * heads->dim, CONTEXT, 0);
    cuda_rig_pack(&rig, &weights, 0, HIDDEN, &pair);

    float *device_q = cuda_rig_put(&rig, NULL, q), *device_x = cuda_rig_put(&rig, x, ROWS * HIDDEN);
    struct cache_layer cache = {DTYPE_BF16, cuda_rig_put(&rig, NULL, side), cuda_rig_put(&rig, NULL, side)};
    struct layer_weights layer = {.attn_norm = cuda_rig_put(&rig, x, HIDDEN),
                                  .qkv = pair.cuda,
                                  .qkv_bias = cuda_rig_put(&rig, bias, (size_t)weights.outputs),
                                  .q_norm = cuda_rig_put(&rig, heads->q_norm, dim),
                                  .k_norm = cuda_rig_put(&rig, heads->k_norm, dim)};

    backend_cuda.step.embed(rig.cuda, &rows, NULL, 0, DTYPE_F32, x, HIDDEN, cuda_rig_put(&rig, NULL, ROWS * HIDDEN)); /* which sends the rows */
    backend_cuda.layer.attend_in(rig.cuda, shape, &layer, &rows, device_x, cuda_rig_put(&rig, heads->cosine, table),
                           cuda_rig_put(&rig, heads->sine, table), &cache, device_q);
    cuda_rig_get(&rig, device_q, found, q);
    cuda_rig_get(&rig, cache.keys, found + q, side);
    cuda_rig_get(&rig, cache.values, found + q + side, side);
    arena_close(&pair.arena);
    cuda_rig_close(&rig);
    return found;
}

/* As cross-attention would: q alone, and k and v alone, each from a matrix of its own, have the bits of all at once, and nothing else is written. */
static void check_parts(int count, int kv_heads, int dim)
{
    struct random random = {.state = 9};
    struct layer_shape shape = {.hidden = HIDDEN, .heads = count, .kv_heads = kv_heads, .head_dim = dim, .context = CONTEXT, .norm_eps = eps};
    struct layer_shape queries = shape, keys = shape;
    float *x = random_array(&random, ROWS * HIDDEN), *whole, *q, *kv, nothing = NAN;
    struct weights weights, of_q, of_kv;
    struct heads heads;

    heads_init(&heads, count, kv_heads, dim, 1);
    weights_init(&weights, &random, DTYPE_BF16, heads.all * dim, HIDDEN);
    of_q = of_kv = weights;
    of_q.outputs = count * dim;
    of_kv.outputs = 2 * kv_heads * dim;
    of_kv.data = (uint16_t *)weights.data + count * dim * HIDDEN;
    queries.kv_heads = keys.heads = 0;
    whole = attend_in(&heads, &shape, weights, heads.bias, x);
    q = attend_in(&heads, &queries, of_q, heads.bias, x);
    kv = attend_in(&heads, &keys, of_kv, heads.bias + count * dim, x);
    assert_same_bits(q, whole, q_count(&heads));
    assert_same_bits(kv + q_count(&heads), whole + q_count(&heads), cache_count(&heads));
    for (size_t i = 0; i < cache_count(&heads); i++)
        assert_same_bits(q + q_count(&heads) + i, &nothing, 1);
    for (size_t i = 0; i < q_count(&heads); i++)
        assert_same_bits(kv + i, &nothing, 1);
    heads_release(&heads);
    weights_release(&weights);
    free(x);
    free(whole);
    free(q);
    free(kv);
}

static void test_cuda_attend_in__has_the_same_bits_part_by_part(void **state)
{
    (void)state;
    check_parts(4, 2, 64);
    check_parts(9, 3, 18);
    check_parts(3, 1, 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_heads__have_the_bits_of_the_cpu_without_norms),
        cmocka_unit_test(test_cuda_heads__match_the_cpu_with_bias_and_norms),
        cmocka_unit_test(test_cuda_attend_in__has_the_same_bits_part_by_part),
        cmocka_unit_test(test_cuda_cache_copy__moves_the_places_and_nothing_else),
        cmocka_unit_test(test_cuda_step__picks_rows_and_adds),
    };

    device_rig_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
