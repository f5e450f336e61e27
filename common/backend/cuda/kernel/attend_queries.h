/* Which queries a block of attend.cu has, what they see, and how they come to the matrix unit. A query is one row and one query head. Lanes of a warp
 * are named (g, t) = (lane / 4, lane % 4), as PTX has them for mma.m16n8k16: a lane has the queries g and g + 8 of the block's 16. Invariant: what a
 * query sees depends on its own row alone. Device code, for attend.cu alone. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_ATTEND_QUERIES_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_ATTEND_QUERIES_H

#include "common/backend/cuda/kernel/warp.h"
#include "common/backend/cuda/kernels.h"

enum {
    ATTEND_QUERIES = 16,
    ATTEND_WARPS = 4,
    ATTEND_STRETCH = 32, /* places of a warp */
    ATTEND_CHUNK = ATTEND_WARPS * ATTEND_STRETCH,
};

struct work {
    struct attend_launch launch;
    int chunks;      /* of the grid */
    float2 *weights; /* [rows][heads][chunks] largest score, sum of exp(score - it) */
    float *sums;     /* [rows][heads][chunks][head_dim] of exp(score - it) value */
};

/* Some 16s of queries, from `query` on, of the rows of one slot; query i is head i % group of row i / group. */
struct tile {
    int first, rows; /* none: there is no such tile */
    int query;
};

struct view {
    int row, head; /* row -1: there is no such query, and it sees nothing */
    int base;
    uint64_t ancestors;
};

/* Each run of rows of one slot has tiles of its own, of so many queries each. */
static __device__ struct tile find_tile(const struct kernel_rows &rows, int group, int queries, int index, int lane)
{
    const int32_t *slot = rows.slot;
    unsigned low = __ballot_sync(0xffffffffu, lane < rows.count && (lane == 0 || warp_fresh(slot + lane) != warp_fresh(slot + lane - 1)));
    unsigned high = __ballot_sync(0xffffffffu, lane + 32 < rows.count && warp_fresh(slot + lane + 32) != warp_fresh(slot + lane + 31));
    uint64_t starts = (uint64_t)high << 32 | low;

    for (int first = 0, next; first < rows.count; first = next) {
        uint64_t later = first < 63 ? starts >> (first + 1) : 0;
        int tiles;

        next = later != 0 ? first + __ffsll((long long)later) : rows.count;
        tiles = ((next - first) * group + queries - 1) / queries;
        if (index < tiles)
            return {first, next - first, index * queries};
        index -= tiles;
    }
    return {0, 0, 0};
}

static __device__ struct view find_view(const struct work &work, const struct tile &tile, int i)
{
    const struct attend_launch &launch = work.launch;
    int group = launch.cache.heads / launch.cache.kv_heads, query = tile.query + i;
    struct view view = {-1, 0, 0, 0};

    if (query >= tile.rows * group)
        return view;
    view.row = tile.first + query / group;
    view.head = (int)blockIdx.y * group + query % group;
    view.base = warp_fresh(launch.rows.base + view.row);
    view.ancestors = warp_fresh(launch.rows.ancestors + view.row);
    return view;
}

/* The places [0, end) hold all that the row sees. */
static __device__ int row_end(int base, uint64_t ancestors, int context)
{
    unsigned high = (unsigned)(ancestors >> 32), low = (unsigned)ancestors;
    int bits = high != 0 ? 64 - __clz((int)high) : 32 - __clz((int)low);

    return min(base + bits, context);
}

/* Which of the 32 places from `first` on the query sees, one bit each. */
static __device__ unsigned seen_places(const struct view &view, int first)
{
    int past = first - view.base;

    if (past <= -ATTEND_STRETCH)
        return 0xffffffffu;
    if (past >= 64)
        return 0;
    if (past < 0)
        return (unsigned)(view.ancestors << -past) | ((1u << -past) - 1);
    return (unsigned)(view.ancestors >> past);
}

/* x = high + low, each rounded to bfloat16; two of them. */
static __device__ __forceinline__ void split(float x, float y, unsigned *high, unsigned *low)
{
    float2 rounded;

    *high = warp_pack(bf16(), x, y);
    rounded = warp_unpack(bf16(), *high);
    *low = warp_pack(bf16(), x - rounded.x, y - rounded.y);
}

/* The queries as A. Lane (g, t) of step s has of the queries g and g + 8 the dimensions 32 (s / 2) + 8 t + 4 (s % 2) .. + 3: any order of
 * the dimensions will do when keys come in the same.  staged: [steps][high, low][32] */
static __device__ void stage_queries(const struct work &work, const struct view view[2], int steps, int lane, uint4 *staged)
{
    const struct kernel_cache &cache = work.launch.cache;

    for (int step = (int)threadIdx.x / 32; step < steps; step += ATTEND_WARPS) {
        int d = step / 2 * 32 + lane % 4 * 8 + step % 2 * 4;
        unsigned high[2][2] = {}, low[2][2] = {};

        for (int half = 0; half < 2; half++)
            for (int pair = 0; pair < 2; pair++)
                if (view[half].row >= 0 && d + 2 * pair < cache.head_dim) {
                    const float *q = work.launch.q + (size_t)(view[half].row * cache.heads + view[half].head) * cache.head_dim + d;
                    float2 two = *(const float2 *)(const void *)(q + 2 * pair);

                    split(two.x, two.y, &high[half][pair], &low[half][pair]);
                }
        staged[step * 64 + lane] = {high[0][0], high[1][0], high[0][1], high[1][1]};
        staged[step * 64 + 32 + lane] = {low[0][0], low[1][0], low[0][1], low[1][1]};
    }
}

#endif
