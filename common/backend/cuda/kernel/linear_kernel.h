/* The kernel of linear.cu, a linear map of few rows: the weights are read once, for all rows, as fast as memory gives them, and everything else hides
 * behind that.
 *
 * A team of eight warps takes a group of one or two panels of 16 output channels, then the group that is as many further on as there are
 * teams, and so on. Its warps share out the tiles of a panel: warp w has the tiles w, w + 8, w + 16 ... A tile goes from memory straight into
 * the registers in which the matrix instruction wants it (kernels.h has the layout), eight of them ahead of use, across barriers and from one
 * group to the next. Of weights in blocks it is two tiles at once, as weights.h has them; all else is the same. They do not depend on the kernel
 * ahead in the stream, so the first are on their way before it has ended.
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
 * A template of how the weights lie (weights.h), which linear_*.cu make kernels of; nothing else includes it. */
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

template <typename W, int TILES, int PANELS, enum giving GIVING>
static __global__ void __launch_bounds__(linear_plan_teams(TILES, PANELS) * THREADS) linear_kernel(const __grid_constant__ struct plan plan)
{
    SHARED(memory);
    const struct member self = own_member();
    const struct shared_parts shared = {reinterpret_cast<uint2 *>(memory), reinterpret_cast<float *>(memory + plan.at_squares),
                                        reinterpret_cast<float *>(memory + plan.at_sums) + self.team * WARPS * PANELS * TILES * 128,
                                        reinterpret_cast<float *>(memory + plan.at_scale) + self.team * plan.launch.rows};
    constexpr int depth = AHEAD / PANELS / W::TILES, unit_tiles = W::TILES, turn = WARPS * unit_tiles; /* tiles of a step of all warps */
    int warp = self.thread / 32, lane = self.thread % 32, ahead_of_first = self.team * (int)gridDim.x;
    int group = (int)blockIdx.x + ahead_of_first, stride = plan.teams * (int)gridDim.x; /* the first teams of all blocks come first */
    int steps = (plan.units + WARPS * depth - 1) / (WARPS * depth) * depth;             /* of a warp through a panel */
    int own[unit_tiles];                                                                /* tile t of all of a warp's units */
    bool scales_first = plan.launch.norm != NULL && plan.launch.is_f16, squares = plan.launch.norm != NULL && !plan.launch.is_f16;
    bool is_first = true;
    typename W::part ahead[depth][PANELS];

#pragma unroll
    for (int t = 0; t < unit_tiles; t++)
        own[t] = plan.slots > 1 ? ((lane / 4) ^ ((warp * unit_tiles + t) & 3)) * 4 + lane % 4 : lane % 4;
    overlap_allow();
#pragma unroll
    for (int i = 0; i < depth; i++)
        fetch<W, PANELS>(plan, group, i * WARPS + warp, ahead[i]);
    if (self.thread < PANELS && plan.launch.overlaps)
        prefetch<W>(plan, group * PANELS + self.thread, PANELS, depth * WARPS);
    overlap_wait();
    if (scales_first) {
        stage<typename W::number>(plan, shared, 0, plan.tiles, false, true);
        __syncthreads();
        find_scales(plan, shared);
    }
    for (; group - ahead_of_first < plan.groups; group += stride, is_first = false) { /* both teams, the last time one perhaps for nothing */
        float sums[PANELS][TILES][4] = {};

        for (int first = 0; first < plan.tiles; first += plan.chunk) {
            int count = min(plan.chunk, plan.tiles - first), end = min(steps, (first + plan.chunk + turn - 1) / turn);

            if (plan.restage || is_first) {
                __syncthreads();
                if (plan.launch.is_rounded)
                    stage_rounded(plan, shared, first, count);
                else
                    stage<typename W::number>(plan, shared, first, count, true, squares && is_first);
                __syncthreads();
                if (squares && is_first && first + count == plan.tiles)
                    find_scales(plan, shared);
            }
            for (int step = first / turn; step < end; step += depth) {
#pragma unroll
                for (int i = 0; i < depth; i++) {
                    int unit = (step + i) * WARPS + warp, next = step + i + depth, wraps = next >= steps;
                    const uint2 *rows[unit_tiles];

#pragma unroll
                    for (int t = 0; t < unit_tiles; t++)
                        rows[t] = shared.staged + (size_t)((unit * unit_tiles + t - first) * plan.slots) * 4 + own[t];
                    if (unit < plan.units)
                        W::template multiply<TILES, PANELS>(rows, ahead[i], sums);
                    next -= wraps ? steps : 0;
                    fetch<W, PANELS>(plan, wraps ? group + stride : group, next * WARPS + warp, ahead[i]);
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

template <typename W, int TILES, int PANELS, enum giving GIVING> static void start(struct plan plan, struct CUstream_st *stream)
{
    plan.groups = (plan.panels + PANELS - 1) / PANELS;
    plan.teams = plan.launch.rows > 1 && plan.groups > plan.launch.processors ? linear_plan_teams(TILES, PANELS) : 1;
    int shared_bytes = lay_out(&plan, TILES, PANELS);
    bool two = plan.teams == 1 && linear_plan_teams(TILES, PANELS) == 2 && 2 * (shared_bytes + BLOCK_BYTES) <= plan.launch.processor_bytes;
    int resident = plan.launch.processors * (two ? 2 : 1);

    LAUNCH_AHEAD((linear_kernel<W, TILES, PANELS, GIVING>), (unsigned)(plan.groups < resident ? plan.groups : resident), plan.teams * THREADS,
                 (size_t)shared_bytes, stream, plan.launch.overlaps, plan);
}

template <typename W, int TILES> static void start_rows(const struct plan &plan, struct CUstream_st *stream)
{
    bool pairs = pairs_of(plan.launch.layout, plan.panels, plan.launch.processors);

    if (plan.launch.ffn > 0) {
        start<W, TILES, 2, GIVE_SWIGLU>(plan, stream);
        return;
    }
    if constexpr (W::HAS_PAIRS) {
        if (pairs && plan.launch.to == NULL)
            start<W, TILES, 2, GIVE_EVIDENCE>(plan, stream);
        else if (pairs)
            start<W, TILES, 2, GIVE_OUTPUTS>(plan, stream);
    }
    if (!pairs && plan.launch.to == NULL)
        start<W, TILES, 1, GIVE_EVIDENCE>(plan, stream);
    else if (!pairs)
        start<W, TILES, 1, GIVE_OUTPUTS>(plan, stream);
}

template <typename W> static void start_type(const struct plan &plan, struct CUstream_st *stream)
{
    if (plan.launch.rows <= 8)
        start_rows<W, 1>(plan, stream);
    else if (plan.launch.rows <= 16)
        start_rows<W, 2>(plan, stream);
    else if (plan.launch.rows <= 32)
        start_rows<W, 4>(plan, stream);
    else
        start_rows<W, 8>(plan, stream);
}

template <typename W, int TILES, int PANELS, enum giving GIVING> static int prepare_kernel(int block_bytes)
{
    int error = SHARED_LIMIT((linear_kernel<W, TILES, PANELS, GIVING>), block_bytes);

    return error != 0 ? error : SHARED_PREFER((linear_kernel<W, TILES, PANELS, GIVING>));
}

template <typename W, int TILES> static int prepare(int block_bytes)
{
    int error = prepare_kernel<W, TILES, 2, GIVE_SWIGLU>(block_bytes);

    error = error != 0 ? error : prepare_kernel<W, TILES, 1, GIVE_EVIDENCE>(block_bytes);
    error = error != 0 ? error : prepare_kernel<W, TILES, 1, GIVE_OUTPUTS>(block_bytes);
    if constexpr (W::HAS_PAIRS) {
        error = error != 0 ? error : prepare_kernel<W, TILES, 2, GIVE_EVIDENCE>(block_bytes);
        error = error != 0 ? error : prepare_kernel<W, TILES, 2, GIVE_OUTPUTS>(block_bytes);
    }
    return error;
}

template <typename W> static int prepare_type(int block_bytes)
{
    int error = prepare<W, 1>(block_bytes);

    error = error != 0 ? error : prepare<W, 2>(block_bytes);
    error = error != 0 ? error : prepare<W, 4>(block_bytes);
    return error != 0 ? error : prepare<W, 8>(block_bytes);
}

template <typename W> static struct linear_kind kind()
{
    return {start_type<W>, prepare_type<W>};
}

#endif
