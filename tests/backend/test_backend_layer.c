#include "tests/backend/rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 70, SLOTS = 2, CONTEXT = 48, HIDDEN = 43 };

/* A small layer with all that a model may have, and a step of 35 rows in each of two slots. */
struct layer {
    struct layer_shape shape;
    struct layer_weights weights;
    struct weights qkv, gate_up;
    float *norm, *bias, *q_norm, *k_norm, *cosine, *sine, *x;
    struct rows rows;
    int32_t position[ROWS], slot[ROWS], place[ROWS], base[ROWS];
    uint64_t ancestors[ROWS];
};

static float *random_array(struct random *random, size_t count)
{
    float *array = zeroed(count, sizeof *array);

    random_floats(random, array, count);
    return array;
}

static int heads_all(const struct layer_shape *shape)
{
    return shape->heads + 2 * shape->kv_heads;
}

static void layer_init(struct layer *layer, int heads, int kv_heads, int head_dim, int ffn, int decorated)
{
    struct random random = {.state = (uint32_t)(head_dim * 31 + ffn)};
    size_t dim = (size_t)head_dim;

    *layer = (struct layer){.shape = {.hidden = HIDDEN,
                                      .heads = heads,
                                      .kv_heads = kv_heads,
                                      .head_dim = head_dim,
                                      .ffn = ffn,
                                      .context = CONTEXT,
                                      .norm_eps = 1e-5f}};
    weights_init(&layer->qkv, &random, DTYPE_BF16, heads_all(&layer->shape) * head_dim, HIDDEN);
    weights_init(&layer->gate_up, &random, DTYPE_BF16, (ffn + 15) / 16 * 32, HIDDEN);
    layer->norm = random_array(&random, HIDDEN);
    layer->bias = random_array(&random, (size_t)heads_all(&layer->shape) * dim);
    layer->q_norm = random_array(&random, dim);
    layer->k_norm = random_array(&random, dim);
    layer->cosine = random_array(&random, CONTEXT * dim / 2);
    layer->sine = random_array(&random, CONTEXT * dim / 2);
    layer->x = random_array(&random, (size_t)ROWS * HIDDEN);
    layer->weights = (struct layer_weights){.attn_norm = layer->norm, .mlp_norm = layer->norm};
    if (decorated) {
        layer->weights.qkv_bias = layer->bias;
        layer->weights.q_norm = layer->q_norm;
        layer->weights.k_norm = layer->k_norm;
    }
    layer->rows = (struct rows){.count = ROWS,
                                .position = layer->position,
                                .slot = layer->slot,
                                .place = layer->place,
                                .base = layer->base,
                                .ancestors = layer->ancestors};
    for (int r = 0; r < ROWS; r++) {
        layer->slot[r] = r % 2;
        layer->place[r] = 7 + r / 2;
        layer->position[r] = (r * 5 + 3) % CONTEXT;
    }
}

static void layer_release(struct layer *layer)
{
    weights_release(&layer->qkv);
    weights_release(&layer->gate_up);
    free(layer->norm);
    free(layer->bias);
    free(layer->q_norm);
    free(layer->k_norm);
    free(layer->cosine);
    free(layer->sine);
    free(layer->x);
}

static void naive_norm(double *x, const float *weight, int count)
{
    double squares = 0, scale;

    for (int i = 0; i < count; i++)
        squares += x[i] * x[i];
    scale = 1 / sqrt(squares / count + 1e-5);
    for (int i = 0; i < count; i++)
        x[i] *= scale * (double)weight[i];
}

static void naive_linear(const struct weights *weights, const float *norm, const float *x, double *to /* [outputs] */)
{
    double normed[HIDDEN];

    for (int k = 0; k < HIDDEN; k++)
        normed[k] = (double)x[k];
    naive_norm(normed, norm, HIDDEN);
    for (int o = 0; o < weights->outputs; o++) {
        to[o] = 0;
        for (int k = 0; k < HIDDEN; k++)
            to[o] += (double)weights->wide[o * HIDDEN + k] * normed[k];
    }
}

/* q, k and v of one row as they should be, in a line. to: [heads + 2 kv_heads][head_dim] */
static void naive_qkv(const struct layer *layer, int row, double *to)
{
    const struct layer_shape *shape = &layer->shape;
    int dim = shape->head_dim, half = dim / 2;

    naive_linear(&layer->qkv, layer->norm, layer->x + row * HIDDEN, to);
    for (int h = 0; h < heads_all(shape); h++) {
        double *head = to + h * dim;
        const float *norm = h < shape->heads ? layer->weights.q_norm : layer->weights.k_norm;

        for (int d = 0; d < dim && layer->weights.qkv_bias != NULL; d++)
            head[d] += (double)layer->bias[h * dim + d];
        if (h >= shape->heads + shape->kv_heads)
            continue;
        if (norm != NULL)
            naive_norm(head, norm, dim);
        for (int d = 0; d < half; d++) {
            double c = (double)layer->cosine[layer->position[row] * half + d], s = (double)layer->sine[layer->position[row] * half + d];
            double a = head[d], b = head[half + d], scale = h < shape->heads ? 1 / sqrt(dim) : 1;

            head[d] = (a * c - b * s) * scale;
            head[half + d] = (b * c + a * s) * scale;
        }
    }
}

struct outcome {
    float *q;
    struct cache_layer cache;
    size_t q_count, cache_count;
};

static void outcome_init(struct outcome *outcome, const struct layer_shape *shape, enum dtype dtype)
{
    outcome->q_count = (size_t)(ROWS * shape->heads * shape->head_dim);
    outcome->cache_count = (size_t)(SLOTS * shape->kv_heads * CONTEXT * shape->head_dim);
    outcome->q = zeroed(outcome->q_count, sizeof(float));
    outcome->cache.dtype = dtype;
    outcome->cache.keys = zeroed(outcome->cache_count, dtype_bytes(dtype));
    outcome->cache.values = zeroed(outcome->cache_count, dtype_bytes(dtype));
}

static void outcome_release(struct outcome *outcome)
{
    free(outcome->q);
    free(outcome->cache.keys);
    free(outcome->cache.values);
}

static void check_outcome(const struct layer *layer, const struct outcome *outcome)
{
    const struct layer_shape *shape = &layer->shape;
    int dim = shape->head_dim;
    double expected[RIG_QKV];

    for (int r = 0; r < ROWS; r++) {
        naive_qkv(layer, r, expected);
        assert_close(outcome->q + r * shape->heads * dim, expected, (size_t)(shape->heads * dim), 1e-4, 1e-5);
        for (int h = 0; h < shape->kv_heads; h++)
            for (int d = 0; d < dim; d++) {
                size_t head = (size_t)((layer->slot[r] * shape->kv_heads + h) * CONTEXT * dim);
                int place = layer->place[r];

                assert_close((float *)outcome->cache.keys + head + place / 16 * 16 * dim + d * 16 + place % 16,
                             expected + (shape->heads + h) * dim + d, 1, 1e-4, 1e-5);
                assert_close((float *)outcome->cache.values + head + place * dim + d, expected + (shape->heads + shape->kv_heads + h) * dim + d, 1,
                             1e-4, 1e-5);
            }
    }
}

static void attend_in(struct layer *layer, struct backend_context *context, int first, int count, struct outcome *outcome)
{
    struct rows rows = {.count = count, .position = layer->position + first, .slot = layer->slot + first, .place = layer->place + first};

    backend_cpu.layer.attend_in(context, &layer->shape, &layer->weights, &rows, layer->x + first * HIDDEN, layer->cosine, layer->sine,
                          &outcome->cache, outcome->q + first * layer->shape.heads * layer->shape.head_dim);
}

static void assert_same_outcome(const struct outcome *a, const struct outcome *b)
{
    assert_same_bits(a->q, b->q, a->q_count);
    assert_same_bits(a->cache.keys, b->cache.keys, a->cache_count);
    assert_same_bits(a->cache.values, b->cache.values, a->cache_count);
}

/* In bf16 the cache has what is nearest to its numbers in float32. */
static void assert_rounded_outcome(const struct outcome *narrow, const struct outcome *wide)
{
    const float *wide_keys = wide->cache.keys, *wide_values = wide->cache.values;
    const uint16_t *keys = narrow->cache.keys, *values = narrow->cache.values;

    assert_same_bits(narrow->q, wide->q, wide->q_count);
    for (size_t i = 0; i < wide->cache_count; i++) {
        assert_int_equal(keys[i], nearest_bf16(wide_keys[i]));
        assert_int_equal(values[i], nearest_bf16(wide_values[i]));
    }
}

static void check_attend_in(int heads, int kv_heads, int head_dim, int decorated)
{
    struct layer layer;
    struct outcome first;

    layer_init(&layer, heads, kv_heads, head_dim, 16, decorated);
    outcome_init(&first, &layer.shape, DTYPE_F32);
    for (int i = 0; i < RIGS; i++) {
        struct backend_context *context = rig_open(i);
        struct outcome together, apart, narrow;
        struct arena arena;

        if (context == NULL)
            continue;
        outcome_init(&together, &layer.shape, DTYPE_F32);
        outcome_init(&apart, &layer.shape, DTYPE_F32);
        outcome_init(&narrow, &layer.shape, DTYPE_BF16);
        layer.weights.qkv = weights_pack(&layer.qkv, context, (const int[]){0, HIDDEN}, 1, &arena);
        if (i == 0) {
            attend_in(&layer, context, 0, ROWS, &first);
            check_outcome(&layer, &first);
        }
        attend_in(&layer, context, 0, ROWS, &together);
        for (int r = 0; r < ROWS; r++)
            attend_in(&layer, context, r, 1, &apart);
        assert_same_outcome(&together, &first);
        assert_same_outcome(&apart, &first);
        attend_in(&layer, context, 0, ROWS, &narrow);
        assert_rounded_outcome(&narrow, &first);
        outcome_release(&narrow);
        outcome_release(&together);
        outcome_release(&apart);
        arena_close(&arena);
        backend_cpu.close(context);
    }
    outcome_release(&first);
    layer_release(&layer);
}

static void test_attend_in__matches_naive_with_bias_and_norms(void **state)
{
    (void)state;
    check_attend_in(3, 1, 24, 1);
    check_attend_in(4, 2, 8, 1);
    check_attend_in(2, 2, 64, 1);
}

static void test_attend_in__matches_naive_without_them(void **state)
{
    (void)state;
    check_attend_in(4, 2, 32, 0);
    check_attend_in(1, 1, 2, 0);
}

/* Packs so many of the layer's channels alone, from `first` on: those of q, or those of k and v. */
static struct matrix *pack_heads(const struct layer *layer, struct backend_context *context, int first, int outputs, struct arena *arena)
{
    struct weights part = layer->qkv;

    part.data = (char *)part.data + (size_t)(first * HIDDEN) * dtype_bytes(DTYPE_BF16);
    part.outputs = outputs;
    return weights_pack(&part, context, (const int[]){0, HIDDEN}, 1, arena);
}

/* As cross-attention would: k and v of all rows with a shape without query heads, q of some of them with one without others. */
static void check_attend_in_parts(int heads, int kv_heads, int head_dim)
{
    int dim = head_dim, rigs = 0;
    struct layer layer;

    layer_init(&layer, heads, kv_heads, head_dim, 16, 1);
    for (int i = 0; i < RIGS; i++) {
        struct backend_context *context = rig_open(i);
        struct layer keys = layer, queries = layer;
        struct outcome whole, parts;
        struct arena arena[3];

        if (context == NULL)
            continue;
        rigs++;
        outcome_init(&whole, &layer.shape, DTYPE_F32);
        outcome_init(&parts, &layer.shape, DTYPE_F32);
        layer.weights.qkv = weights_pack(&layer.qkv, context, (const int[]){0, HIDDEN}, 1, &arena[0]);
        attend_in(&layer, context, 0, ROWS, &whole);
        keys.shape.heads = queries.shape.kv_heads = 0;
        keys.weights.qkv = pack_heads(&layer, context, heads * dim, 2 * kv_heads * dim, &arena[1]);
        keys.weights.qkv_bias = layer.bias + heads * dim;
        queries.weights.qkv = pack_heads(&layer, context, 0, heads * dim, &arena[2]);
        attend_in(&keys, context, 0, ROWS, &parts);
        for (size_t q = 0; q < parts.q_count; q++)
            assert_true(parts.q[q] == 0);
        attend_in(&queries, context, 5, ROWS - 5, &parts);
        memcpy(parts.q, whole.q, (size_t)(5 * heads * dim) * sizeof *parts.q);
        assert_same_outcome(&parts, &whole);
        outcome_release(&whole);
        outcome_release(&parts);
        for (int a = 0; a < 3; a++)
            arena_close(&arena[a]);
        backend_cpu.close(context);
    }
    assert_true(rigs > 0);
    layer_release(&layer);
}

static void test_attend_in__has_the_same_bits_part_by_part(void **state)
{
    (void)state;
    check_attend_in_parts(3, 1, 24);
    check_attend_in_parts(4, 2, 8);
    check_attend_in_parts(2, 2, 64);
}

static void check_mlp_in(int ffn)
{
    struct layer layer;
    float *first, *to;
    double *expected;

    layer_init(&layer, 1, 1, 8, ffn, 0);
    first = zeroed((size_t)(ROWS * ffn), sizeof *first);
    to = zeroed((size_t)(ROWS * ffn + 1), sizeof *to);
    expected = zeroed((size_t)layer.gate_up.outputs, sizeof *expected);
    for (int i = 0; i < RIGS; i++) {
        struct backend_context *context = rig_open(i);
        struct arena arena;

        if (context == NULL)
            continue;
        layer.weights.gate_up = weights_pack(&layer.gate_up, context, (const int[]){0, HIDDEN}, 1, &arena);
        to[ROWS * ffn] = 5.0f;
        backend_cpu.layer.mlp_in(context, &layer.shape, &layer.weights, ROWS, layer.x, to);
        assert_true(to[ROWS * ffn] == 5.0f);
        for (int r = 0; r < ROWS && i == 0; r++) {
            naive_linear(&layer.gate_up, layer.norm, layer.x + r * HIDDEN, expected);
            for (int c = 0; c < ffn; c++) {
                double gate = expected[c / 16 * 32 + c % 16], up = expected[c / 16 * 32 + 16 + c % 16];
                double value = gate / (1 + exp(-gate)) * up;

                assert_close(to + r * ffn + c, &value, 1, 1e-4, 1e-5);
            }
        }
        if (i == 0)
            memcpy(first, to, (size_t)(ROWS * ffn) * sizeof *first);
        assert_same_bits(to, first, (size_t)(ROWS * ffn));
        for (int r = 0; r < ROWS; r++)
            backend_cpu.layer.mlp_in(context, &layer.shape, &layer.weights, 1, layer.x + r * HIDDEN, to + r * ffn);
        assert_same_bits(to, first, (size_t)(ROWS * ffn));
        arena_close(&arena);
        backend_cpu.close(context);
    }
    free(first);
    free(to);
    free(expected);
    layer_release(&layer);
}

static void test_mlp_in__matches_naive_for_any_ffn(void **state)
{
    (void)state;
    check_mlp_in(16);
    check_mlp_in(43);
    check_mlp_in(5);
    check_mlp_in(400);
}

/* head, attend_out and mlp_out are the matrix product, the first of them with its norm. */
static void test_head__is_the_product_of_the_norm(void **state)
{
    struct layer layer;
    float *first = NULL;
    double *expected;
    size_t outputs;

    (void)state;
    layer_init(&layer, 1, 1, 8, 150, 0);
    outputs = (size_t)layer.gate_up.outputs;
    expected = zeroed(outputs, sizeof *expected);
    for (int i = 0; i < RIGS; i++) {
        struct backend_context *context = rig_open(i);
        float *logits = zeroed(ROWS * outputs, sizeof *logits);
        struct arena arena;

        if (context != NULL) {
            struct matrix *head = weights_pack(&layer.gate_up, context, (const int[]){0, HIDDEN}, 1, &arena);

            backend_cpu.output.head(context, HIDDEN, 1e-5f, layer.norm, head, ROWS, layer.x, logits);
            for (int r = 0; r < ROWS; r++) {
                naive_linear(&layer.gate_up, layer.norm, layer.x + r * HIDDEN, expected);
                assert_close(logits + (size_t)r * outputs, expected, outputs, 1e-4, 1e-5);
            }
            if (first == NULL) {
                first = zeroed(ROWS * outputs, sizeof *first);
                memcpy(first, logits, ROWS * outputs * sizeof *first);
            }
            assert_same_bits(logits, first, ROWS * outputs);
            arena_close(&arena);
            backend_cpu.close(context);
        }
        free(logits);
    }
    free(first);
    free(expected);
    layer_release(&layer);
}

static void test_outs__are_the_product_of_their_matrix(void **state)
{
    struct layer layer;
    struct backend_context *context = rig_open(1);
    float to[ROWS * 32], other[ROWS * 32];
    struct arena arena;

    (void)state;
    layer_init(&layer, 1, 1, 8, 16, 0);
    layer.weights.out = layer.weights.down = weights_pack(&layer.gate_up, context, (const int[]){0, 20, HIDDEN}, 2, &arena);
    backend_cpu.linear.matmul(context, layer.weights.out, ROWS, layer.x, to);
    backend_cpu.layer.attend_out(context, &layer.shape, &layer.weights, ROWS, layer.x, other);
    assert_same_bits(to, other, ROWS * 32);
    backend_cpu.layer.mlp_out(context, &layer.shape, &layer.weights, ROWS, layer.x, other);
    assert_same_bits(to, other, ROWS * 32);
    arena_close(&arena);
    layer_release(&layer);
    backend_cpu.close(context);
}

static void test_add__adds_in_place(void **state)
{
    (void)state;
    for (int i = 0; i < RIGS; i += 3) {
        struct backend_context *context = rig_open(i);

        for (size_t count = 0; count < 70 && context != NULL; count++) {
            float x[71], sum[71];

            for (int k = 0; k < 71; k++) {
                x[k] = (float)k;
                sum[k] = 0.5f;
            }
            backend_cpu.linear.add(context, x, sum, count);
            for (size_t k = 0; k < 71; k++)
                assert_true(x[k] == (float)k + (k < count ? 0.5f : 0.0f));
        }
        backend_cpu.close(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attend_in__matches_naive_with_bias_and_norms),
        cmocka_unit_test(test_attend_in__matches_naive_without_them),
        cmocka_unit_test(test_attend_in__has_the_same_bits_part_by_part),
        cmocka_unit_test(test_mlp_in__matches_naive_for_any_ffn),
        cmocka_unit_test(test_head__is_the_product_of_the_norm),
        cmocka_unit_test(test_outs__are_the_product_of_their_matrix),
        cmocka_unit_test(test_add__adds_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
