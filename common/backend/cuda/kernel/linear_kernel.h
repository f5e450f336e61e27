/* The kernel of linear.cu, a linear map of few rows: the weights are read once, for all rows, as fast as memory gives them, and everything else hides
 * behind that.
 *
 * A team of eight warps takes a group of one or two panels of 16 output channels, then the group that is as many further on as there are
 * teams, and so on. Its warps share out the tiles of a panel: warp w has the tiles w, w + 8, w + 16 ... A tile goes from memory straight into
 * the registers in which the matrix instruction wants it (kernels.h has the layout), eight of them ahead of use, across barriers and from one
 * group to the next. They do not depend on the kernel ahead in the stream, so the first are on their way before it has ended.
 *
 * The rows, rounded to the type of the weights, are the other operand. They are staged in shared memory, all columns at once where they
 * fit, else in chunks, anew for each group: 8 bytes for each row and lane, 32 for each row and tile, so that a warp reads 8 rows at once
 * without conflicts. Lane l has of row l / 4 the columns 4 (l % 4) .. + 3: the matrix unit does not care which column is called which, as long
 * as both operands agree. A block is two teams, which share what is staged, where there is more than one row and work for both: a
 * multiprocessor, which has room for one such block or two of one team, reads each row once.
 *
 * A norm's weights are applied while rows are staged. Its scale is a number for each row and is applied to the sums; where numbers are f16,
 * whose range is small, it is found first and applied before rounding.
 *
 * Row-invariance. An output is summed over a warp's tiles in rising order, then over the warps in rising order; the sum of squares over 128
 * columns by a fixed tree, then over these in rising order. Nothing there knows how many rows there are, nor chunks or groups.
 * A template of the type of the weights, which linear_bf16.cu and linear_f16.cu make kernels of; nothing else includes it. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_LINEAR_KERNEL_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_LINEAR_KERNEL_H

#include "common/backend/cuda/kernel/linear_give.h"

/* The team waits for its own, or, where teams go through what is staged together, for the other one, too. */
static __device__ __forceinline__ void meet(const struct plan &plan, int team)
{
    if (plan.restage)
        __syncthreads();
    else
        warp_meet(team, THREADS);
}

template <typename T, int TILES, int PANELS, enum giving GIVING>
static __global__ void __launch_bounds__(linear_plan_teams(TILES, PANELS) * THREADS) linear_kernel(const __grid_constant__ struct plan plan)
{
    SHARED(memory);
    const struct member self = own_member();
    const struct shared_parts shared = {reinterpret_cast<uint2 *>(memory), reinterpret_cast<float *>(memory + plan.at_squares),
                                        reinterpret_cast<float *>(memory + plan.at_sums) + self.team * WARPS * PANELS * TILES * 128,
                                        reinterpret_cast<float *>(memory + plan.at_scale) + self.team * plan.launch.rows};
    constexpr int depth = AHEAD / PANELS;
    int warp = self.thread / 32, lane = self.thread % 32, ahead_of_first = self.team * (int)gridDim.x;
    int group = (int)blockIdx.x + ahead_of_first, stride = plan.teams * (int)gridDim.x; /* the first teams of all blocks come first */
    int steps = (plan.tiles + WARPS * depth - 1) / (WARPS * depth) * depth;             /* of a warp through a panel */
    int own = plan.slots > 1 ? ((lane / 4) ^ (warp & 3)) * 4 + lane % 4 : lane % 4;
    bool scales_first = plan.launch.norm != NULL && plan.launch.is_f16, squares = plan.launch.norm != NULL && !plan.launch.is_f16;
    bool is_first = true;
    uint4 ahead[depth][PANELS];

    overlap_allow();
#pragma unroll
    for (int i = 0; i < depth; i++)
        fetch<PANELS>(plan, group, i * WARPS + warp, ahead[i]);
    if (self.thread < PANELS && plan.launch.overlaps)
        prefetch(plan, group * PANELS + self.thread, PANELS, depth * WARPS);
    overlap_wait();
    if (scales_first) {
        stage<T>(plan, shared, 0, plan.tiles, false, true);
        __syncthreads();
        find_scales(plan, shared);
    }
    for (; group - ahead_of_first < plan.groups; group += stride, is_first = false) { /* both teams, the last time one perhaps for nothing */
        float sums[PANELS][TILES][4] = {};

        for (int first = 0; first < plan.tiles; first += plan.chunk) {
            int count = min(plan.chunk, plan.tiles - first), end = min(steps, (first + plan.chunk) / WARPS);

            if (plan.restage || is_first) {
                __syncthreads();
                if (plan.launch.is_rounded)
                    stage_rounded(plan, shared, first, count);
                else
                    stage<T>(plan, shared, first, count, true, squares && is_first);
                __syncthreads();
                if (squares && is_first && first + count == plan.tiles)
                    find_scales(plan, shared);
            }
            for (int step = first / WARPS; step < end; step += depth) {
#pragma unroll
                for (int i = 0; i < depth; i++) {
                    int tile = (step + i) * WARPS + warp, next = step + i + depth, wraps = next >= steps;

                    if (tile < plan.tiles)
                        linear_multiply<T, TILES, PANELS>(shared.staged + (size_t)((tile - first) * plan.slots) * 4 + own, ahead[i], sums);
                    next -= wraps ? steps : 0;
                    fetch<PANELS>(plan, wraps ? group + stride : group, next * WARPS + warp, ahead[i]);
                    warp_in_turn();
                }
            }
        }
        meet(plan, self.team); /* nobody reads the last group's sums any more, nor, where sums take their place, staged rows */
#pragma unroll
        for (int p = 0; p < PANELS; p++)
#pragma unroll
            for (int n = 0; n < TILES; n++)
                reinterpret_cast<float4 *>(shared.sums)[((warp * PANELS + p) * TILES + n) * 32 + lane] = {sums[p][n][0], sums[p][n][1], sums[p][n][2],
                                                                                                          sums[p][n][3]};
        meet(plan, self.team);
        if (GIVING == GIVE_EVIDENCE)
            give_evidence<TILES, PANELS>(plan, shared, group);
        else
            give<TILES, PANELS, GIVING == GIVE_SWIGLU>(plan, shared, group);
    }
}

template <typename T, int TILES, int PANELS, enum giving GIVING> static void start(struct plan plan, struct CUstream_st *stream)
{
    plan.groups = (plan.panels + PANELS - 1) / PANELS;
    plan.teams = plan.launch.rows > 1 && plan.groups > plan.launch.processors ? linear_plan_teams(TILES, PANELS) : 1;
    int shared_bytes = lay_out(&plan, TILES, PANELS);
    bool two = plan.teams == 1 && linear_plan_teams(TILES, PANELS) == 2 && 2 * (shared_bytes + BLOCK_BYTES) <= plan.launch.processor_bytes;
    int resident = plan.launch.processors * (two ? 2 : 1);

    LAUNCH_AHEAD((linear_kernel<T, TILES, PANELS, GIVING>), (unsigned)(plan.groups < resident ? plan.groups : resident), plan.teams * THREADS,
                 (size_t)shared_bytes, stream, plan.launch.overlaps, plan);
}

template <typename T, int TILES> static void start_rows(const struct plan &plan, struct CUstream_st *stream)
{
    bool pairs = pairs_of(plan.panels, plan.launch.processors);

    if (plan.launch.ffn > 0)
        start<T, TILES, 2, GIVE_SWIGLU>(plan, stream);
    else if (plan.launch.to == NULL && pairs)
        start<T, TILES, 2, GIVE_EVIDENCE>(plan, stream);
    else if (plan.launch.to == NULL)
        start<T, TILES, 1, GIVE_EVIDENCE>(plan, stream);
    else if (pairs)
        start<T, TILES, 2, GIVE_OUTPUTS>(plan, stream);
    else
        start<T, TILES, 1, GIVE_OUTPUTS>(plan, stream);
}

template <typename T> static void start_type(const struct plan &plan, struct CUstream_st *stream)
{
    if (plan.launch.rows <= 8)
        start_rows<T, 1>(plan, stream);
    else if (plan.launch.rows <= 16)
        start_rows<T, 2>(plan, stream);
    else if (plan.launch.rows <= 32)
        start_rows<T, 4>(plan, stream);
    else
        start_rows<T, 8>(plan, stream);
}

template <typename T, int TILES, int PANELS, enum giving GIVING> static int prepare_kernel(int block_bytes)
{
    int error = SHARED_LIMIT((linear_kernel<T, TILES, PANELS, GIVING>), block_bytes);

    return error != 0 ? error : SHARED_PREFER((linear_kernel<T, TILES, PANELS, GIVING>));
}

template <typename T, int TILES> static int prepare(int block_bytes)
{
    int error = prepare_kernel<T, TILES, 2, GIVE_SWIGLU>(block_bytes);

    error = error != 0 ? error : prepare_kernel<T, TILES, 2, GIVE_EVIDENCE>(block_bytes);
    error = error != 0 ? error : prepare_kernel<T, TILES, 1, GIVE_EVIDENCE>(block_bytes);
    error = error != 0 ? error : prepare_kernel<T, TILES, 2, GIVE_OUTPUTS>(block_bytes);
    return error != 0 ? error : prepare_kernel<T, TILES, 1, GIVE_OUTPUTS>(block_bytes);
}

template <typename T> static int prepare_type(int block_bytes)
{
    int error = prepare<T, 1>(block_bytes);

    error = error != 0 ? error : prepare<T, 2>(block_bytes);
    error = error != 0 ? error : prepare<T, 4>(block_bytes);
    return error != 0 ? error : prepare<T, 8>(block_bytes);
}

#endif
