/* Attention of some queries over one key/value head. First the scores, each one chain over the head's dimensions, of all places, with their
 * maximum; then exp(score - max) and the values in rising order of the place, each output one chain and the weights' sum another, divided at
 * the end. A place that a query does not see takes no part in any chain, so its content does not
 * matter and neither does the gap it leaves: a token's result is the same at the end of a chain and inside a tree.
 *
 * A tile of keys, or a strip of values, is used by all queries of the block while it is in a cache, by a group of them at a time, whose sums are
 * registers; the sums of values are put away behind a strip and taken up again at the next, which changes no chain. So memory is read once for
 * a block, and what is left are the products. Keys and values in bf16
 * or E4M3 are widened as they are loaded: `dtype` is a constant wherever it is passed on. A function for each, for in one GCC made the loops of
 * float32 slower. */
#include "common/backend/cpu/kernel/table.h"
#include "common/backend/cpu/kernel/vec.h"

#include <math.h>
#include <string.h>

/* Sums of values that are registers: of so many queries at once, and of one, of two or three and of more queries so many vectors each. On AVX2, whose
 * vector is two of 16 registers, twelve sums leave room for a value and a weight, as they do for a key and a query's number; eight are no more than
 * a multiply-add takes turns, so that each delay shows. Totals find no room beside twelve. But a block of FEW_QUERIES is not enough to hide their
 * chains elsewhere: it goes by TOTAL_QUERIES, whose totals are registers, too. */
#if defined(TANDEM_ISA_AVX512)
#define VALUE_QUERIES 4
enum { FEW_QUERIES = ATTEND_QUERIES, TOTAL_QUERIES = VALUE_QUERIES, VECS_OF_ONE = 4, VECS_OF_FEW = 4, VECS_OF_MANY = 4 };
#elif defined(TANDEM_ISA_AVX2)
#define VALUE_QUERIES 6
enum { FEW_QUERIES = 3, TOTAL_QUERIES = 2, VECS_OF_ONE = 4, VECS_OF_FEW = 2, VECS_OF_MANY = 1 };
#else
#define VALUE_QUERIES 1
enum { FEW_QUERIES = ATTEND_QUERIES, TOTAL_QUERIES = VALUE_QUERIES, VECS_OF_ONE = 1, VECS_OF_FEW = 1, VECS_OF_MANY = 1 };
#endif
enum { VALUES = 16 }; /* sums at most: VALUE_QUERIES x VECS_OF_MANY and so on */

enum { STRIP_FLOATS = 16384 }; /* of values: 64 KB, which a second cache has; shorter ones put sums away too often */

#ifdef TANDEM_KERNELS_ROLLED
#define UNROLL_SOME
#else
#define UNROLL_SOME _Pragma("GCC unroll 4")
#endif
enum { TILE = BACKEND_PANEL, SCORES = KERNEL_SCORES };

/* What numbers of the cache are times this when they are loaded: queries, and what comes of the values, make up for it, which is exact above 2^-118.
 */
INLINE float unit_of(enum dtype dtype)
{
    return dtype == DTYPE_E4M3 ? 0x1p-8f : 1;
}

/* 16 numbers of the cache, from number `at` on; and the first `lanes` of them. Their lanes, and those of sums of them, are as in_cache has them. */
INLINE vec cache_load(const void *side, size_t at, enum dtype dtype)
{
    return dtype == DTYPE_E4M3   ? vec_widen_e4m3_or_nan((const unsigned char *)side + at)
           : dtype == DTYPE_BF16 ? vec_widen_bf16((const uint16_t *)side + at)
                                 : vec_load((const float *)side + at);
}

INLINE vec cache_load_part(const void *side, size_t at, int lanes, enum dtype dtype)
{
    unsigned char bytes[LANES] = {0};

    if (dtype == DTYPE_E4M3) {
        memcpy(bytes, (const unsigned char *)side + at, (size_t)lanes);
        return vec_widen_e4m3_or_nan(bytes);
    }
    return dtype == DTYPE_BF16 ? vec_widen_bf16_part((const uint16_t *)side + at, lanes) : vec_load_part((const float *)side + at, lanes);
}

INLINE vec in_order(vec v, enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? vec_of_widened(v) : v;
}

INLINE vec in_cache(vec v, enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? vec_as_widened(v) : v;
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

/* Of query i, place `first` and those of its tile. */
static inline float *scores_at(const struct attend_block *block, int tile, int i)
{
    return block->scores + ((size_t)tile * (size_t)block->count + (size_t)i) * TILE;
}

/* Scores of the queries [first, first + queries) over `tiles` tiles from `tile` on; unseen places become minus infinity. */
SPECIALISED void score_tiles(const struct attend_block *block, enum dtype dtype, int first, int queries, int tile, int tiles, int seen,
                             vec *largest /* [block->count] */)
{
    int dim = block->head_dim;
    size_t keys = (size_t)tile * (size_t)dim * TILE;
    const float *queries_at = block->packed + first;
    vec sum[SCORES];

    UNROLL for (int i = 0; i < queries * tiles; i++) sum[i] = vec_zero();
    for (int d = 0; d < dim; d++, queries_at += block->count) {
        UNROLL for (int t = 0; t < tiles; t++)
        {
            vec key = cache_load(block->keys, keys + ((size_t)t * (size_t)dim + (size_t)d) * TILE, dtype);

            UNROLL for (int i = 0; i < queries; i++) sum[i * tiles + t] = vec_fma(key, vec_set(queries_at[i]), sum[i * tiles + t]);
        }
    }
    UNROLL for (int i = 0; i < queries; i++)
    {
        UNROLL for (int t = 0; t < tiles; t++)
        {
            int place = (tile + t) * TILE;
            vec score = in_order(sum[i * tiles + t], dtype);

            if (place + TILE > seen)
                score = vec_select(vecm_of_bits(tile_mask(block, first + i, place)), score, vec_set(-INFINITY));
            vec_store(scores_at(block, tile + t, first + i), score);
            largest[first + i] = vec_max(largest[first + i], score);
        }
    }
}

/* Few queries take several tiles at once, to have chains enough. */
static int tiles_of(int queries)
{
    return queries <= 2 ? KERNEL_QUERIES / queries : queries <= 4 ? KERNEL_QUERIES / 4 : 1;
}

/* One group; `tiles` are 1 or what tiles_of has for the block. */
SPECIALISED void score_group(const struct attend_block *block, enum dtype dtype, int first, int queries, int tile, int tiles, int seen,
                             vec *largest)
{
    switch (queries) {
#define CASE(count, at_once)                                                                                                               \
    case count:                                                                                                                            \
        if (tiles == (at_once))                                                                                                            \
            score_tiles(block, dtype, first, count, tile, at_once, seen, largest);                                                         \
        else                                                                                                                               \
            score_tiles(block, dtype, first, count, tile, 1, seen, largest);                                                               \
        break;
        CASE(1, KERNEL_QUERIES)
        CASE(2, KERNEL_QUERIES / 2)
        CASE(3, KERNEL_QUERIES / 4)
        CASE(4, KERNEL_QUERIES / 4)
#if KERNEL_SCORES >= 6
        CASE(5, 1)
        CASE(6, 1)
#endif
#if KERNEL_SCORES >= 8
        CASE(7, 1)
        CASE(8, 1)
#endif
#undef CASE
    }
}

SPECIALISED void score(const struct attend_block *block, enum dtype dtype, int seen, int end, float *max /* [block->count] */)
{
    vec largest[ATTEND_QUERIES];
    int count = (end + TILE - 1) / TILE, groups = (block->count + SCORES - 1) / SCORES, tiles = 1;
    int bound[ATTEND_QUERIES + 1];

    for (int g = 0; g <= groups; g++)
        bound[g] = block->count * g / groups;
    for (int i = 0; i < block->count; i++) {
        largest[i] = vec_set(-INFINITY);
        for (int d = 0; d < block->head_dim; d++)
            block->packed[d * block->count + i] = block->q[i][d] * (1 / unit_of(dtype));
    }
    for (int tile = 0; tile < count; tile += tiles) {
        tiles = tile + tiles_of(block->count) <= count ? tiles_of(block->count) : 1;
        for (int g = 0; g < groups; g++)
            score_group(block, dtype, bound[g], bound[g + 1] - bound[g], tile, tiles, seen, largest);
    }
    for (int i = 0; i < block->count; i++)
        max[i] = vec_largest(largest[i]);
}

/* Scores of the tiles [first, last) become weights, and are added to the totals, if there are any here: what a query does not see has the weight
 * 0, which changes no total. */
SPECIALISED void exponentiate(const struct attend_block *block, int first, int last, const float *max, float *totals /* [block->count] both */)
{
    for (int tile = first; tile < last; tile++)
        for (int i = 0; i < block->count; i++) {
            float *scores = scores_at(block, tile, i);

            vec_store(scores, vec_exp(vec_sub(vec_load(scores), vec_set(max[i]))));
            if (totals != NULL)
                UNROLL for (int lane = 0; lane < TILE; lane++) totals[i] = totals[i] + scores[lane];
        }
}

/* One place into the sums of one query. */
SPECIALISED void add_place(float weight, int vecs, const vec *value /* [vecs] */, vec *sum /* [vecs] */, float *total /* or NULL */)
{
    vec w = vec_set(weight);

    if (total != NULL)
        *total = *total + weight;
    UNROLL for (int v = 0; v < vecs; v++) sum[v] = vec_fma(value[v], w, sum[v]);
}

SPECIALISED void load_value(const void *values, size_t at, enum dtype dtype, int vecs, int left, vec *value /* [vecs] */)
{
    UNROLL for (int v = 0; v < vecs - 1; v++) value[v] = cache_load(values, at + (size_t)v * LANES, dtype);
    at += (size_t)(vecs - 1) * LANES;
    value[vecs - 1] = left == LANES ? cache_load(values, at, dtype) : cache_load_part(values, at, left, dtype);
}

/* Places [first, last), of which those below `seen` belong to all queries of a group and the others are asked for one by one. */
struct strip {
    int first, last; /* `first` begins a tile */
    int seen;
};

/* Dimensions [d, d + 16 vecs) of the queries [first, first + queries), whose sums so far are in `to`. */
SPECIALISED void add_values(const struct attend_block *block, enum dtype dtype, const struct strip *strip, int first, int queries, int d, int vecs,
                            float *totals /* [queries] or, where there are more than TOTAL_QUERIES, not made here */)
{
    const int counts = queries <= TOTAL_QUERIES;
    int left = block->head_dim - d - (vecs - 1) * LANES, place = strip->first;
    vec sum[VALUES], value[VECS_OF_ONE];
    float total[TOTAL_QUERIES];

    left = left < LANES ? left : LANES;
    if (counts)
        UNROLL for (int i = 0; i < queries; i++) total[i] = totals[i];
    UNROLL for (int i = 0; i < queries; i++)
        UNROLL for (int v = 0; v < vecs; v++) sum[i * vecs + v] =
            place == 0 ? vec_zero() : in_cache(vec_load_left(block->to[first + i] + d + v * LANES, v < vecs - 1 ? LANES : left), dtype);
    for (; place + TILE <= strip->seen; place += TILE) {
        const float *weights = scores_at(block, place / TILE, first);
        size_t at = (size_t)place * (size_t)block->head_dim + (size_t)d;

        UNROLL_SOME for (int lane = 0; lane < TILE; lane++, at += (size_t)block->head_dim)
        {
            load_value(block->values, at, dtype, vecs, left, value);
            UNROLL for (int i = 0; i < queries; i++) add_place(weights[i * TILE + lane], vecs, value, sum + i * vecs, counts ? &total[i] : NULL);
        }
    }
    for (; place < strip->last; place++) {
        const float *weights = scores_at(block, place / TILE, first) + place % TILE;

        load_value(block->values, (size_t)place * (size_t)block->head_dim + (size_t)d, dtype, vecs, left, value);
        UNROLL for (int i = 0; i < queries; i++) if ((tile_mask(block, first + i, place) & 1) != 0)
            add_place(weights[i * TILE], vecs, value, sum + i * vecs, counts ? &total[i] : NULL);
    }
    UNROLL for (int i = 0; i < queries; i++)
        UNROLL for (int v = 0; v < vecs; v++)
            vec_store_left(block->to[first + i] + d + v * LANES, in_order(sum[i * vecs + v], dtype), v < vecs - 1 ? LANES : left);
    if (counts && d == 0)
        UNROLL for (int i = 0; i < queries; i++) totals[i] = total[i];
}

/* Whole vectors as many together as `most`; what is left of them two by two, and one by one. */
SPECIALISED void add_all_values(const struct attend_block *block, enum dtype dtype, const struct strip *strip, int first, int queries, int most,
                                float *totals)
{
    for (int d = 0, vecs; d < block->head_dim; d += vecs * LANES) {
        int left = (block->head_dim - d + LANES - 1) / LANES;

        vecs = left >= most ? most : left >= 2 && most > 2 ? 2 : 1;
        if (vecs == most)
            add_values(block, dtype, strip, first, queries, d, most, totals);
        else if (vecs == 2)
            add_values(block, dtype, strip, first, queries, d, most > 2 ? 2 : 1, totals);
        else
            add_values(block, dtype, strip, first, queries, d, 1, totals);
    }
}

SPECIALISED void add_group(const struct attend_block *block, enum dtype dtype, const struct strip *strip, int first, int queries, float *totals)
{
    switch (queries) {
#define CASE(count, vecs)                                                                                                                  \
    case count:                                                                                                                            \
        add_all_values(block, dtype, strip, first, count, vecs, totals);                                                                        \
        break;
        CASE(1, VECS_OF_ONE)
#if VALUE_QUERIES >= 4
        CASE(2, VECS_OF_FEW)
        CASE(3, VECS_OF_FEW)
        CASE(4, VECS_OF_MANY)
#endif
#if VALUE_QUERIES >= 6
        CASE(5, VECS_OF_MANY)
        CASE(6, VECS_OF_MANY)
#endif
#undef CASE
    }
}

/* The strip that begins with this place's tile. */
static struct strip strip_from(const struct attend_block *block, int first, int seen, int end)
{
    int places = block->head_dim < STRIP_FLOATS / TILE ? STRIP_FLOATS / TILE / block->head_dim * TILE : TILE, last;

    last = end - first > places ? first + places : end;
    return (struct strip){first, last, seen < first ? first : seen < last ? seen : last};
}

SPECIALISED void weigh(const struct attend_block *block, enum dtype dtype, int seen, int end, const float *max)
{
    const int few = block->count <= FEW_QUERIES, most = few ? TOTAL_QUERIES : VALUE_QUERIES, groups = (block->count + most - 1) / most;
    float totals[ATTEND_QUERIES] = {0};
    struct strip strip;

    for (int first = 0; first < end; first = strip.last) {
        strip = strip_from(block, first, seen, end);
        exponentiate(block, first / TILE, (strip.last + TILE - 1) / TILE, max, few ? NULL : totals);
        for (int g = 0; g < groups; g++) {
            int query = block->count * g / groups;

            add_group(block, dtype, &strip, query, block->count * (g + 1) / groups - query, totals + query);
        }
    }
    for (int i = 0; i < block->count; i++)
        for (int d = 0; d < block->head_dim; d += LANES) {
            int left = block->head_dim - d;

            vec_store_left(block->to[i] + d, vec_div(vec_load_left(block->to[i] + d, left), vec_set(totals[i] * unit_of(dtype))), left);
        }
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
    score(block, dtype, seen, end, max);
    weigh(block, dtype, seen, end, max);
}

void KERNEL(attend)(const struct attend_block *block)
{
    attend_cache(block, DTYPE_F32);
}

void KERNEL(attend_bf16)(const struct attend_block *block)
{
    attend_cache(block, DTYPE_BF16);
}

void KERNEL(attend_e4m3)(const struct attend_block *block)
{
    attend_cache(block, DTYPE_E4M3);
}
