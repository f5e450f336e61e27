/* What a step does between its products: the heads of q, k and v on their way from the product to the cache, and what is done number by
 * number. Each number is computed as the CPU's kernels do; only the sum of squares of a norm goes another way, by lanes. */
#include "common/backend/cuda/kernel/tree.h"
#include "common/backend/cuda/kernel/warp.h"
#include "common/backend/cuda/kernels.h"

namespace
{
enum { THREADS = 256, WARPS = THREADS / 32, MOST_PAIRS = 4 /* of a lane: heads have up to 256 dimensions */ };

/* The pairs (i, i + half) of one head that a lane has: i = lane, lane + 32, ... */
struct pairs {
    float a[MOST_PAIRS], b[MOST_PAIRS];
};

__device__ __forceinline__ struct pairs load_pairs(const float *a, const float *b, int half, int lane)
{
    struct pairs pairs = {};

#pragma unroll
    for (int k = 0; k < MOST_PAIRS; k++) {
        int i = lane + 32 * k;

        if (i < half) {
            pairs.a[k] = a[i];
            pairs.b[k] = b[i];
        }
    }
    return pairs;
}

__device__ __forceinline__ void add_pairs(struct pairs *pairs, const struct pairs &bias)
{
#pragma unroll
    for (int k = 0; k < MOST_PAIRS; k++) {
        pairs->a[k] += bias.a[k];
        pairs->b[k] += bias.b[k];
    }
}

/* The RMS norm over the head, all lanes together. */
__device__ __forceinline__ void norm_pairs(struct pairs *pairs, const struct pairs &weight, float eps, int half)
{
    float squares = 0.0f, scale;

#pragma unroll
    for (int k = 0; k < MOST_PAIRS; k++)
        squares = __fmaf_rn(pairs->b[k], pairs->b[k], __fmaf_rn(pairs->a[k], pairs->a[k], squares));
    scale = 1.0f / sqrtf(warp_sum(squares) / (float)(2 * half) + eps);
#pragma unroll
    for (int k = 0; k < MOST_PAIRS; k++) {
        pairs->a[k] = pairs->a[k] * scale * weight.a[k];
        pairs->b[k] = pairs->b[k] * scale * weight.b[k];
    }
}

/* turn: cosine, sine */
__device__ __forceinline__ void turn_pairs(struct pairs *pairs, const struct pairs &turn, float scale)
{
#pragma unroll
    for (int k = 0; k < MOST_PAIRS; k++) {
        float a = pairs->a[k], b = pairs->b[k];

        pairs->a[k] = __fmaf_rn(a, turn.a[k], -(b * turn.b[k])) * scale;
        pairs->b[k] = __fmaf_rn(b, turn.a[k], a * turn.b[k]) * scale;
    }
}

__device__ void store_query(const struct pairs &pairs, float *to, int half, int lane)
{
#pragma unroll
    for (int k = 0; k < MOST_PAIRS; k++) {
        int i = lane + 32 * k;

        if (i < half) {
            to[i] = pairs.a[k];
            to[i + half] = pairs.b[k];
        }
    }
}

__device__ void store_place(const struct pairs &pairs, uint16_t *to, int half, int lane)
{
#pragma unroll
    for (int k = 0; k < MOST_PAIRS; k++) {
        int i = lane + 32 * k;

        if (i < half) {
            unsigned both = warp_pack(bf16(), pairs.a[k], pairs.b[k]);

            to[i] = (uint16_t)(both & 0xffff);
            to[i + half] = (uint16_t)(both >> 16);
        }
    }
}

__device__ void store_place(const struct pairs &pairs, uint8_t *to, int half, int lane)
{
#pragma unroll
    for (int k = 0; k < MOST_PAIRS; k++) {
        int i = lane + 32 * k;

        if (i < half) {
            to[i] = warp_e4m3(pairs.a[k]);
            to[i + half] = warp_e4m3(pairs.b[k]);
        }
    }
}

/* One warp for each head of a row: its q heads, then those of k, then those of v. All but the product itself is read while that is still made. */
__global__ __launch_bounds__(THREADS) void heads_kernel(const __grid_constant__ struct heads_launch launch)
{
    overlap_allow();
    const struct kernel_cache &cache = launch.cache;
    int lane = (int)threadIdx.x % 32, index = (int)blockIdx.x * WARPS + (int)threadIdx.x / 32, half = cache.head_dim / 2;
    int all = cache.heads + 2 * cache.kv_heads, row = index / all, head = index % all, r = min(row, launch.rows.count - 1);
    bool is_query = head < cache.heads, is_key = !is_query && head < cache.heads + cache.kv_heads;
    const float *weight = is_query ? launch.q_norm : is_key ? launch.k_norm : NULL;
    const float *bias = launch.bias == NULL ? NULL : launch.bias + head * cache.head_dim;
    size_t position = (size_t)warp_fresh(launch.rows.position + r), at = (size_t)warp_fresh(launch.rows.place + r);
    size_t slot = (size_t)warp_fresh(launch.rows.slot + r);
    struct pairs pairs, added = {}, norm = {}, turn = {};

    if (bias != NULL)
        added = load_pairs(bias, bias + half, half, lane);
    if (weight != NULL)
        norm = load_pairs(weight, weight + half, half, lane);
    if (is_query || is_key)
        turn = load_pairs(launch.cosine + position * half, launch.sine + position * half, half, lane);
    overlap_wait();
    if (row >= launch.rows.count)
        return;
    pairs = load_pairs(launch.qkv + (size_t)index * cache.head_dim, launch.qkv + (size_t)index * cache.head_dim + half, half, lane);
    if (bias != NULL)
        add_pairs(&pairs, added);
    if (weight != NULL)
        norm_pairs(&pairs, norm, launch.norm_eps, half);
    if (is_query || is_key)
        turn_pairs(&pairs, turn, is_query ? 1.0f / sqrtf((float)cache.head_dim) : 1.0f);
    if (is_query) {
        store_query(pairs, launch.q + ((size_t)row * cache.heads + head) * cache.head_dim, half, lane);
        return;
    }
    int h = (head - cache.heads) % cache.kv_heads;
    size_t place = ((slot * cache.kv_heads + h) * cache.context + at) * cache.head_dim;

    void *side = is_key ? cache.keys : cache.values;

    if (cache.is_e4m3)
        store_place(pairs, (uint8_t *)side + place, half, lane);
    else
        store_place(pairs, (uint16_t *)side + place, half, lane);
}

__global__ __launch_bounds__(THREADS) void pick_kernel(const int32_t *asked, int hidden, const float *x, float *to)
{
    const float *from = x + (size_t)asked[blockIdx.y] * hidden;
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    if (i < hidden)
        to[(size_t)blockIdx.y * hidden + i] = from[i];
}

__global__ __launch_bounds__(THREADS) void add_kernel(float *x, const float *sum, size_t count)
{
    overlap_allow();
    overlap_wait();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count)
        x[i] += sum[i];
}

template <int MOST> __global__ __launch_bounds__(THREADS) void tree_sum_kernel(const float *terms, int count, size_t size, float *to)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float term[MOST];

    if (i >= size)
        return;
#pragma unroll
    for (int t = 0; t < MOST; t++)
        term[t] = t < count ? terms[(size_t)t * size + i] : 0.0f;
    to[i] = tree_sum<MOST>(term, count);
}
} // namespace

int heads_prepare(void)
{
    int error = SHARED_PREFER(heads_kernel);

    error = error != 0 ? error : SHARED_PREFER(pick_kernel);
    error = error != 0 ? error : SHARED_PREFER(tree_sum_kernel<8>);
    error = error != 0 ? error : SHARED_PREFER(tree_sum_kernel<KERNEL_TERMS>);
    return error != 0 ? error : SHARED_PREFER(add_kernel);
}

void heads_start(const struct heads_launch *launch, struct CUstream_st *stream)
{
    int heads = launch->rows.count * (launch->cache.heads + 2 * launch->cache.kv_heads);
    struct heads_launch copy = *launch;

    LAUNCH_AHEAD(heads_kernel, (heads + WARPS - 1) / WARPS, THREADS, 0, stream, launch->overlaps, copy);
}

void pick_start(const int32_t *asked, int count, int hidden, const float *x, float *to, struct CUstream_st *stream)
{
    LAUNCH(pick_kernel, dim3((hidden + THREADS - 1) / THREADS, count), THREADS, 0, stream, asked, hidden, x, to);
}

void add_start(float *x, const float *sum, size_t count, int overlaps, struct CUstream_st *stream)
{
    LAUNCH_AHEAD(add_kernel, dim3((unsigned)((count + THREADS - 1) / THREADS)), THREADS, 0, stream, overlaps, x, sum, count);
}

void tree_sum_start(const float *terms, int count, size_t size, float *to, struct CUstream_st *stream)
{
    dim3 grid((unsigned)((size + THREADS - 1) / THREADS));

    if (count <= 8)
        LAUNCH(tree_sum_kernel<8>, grid, THREADS, 0, stream, terms, count, size, to);
    else
        LAUNCH(tree_sum_kernel<KERNEL_TERMS>, grid, THREADS, 0, stream, terms, count, size, to);
}
