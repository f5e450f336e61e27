/* Attention of a few queries over one key/value head. Three sweeps: scores tile by tile (each one chain over the head's
 * dimensions) with their maximum; exp(score - max); then the values in rising order of the place, each output one chain and the
 * weights' sum another, divided at the end. A place that a query does not see takes no part in any chain, so its content does not
 * matter and neither does the gap it leaves: a token's result is the same at the end of a chain and inside a tree. Keys and values in bf16
 * are widened as they are loaded: `dtype` is a constant wherever it is passed on. Two functions, for in one GCC made the loops of float32
 * slower. */
#include "common/backend/cpu/kernel/table.h"
#include "common/backend/cpu/kernel/vec.h"

#include <math.h>

#if defined(TANDEM_ISA_AVX512)
enum { VALUE_QUERIES = 4, VALUE_VECS = 4 }; /* sums of the last sweep that stay in registers */
#elif defined(TANDEM_ISA_AVX2)
enum { VALUE_QUERIES = 2, VALUE_VECS = 2 };
#else
enum { VALUE_QUERIES = 1, VALUE_VECS = 1 };
#endif

enum { TILE = BACKEND_PANEL };

/* 16 numbers of the cache, from number `at` on; and the first `lanes` of them. */
INLINE vec cache_load(const void *side, size_t at, enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? vec_widen_bf16((const uint16_t *)side + at) : vec_load((const float *)side + at);
}

INLINE vec cache_load_part(const void *side, size_t at, int lanes, enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? vec_widen_bf16_part((const uint16_t *)side + at, lanes) : vec_load_part((const float *)side + at, lanes);
}

/* The places [0, end) hold all that the query sees. */
static int query_end(const struct attend_block *block, int i)
{
    int end = block->base[i];

    if (block->ancestors[i] != 0)
        end += 64 - __builtin_clzll(block->ancestors[i]);
    return end < block->context ? end : block->context;
}

/* It sees all of the places [0, seen). */
static int query_seen(const struct attend_block *block, int i)
{
    uint64_t ancestors = block->ancestors[i];

    return block->base[i] + (~ancestors == 0 ? 64 : __builtin_ctzll(~ancestors));
}

/* Which of the 16 places from `first` on the query sees, one bit each. */
static uint32_t tile_mask(const struct attend_block *block, int i, int first)
{
    int past = first - block->base[i];
    uint64_t ancestors = block->ancestors[i];

    if (past <= -TILE)
        return 0xffff;
    if (past >= 64)
        return 0;
    if (past < 0)
        ancestors = ancestors << -past | ((UINT64_C(1) << -past) - 1);
    else
        ancestors >>= past;
    return (uint32_t)ancestors & 0xffff;
}

/* Scores of `queries` queries over `tiles` tiles from `tile` on; unseen places become minus infinity. */
SPECIALISED void score_tiles(const struct attend_block *block, enum dtype dtype, int queries, int tiles, int tile,
                             vec *largest /* [queries] */)
{
    int dim = block->head_dim;
    size_t keys = (size_t)tile * (size_t)dim * TILE;
    vec sum[ATTEND_QUERIES];

    UNROLL for (int i = 0; i < queries * tiles; i++) sum[i] = vec_zero();
    for (int d = 0; d < dim; d++) {
        vec key[ATTEND_QUERIES];

        UNROLL for (int t = 0; t < tiles; t++) key[t] = cache_load(block->keys, keys + ((size_t)t * (size_t)dim + (size_t)d) * TILE, dtype);
        UNROLL for (int i = 0; i < queries; i++)
        {
            vec q = vec_set(block->q[i][d]);

            UNROLL for (int t = 0; t < tiles; t++) sum[i * tiles + t] = vec_fma(key[t], q, sum[i * tiles + t]);
        }
    }
    UNROLL for (int i = 0; i < queries; i++)
    {
        UNROLL for (int t = 0; t < tiles; t++)
        {
            int first = (tile + t) * TILE;
            vec score = vec_select(vecm_of_bits(tile_mask(block, i, first)), sum[i * tiles + t], vec_set(-INFINITY));

            vec_store(block->scores + (size_t)i * (size_t)block->context + (size_t)first, score);
            largest[i] = vec_max(largest[i], score);
        }
    }
}

SPECIALISED void score_all(const struct attend_block *block, enum dtype dtype, int queries, int tiles, int end, float *max /* [queries] */)
{
    vec largest[ATTEND_QUERIES];
    int count = (end + TILE - 1) / TILE, tile = 0;

    UNROLL for (int i = 0; i < queries; i++) largest[i] = vec_set(-INFINITY);
    for (; tile + tiles <= count; tile += tiles)
        score_tiles(block, dtype, queries, tiles, tile, largest);
    for (; tile < count; tile++)
        score_tiles(block, dtype, queries, 1, tile, largest);
    UNROLL for (int i = 0; i < queries; i++) max[i] = vec_largest(largest[i]);
}

/* Few queries take several tiles at once, to have chains enough. */
SPECIALISED void score(const struct attend_block *block, enum dtype dtype, int end, float *max /* [block->count] */)
{
    switch (block->count) {
    case 1:
        score_all(block, dtype, 1, KERNEL_QUERIES, end, max);
        break;
    case 2:
        score_all(block, dtype, 2, KERNEL_QUERIES / 2, end, max);
        break;
    case 3:
        score_all(block, dtype, 3, KERNEL_QUERIES / 4, end, max);
        break;
    case 4:
        score_all(block, dtype, 4, KERNEL_QUERIES / 4, end, max);
        break;
#if KERNEL_QUERIES == 8
    case 5:
        score_all(block, dtype, 5, 1, end, max);
        break;
    case 6:
        score_all(block, dtype, 6, 1, end, max);
        break;
    case 7:
        score_all(block, dtype, 7, 1, end, max);
        break;
    case 8:
        score_all(block, dtype, 8, 1, end, max);
        break;
#endif
    }
}

static void exponentiate(float *scores /* [end] */, int end, float max)
{
    vec largest = vec_set(max);

    for (int first = 0; first < end; first += TILE)
        vec_store(scores + first, vec_exp(vec_sub(vec_load(scores + first), largest)));
}

/* One place into the sums of one query. */
SPECIALISED void add_place(float weight, int vecs, const vec *value /* [vecs] */, vec *sum /* [vecs] */, float *total)
{
    vec w = vec_set(weight);

    *total = *total + weight;
    UNROLL for (int v = 0; v < vecs; v++) sum[v] = vec_fma(value[v], w, sum[v]);
}

SPECIALISED void load_value(const void *values, size_t at, enum dtype dtype, int vecs, int left, vec *value /* [vecs] */)
{
    UNROLL for (int v = 0; v < vecs - 1; v++) value[v] = cache_load(values, at + (size_t)v * LANES, dtype);
    value[vecs - 1] = cache_load_part(values, at + (size_t)(vecs - 1) * LANES, left, dtype);
}

/* Dimensions [d, d + 16 vecs) of the queries [first, first + queries): the places below `seen` belong to all of them, those up to
 * `end` are asked for one by one. */
SPECIALISED void add_values(const struct attend_block *block, enum dtype dtype, int first, int queries, int d, int vecs, int seen, int end)
{
    int left = block->head_dim - d - (vecs - 1) * LANES;
    const float *scores = block->scores + (size_t)first * (size_t)block->context;
    vec sum[VALUE_QUERIES * VALUE_VECS], value[VALUE_VECS];
    float total[VALUE_QUERIES] = {0};

    left = left < LANES ? left : LANES;
    UNROLL for (int i = 0; i < queries * vecs; i++) sum[i] = vec_zero();
    for (int place = 0; place < seen; place++) {
        load_value(block->values, (size_t)place * (size_t)block->head_dim + (size_t)d, dtype, vecs, left, value);
        UNROLL for (int i = 0; i < queries; i++)
            add_place(scores[(size_t)i * (size_t)block->context + (size_t)place], vecs, value, sum + i * vecs, &total[i]);
    }
    for (int place = seen; place < end; place++) {
        load_value(block->values, (size_t)place * (size_t)block->head_dim + (size_t)d, dtype, vecs, left, value);
        UNROLL for (int i = 0; i < queries; i++) if ((tile_mask(block, first + i, place) & 1) != 0)
            add_place(scores[(size_t)i * (size_t)block->context + (size_t)place], vecs, value, sum + i * vecs, &total[i]);
    }
    UNROLL for (int i = 0; i < queries; i++)
    {
        UNROLL for (int v = 0; v < vecs; v++) vec_store_left(block->to[first + i] + d + v * LANES,
                                                             vec_div(sum[i * vecs + v], vec_set(total[i])), v < vecs - 1 ? LANES : left);
    }
}

SPECIALISED void add_all_values(const struct attend_block *block, enum dtype dtype, int first, int queries, int seen, int end)
{
    for (int d = 0; d < block->head_dim; d += VALUE_VECS * LANES) {
        int vecs = (block->head_dim - d + LANES - 1) / LANES;

        if (vecs >= VALUE_VECS)
            add_values(block, dtype, first, queries, d, VALUE_VECS, seen, end);
        else if (vecs == 3)
            add_values(block, dtype, first, queries, d, VALUE_VECS < 3 ? 1 : 3, seen, end);
        else if (vecs == 2)
            add_values(block, dtype, first, queries, d, VALUE_VECS < 2 ? 1 : 2, seen, end);
        else
            add_values(block, dtype, first, queries, d, 1, seen, end);
    }
}

SPECIALISED void weigh(const struct attend_block *block, enum dtype dtype, int seen, int end)
{
    int first = 0;

    for (; first + VALUE_QUERIES <= block->count; first += VALUE_QUERIES)
        add_all_values(block, dtype, first, VALUE_QUERIES, seen, end);
    for (; first + 2 <= block->count; first += 2)
        add_all_values(block, dtype, first, VALUE_QUERIES < 2 ? 1 : 2, seen, end);
    for (; first < block->count; first++)
        add_all_values(block, dtype, first, 1, seen, end);
}

SPECIALISED void attend_cache(const struct attend_block *block, enum dtype dtype)
{
    float max[ATTEND_QUERIES];
    int end = 0, seen = block->context;

    for (int i = 0; i < block->count; i++) {
        int end_i = query_end(block, i), seen_i = query_seen(block, i);

        end = end_i > end ? end_i : end;
        seen = seen_i < seen ? seen_i : seen;
    }
    score(block, dtype, end, max);
    for (int i = 0; i < block->count; i++)
        exponentiate(block->scores + (size_t)i * (size_t)block->context, end, max[i]);
    weigh(block, dtype, seen, end);
}

void KERNEL(attend)(const struct attend_block *block)
{
    attend_cache(block, DTYPE_F32);
}

void KERNEL(attend_bf16)(const struct attend_block *block)
{
    attend_cache(block, DTYPE_BF16);
}
