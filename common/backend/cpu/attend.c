/* The two operations on the KV cache. Here threads share the work by heads and not by panels. */
#include "common/backend/cpu/context.h"

#include <math.h>
#include <string.h>

struct attend_in {
    struct backend_context *context;
    const struct layer_shape *shape;
    const struct layer_weights *weights;
    const struct rows *rows;
    const float *x;      /* [rows][hidden] */
    const float *cosine; /* [context][head_dim / 2] */
    const float *sine;   /* [context][head_dim / 2] */
    const struct cache_layer *cache;
    float *q; /* [rows][heads][head_dim] */
};

/* Where key/value head h of the row's slot starts, in keys as in values. */
static size_t cache_offset(const struct layer_shape *shape, int slot, int h)
{
    return ((size_t)slot * (size_t)shape->kv_heads + (size_t)h) * (size_t)shape->context * (size_t)shape->head_dim;
}

/* Numbers at, at + stride, ... of a side of the cache. */
static void store(const struct attend_in *in, void *side, size_t at, size_t stride, float *head /* [head_dim], overwritten */)
{
    size_t dim = (size_t)in->shape->head_dim;
    float *wide = side;
    uint16_t *narrow = side;
    unsigned char *bytes = side, *rounded = (unsigned char *)head;

    if (in->cache->dtype == DTYPE_F32) {
        for (size_t d = 0; d < dim; d++)
            wide[at + d * stride] = head[d];
        return;
    }
    if (in->cache->dtype == DTYPE_E4M3) {
        in->context->kernels->round_e4m3(head, in->shape->head_dim, rounded);
        for (size_t d = 0; d < dim; d++)
            bytes[at + d * stride] = rounded[d];
        return;
    }
    in->context->kernels->round_bf16(head, in->shape->head_dim);
    for (size_t d = 0; d < dim; d++) {
        uint32_t bits;

        memcpy(&bits, head + d, sizeof bits);
        narrow[at + d * stride] = (uint16_t)(bits >> 16);
    }
}

static void store_key(const struct attend_in *in, int row, int h, float *head)
{
    size_t dim = (size_t)in->shape->head_dim, place = (size_t)in->rows->place[row];
    size_t tile = cache_offset(in->shape, in->rows->slot[row], h) + place / BACKEND_PANEL * dim * BACKEND_PANEL;

    store(in, in->cache->keys, tile + place % BACKEND_PANEL, BACKEND_PANEL, head);
}

static void store_value(const struct attend_in *in, int row, int h, float *head)
{
    size_t dim = (size_t)in->shape->head_dim, place = (size_t)in->rows->place[row];

    store(in, in->cache->values, cache_offset(in->shape, in->rows->slot[row], h) + place * dim, 1, head);
}

/* Applies bias, norm and RoPE to head `h` (counted over q, k and v heads), and stores it: q for attention, k and v in the cache.  head: [head_dim],
 * overwritten */
static void finish_head(const struct attend_in *in, int row, int h, float *head)
{
    const struct kernels *kernels = in->context->kernels;
    const struct layer_shape *shape = in->shape;
    int dim = shape->head_dim, half = dim / 2, is_query = h < shape->heads, is_key = !is_query && h < shape->heads + shape->kv_heads;
    const float *norm = is_query ? in->weights->q_norm : is_key ? in->weights->k_norm : NULL;
    size_t turn = (size_t)in->rows->position[row] * (size_t)half;

    if (in->weights->qkv_bias != NULL)
        kernels->add(head, in->weights->qkv_bias + (size_t)h * (size_t)dim, (size_t)dim);
    if (norm != NULL)
        kernels->norm(head, norm, dim, shape->norm_eps, head);
    if (is_query || is_key)
        kernels->rope(head, in->cosine + turn, in->sine + turn, half, is_query ? 1.0f / sqrtf((float)dim) : 1.0f);
    if (is_query)
        memcpy(in->q + ((size_t)row * (size_t)shape->heads + (size_t)h) * (size_t)dim, head, (size_t)dim * sizeof *head);
    else if (is_key)
        store_key(in, row, h - shape->heads, head);
    else
        store_value(in, row, h - shape->heads - shape->kv_heads, head);
}

/* Projects the sweep's rows to q, k and v. A head may span panels of two threads, so a barrier follows. */
static void project(const struct attend_in *in, const struct sweep *sweep, float *qkv /* [count][outputs] */, int thread)
{
    const struct backend_context *context = in->context;
    const struct matrix *matrix = in->weights->qkv;
    struct stretch panels = pool_stretch(context->pool, thread, matrix->panels);
    struct linear_input input = cpu_linear_input(context, matrix, in->weights->attn_norm, in->shape->norm_eps, in->x, sweep, thread);

    cpu_linear_run(context, matrix, panels.first, panels.last, &input, qkv + (size_t)panels.first * BACKEND_PANEL, (size_t)matrix->outputs);
}

static void attend_in_part(void *argument, int thread)
{
    const struct attend_in *in = argument;
    const struct backend_context *context = in->context;
    int heads = in->shape->heads + 2 * in->shape->kv_heads, dim = in->shape->head_dim;

    for (int first = 0; first < in->rows->count; first += SWEEP_ROWS) {
        struct sweep sweep = cpu_sweep(first, in->rows->count);
        float *qkv = context->qkv[first / SWEEP_ROWS % QKV_BUFFERS];
        struct stretch mine = pool_stretch(context->pool, thread, sweep.count * heads);

        project(in, &sweep, qkv, thread);
        pool_meet(context->pool);
        for (int i = mine.first; i < mine.last; i++) { /* head by head, as this thread has computed most of its heads itself */
            int row = i % sweep.count, h = i / sweep.count;

            finish_head(in, first + row, h, qkv + ((size_t)row * (size_t)heads + (size_t)h) * (size_t)dim);
        }
    }
}

void cpu_attend_in(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights,
                   const struct rows *rows, const float *x, const float *cosine, const float *sine, const struct cache_layer *cache,
                   float *q)
{
    struct attend_in in = {.context = context,
                           .shape = shape,
                           .weights = weights,
                           .rows = rows,
                           .x = x,
                           .cosine = cosine,
                           .sine = sine,
                           .cache = cache,
                           .q = q};

    pool_run(context->pool, attend_in_part, &in);
}

struct attend {
    struct backend_context *context;
    const struct layer_shape *shape;
    const struct rows *rows;
    const float *q; /* [rows][heads][head_dim] */
    const struct cache_layer *cache;
    float *to; /* [rows][heads][head_dim] */
};

/* Consecutive rows of one slot. Their queries of one key/value head, row by row, are cut into groups. */
struct run {
    int first, count;
    int queries; /* of one key/value head */
    int groups;  /* of one key/value head, of nearly equal size */
};

static struct run run_from(const struct attend *attend, int first)
{
    const struct rows *rows = attend->rows;
    int at_once = attend->context->kernels->attend_group;
    struct run run = {.first = first};

    while (first + run.count < rows->count && rows->slot[first + run.count] == rows->slot[first])
        run.count++;
    run.queries = run.count * (attend->shape->heads / attend->shape->kv_heads);
    run.groups = (run.queries + at_once - 1) / at_once;
    return run;
}

/* Queries [first, last) of the run's key/value head h. */
static void attend_block(const struct attend *attend, const struct run *run, int h, int first, int last, int thread)
{
    const struct layer_shape *shape = attend->shape;
    const struct rows *rows = attend->rows;
    int group = shape->heads / shape->kv_heads;
    const struct kernels *kernels = attend->context->kernels;
    const struct cache_layer *cache = attend->cache;
    size_t offset = cache_offset(shape, rows->slot[run->first], h) * dtype_bytes(cache->dtype);
    struct attend_block block = {.count = last - first,
                                 .head_dim = shape->head_dim,
                                 .context = shape->context,
                                 .keys = (const char *)cache->keys + offset,
                                 .values = (const char *)cache->values + offset,
                                 .scores = attend->context->scratch[thread].scores,
                                 .packed = attend->context->scratch[thread].queries};

    for (int i = 0; i < block.count; i++) {
        int row = run->first + (first + i) / group, head = h * group + (first + i) % group;
        size_t at = ((size_t)row * (size_t)shape->heads + (size_t)head) * (size_t)shape->head_dim;

        block.q[i] = attend->q + at;
        block.to[i] = attend->to + at;
        block.base[i] = rows->base[row];
        block.ancestors[i] = rows->ancestors[row];
    }
    (cache->dtype == DTYPE_E4M3 ? kernels->attend_e4m3 : cache->dtype == DTYPE_BF16 ? kernels->attend_bf16 : kernels->attend)(&block);
}

/* The groups [first, last) of the run's key/value head h, as many together as a block has. */
static void attend_groups(const struct attend *attend, const struct run *run, int h, int first, int last, int thread)
{
    int query = run->queries * first / run->groups, end = run->queries * last / run->groups, count;

    for (; query < end; query += count) {
        count = end - query < ATTEND_QUERIES ? end - query : ATTEND_QUERIES;
        attend_block(attend, run, h, query, query + count, thread);
    }
}

static int clamp(int value, int least, int most)
{
    return value < least ? least : value > most ? most : value;
}

static void attend_part(void *argument, int thread)
{
    const struct attend *attend = argument;
    int kv_heads = attend->shape->kv_heads, total = 0, done = 0;
    struct stretch mine;
    struct run run;

    for (int first = 0; first < attend->rows->count; first += run.count) {
        run = run_from(attend, first);
        total += run.groups * kv_heads;
    }
    mine = pool_stretch(attend->context->pool, thread, total);
    for (int first = 0; first < attend->rows->count && done < mine.last; first += run.count) {
        run = run_from(attend, first);
        for (int h = 0; h < kv_heads; h++, done += run.groups)
            attend_groups(attend, &run, h, clamp(mine.first - done, 0, run.groups), clamp(mine.last - done, 0, run.groups), thread);
    }
}

void cpu_attend(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *weights,
                const struct rows *rows, const float *q, const struct cache_layer *cache, float *to)
{
    struct attend attend = {.context = context, .shape = shape, .rows = rows, .q = q, .cache = cache, .to = to};

    (void)weights;
    pool_run(context->pool, attend_part, &attend);
}

struct copy {
    struct backend_context *context;
    const struct layer_shape *shape;
    const struct cache_layer *cache;
    struct cache_place from, to;
    int count;
};

static void copy_numbers(const struct copy *copy, void *side, size_t to, size_t from, size_t count)
{
    size_t bytes = dtype_bytes(copy->cache->dtype);

    memcpy((char *)side + to * bytes, (const char *)side + from * bytes, count * bytes);
}

/* Where the key of a place begins. Its numbers lie apart, each beside those of the tile's other places. */
static size_t key_at(const struct layer_shape *shape, struct cache_place at, int h)
{
    return cache_offset(shape, at.slot, h) + (size_t)(at.place / BACKEND_PANEL * shape->head_dim) * BACKEND_PANEL +
           (size_t)(at.place % BACKEND_PANEL);
}

/* The keys of `count` places, which are of one tile on both sides. */
static void copy_keys(const struct copy *copy, int h, struct cache_place from, struct cache_place to, int count)
{
    size_t dim = (size_t)copy->shape->head_dim, source = key_at(copy->shape, from, h), target = key_at(copy->shape, to, h);

    if (count == BACKEND_PANEL) {
        copy_numbers(copy, copy->cache->keys, target, source, dim * BACKEND_PANEL);
        return;
    }
    for (size_t d = 0; d < dim * BACKEND_PANEL; d += BACKEND_PANEL)
        copy_numbers(copy, copy->cache->keys, target + d, source + d, (size_t)count);
}

/* The places [first, last) of those that are copied, whose targets lie in one tile, of one key/value head. */
static void copy_places(const struct copy *copy, int h, int first, int last)
{
    struct cache_place from = {copy->from.slot, copy->from.place + first}, to = {copy->to.slot, copy->to.place + first};
    size_t dim = (size_t)copy->shape->head_dim;
    int left = last - first, count;

    copy_numbers(copy, copy->cache->values, cache_offset(copy->shape, to.slot, h) + (size_t)to.place * dim,
                 cache_offset(copy->shape, from.slot, h) + (size_t)from.place * dim, (size_t)left * dim);
    for (; left > 0; left -= count, from.place += count, to.place += count) {
        count = BACKEND_PANEL - from.place % BACKEND_PANEL;
        count = count < left ? count : left;
        copy_keys(copy, h, from, to, count);
    }
}

static void copy_part(void *argument, int thread)
{
    const struct copy *copy = argument;
    int before = copy->to.place % BACKEND_PANEL, tiles = (before + copy->count + BACKEND_PANEL - 1) / BACKEND_PANEL;
    struct stretch mine = pool_stretch(copy->context->pool, thread, copy->shape->kv_heads * tiles);

    for (int i = mine.first; i < mine.last; i++) {
        int first = i % tiles * BACKEND_PANEL - before, end = first + BACKEND_PANEL;

        copy_places(copy, i / tiles, first > 0 ? first : 0, end < copy->count ? end : copy->count);
    }
}

void cpu_cache_copy(struct backend_context *context, const struct layer_shape *shape, const struct cache_layer *cache, struct cache_place from,
                    struct cache_place to, int count)
{
    struct copy copy = {.context = context, .shape = shape, .cache = cache, .from = from, .to = to, .count = count};

    if (count > 0)
        pool_run(context->pool, copy_part, &copy);
}
