/* What a kernel of linear.cu takes in: rows into shared memory, with the scales of their norms, and weights into registers, as linear_kernel.h has
 * it. Owns the layout of what is staged. Device code, for linear_kernel.h alone; it writes nothing to the device's memory. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_LINEAR_STAGE_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_LINEAR_STAGE_H

#include "common/backend/cuda/kernel/linear_plan.h"

struct shared_parts {
    uint2 *staged;  /* [chunk][slots][4] */
    float *squares; /* [rows][segments] */
    float *sums;    /* of the team, [WARPS][PANELS][TILES][32][4] */
    float *scale;   /* of the team, [rows] */
};

/* A team and a thread of it */
struct member {
    int team, thread;
};

static __device__ __forceinline__ struct member own_member()
{
    return {(int)threadIdx.x / THREADS, (int)threadIdx.x % THREADS};
}

/* A row is fresh, a norm's weights are kept. */
template <bool KEPT, typename T> static __device__ __forceinline__ T read(const T *from)
{
    return KEPT ? warp_kept(from) : warp_fresh(from);
}

template <bool KEPT> static __device__ __forceinline__ float4 read_four(const struct plan &plan, const float *vector, int column)
{
    int columns = plan.launch.columns;
    float4 value = {0.0f, 0.0f, 0.0f, 0.0f};

    if (plan.aligned && column < columns)
        return read<KEPT>(reinterpret_cast<const float4 *>(vector + column));
    if (column < columns)
        value.x = read<KEPT>(vector + column);
    if (column + 1 < columns)
        value.y = read<KEPT>(vector + column + 1);
    if (column + 2 < columns)
        value.z = read<KEPT>(vector + column + 2);
    if (column + 3 < columns)
        value.w = read<KEPT>(vector + column + 3);
    return value;
}

/* Sums each of four numbers over the warp; lane 8 i has the sum of number i. */
static __device__ __forceinline__ float sum_four(const float value[4], int lane)
{
    int high = lane & 16, middle = lane & 8;
    float first = high ? value[2] : value[0], second = high ? value[3] : value[1], sum;

    first += __shfl_xor_sync(0xffffffffu, high ? value[0] : value[2], 16);
    second += __shfl_xor_sync(0xffffffffu, high ? value[1] : value[3], 16);
    sum = middle ? second : first;
    sum += __shfl_xor_sync(0xffffffffu, middle ? first : second, 8);
    for (int by = 4; by > 0; by /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, by);
    return sum;
}

/* Takes the columns of the tiles [first, first + count) of all rows: into shared memory if `stores`, their squares into shared.squares if
 * `squares`. An item is four columns of one row; teams take as many in turns, BATCH at most. The rows of a sweep follow each other, so the weights of its
 * norm are read once for all of them that a team takes at once. */
template <typename T>
static __device__ void stage(const struct plan &plan, const struct shared_parts &shared, int first, int count, bool stores, bool squares)
{
    const struct linear_launch &launch = plan.launch;
    const struct member self = own_member();
    int thread = self.thread, lane = thread % 32, sweeps = (count + SWEEP_TILES - 1) / SWEEP_TILES, items = sweeps * launch.rows;
    bool scales = launch.is_f16 && launch.norm != NULL;
    int share = min((int)BATCH, (items + plan.teams - 1) / plan.teams);

    for (int item = self.team * share; item < items; item += plan.teams * share) {
        float4 x[BATCH], norm = {1.0f, 1.0f, 1.0f, 1.0f};
        float square[BATCH];
        int normed = item / launch.rows, end = min(items, item + share); /* normed: the sweep whose weights `norm` has */

        if (launch.norm != NULL)
            norm = read_four<true>(plan, launch.norm, 16 * first + SWEEP * normed + 4 * thread);

#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            int sweep = (item + i) / launch.rows, row = (item + i) % launch.rows, column = 16 * first + SWEEP * sweep + 4 * thread;

            x[i] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (item + i < end)
                x[i] = read_four<false>(plan, static_cast<const float *>(launch.from) + (size_t)row * (size_t)launch.columns, column);
        }
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            int sweep = (item + i) / launch.rows, row = (item + i) % launch.rows, tile = SWEEP_TILES * sweep + thread / 4;
            int slot = plan.slots > 1 ? row ^ (tile & 3) : 0; /* neighbouring tiles in different banks */

            if (launch.norm != NULL && sweep != normed && item + i < end) {
                norm = read_four<true>(plan, launch.norm, 16 * first + SWEEP * sweep + 4 * thread);
                normed = sweep;
            }
            square[i] = x[i].x * x[i].x + x[i].y * x[i].y + (x[i].z * x[i].z + x[i].w * x[i].w);
            if (stores && item + i < end && tile < count)
                shared.staged[(size_t)(tile * plan.slots + slot) * 4 + thread % 4] =
                    linear_round_four<T>(x[i], norm, scales ? shared.scale[row] : 1.0f);
        }
#pragma unroll
        for (int four = 0; four < BATCH; four += 4) { /* one, but written so it takes fewer registers */
            if (!squares || item + four >= end)
                continue;
            float sum = sum_four(square + four, lane);
            int mine = item + four + lane / 8, sweep = first / SWEEP_TILES + mine / launch.rows;

            if (lane % 8 == 0 && mine < end)
                shared.squares[mine % launch.rows * plan.segments + sweep * WARPS + thread / 32] = sum;
        }
    }
}

/* The same of rows that are rounded already, in pieces of eight columns. */
static __device__ void stage_rounded(const struct plan &plan, const struct shared_parts &shared, int first, int count)
{
    const struct linear_launch &launch = plan.launch;
    int pieces = 2 * count;

    for (int i = (int)threadIdx.x; i < launch.rows * pieces; i += plan.teams * THREADS) {
        int row = i / pieces, tile = i % pieces / 2, half = i % 2, column = 16 * (first + tile) + 8 * half;
        const unsigned short *from = static_cast<const unsigned short *>(launch.from) + (size_t)row * (size_t)launch.columns + column;
        int slot = plan.slots > 1 ? row ^ (tile & 3) : 0;
        uint2 *to = shared.staged + (size_t)(tile * plan.slots + slot) * 4 + 2 * half;

        if (plan.aligned) {
            warp_copy(to, column < launch.columns ? from : launch.from, column < launch.columns);
            continue;
        }
#pragma unroll
        for (int k = 0; k < 8; k++)
            reinterpret_cast<unsigned short *>(to)[k] = column + k < launch.columns ? warp_fresh(from + k) : (unsigned short)0;
    }
    warp_copied();
}

/* The scale of the norm of each row, from the squares of all its columns; a team finds its own. */
static __device__ void find_scales(const struct plan &plan, const struct shared_parts &shared)
{
    int row = own_member().thread;
    float sum = 0.0f;

    if (row >= plan.launch.rows)
        return;
    for (int i = 0; i < plan.segments; i++)
        sum += shared.squares[row * plan.segments + i];
    shared.scale[row] = 1.0f / sqrtf(sum / (float)plan.launch.columns + plan.launch.norm_eps);
}

/* What there is of a warp's unit of a group's panels; zeros beyond. */
template <typename W, int PANELS>
static __device__ __forceinline__ void fetch(const struct plan &plan, int group, int unit, typename W::part weights[PANELS])
{
#pragma unroll
    for (int p = 0; p < PANELS; p++) {
        int panel = group * PANELS + p;

        weights[p] = W::nothing();
        if (panel < plan.panels && unit < plan.units)
            weights[p] = W::fetch(plan.launch.weights, (size_t)panel * (size_t)plan.units + (size_t)unit, false);
    }
}

/* Brings more of a panel, of so many of a group, than the registers take, from unit `first` on, as near as the L2 cache. */
template <typename W> static __device__ __forceinline__ void prefetch(const struct plan &plan, int panel, int panels, int first)
{
    int all = plan.units / W::GROUP_UNITS, begin = first / W::GROUP_UNITS;
    int count = min(all - begin, min(max(plan.launch.rows, 8), 16) * (int)PREFETCH_BYTES / (int)W::GROUP_BYTES / panels);
    const unsigned char *at =
        static_cast<const unsigned char *>(plan.launch.weights) + ((size_t)panel * (size_t)all + (size_t)begin) * W::GROUP_BYTES;

    if (count > 0 && panel < plan.panels)
        warp_prefetch(reinterpret_cast<const uint4 *>(at), (unsigned)count * W::GROUP_BYTES);
}

#endif
