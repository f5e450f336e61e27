/* The kernel of wide.cu and wide_clusters.cu: linear maps of many rows at once. linear.cu, which reads all rows for each group of panels, would take
 * as long for rows as for weights.
 *
 * Rows are rounded to the type of the weights beforehand, by who made them or by round_kernel, which finds the scale of their norm, too. They are
 * staged by cp.async, a stage ahead, 32 bytes for each tile and row, so that a warp reads eight rows at once without conflicts. Weights go straight
 * into registers, AHEAD tiles of each panel before their use. Blocks that share weights are neighbours, so these come from memory once.
 *
 * The bits are linear.cu's: an output is summed over the tiles w, w + 8, w + 16 ... in rising order for each w of 0 .. 7, then over these sums, the
 * slices, in rising order, by the same instruction with the same operands. There a warp has one w. Here a warp goes through all, one after the other;
 * or, in a cluster of eight blocks, a block has one, and the outputs of all are added up by warps that read the sums of the eight where they are.
 * A template of how the weights lie and of the block's shape, which wide*.cu make kernels of; nothing else includes it. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_WIDE_KERNEL_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_WIDE_KERNEL_H

#include "common/backend/cuda/kernel/linear.h"

enum {
    WARPS = 8,
    THREADS = 32 * WARPS,
    SLICES = 8,     /* sums of an output: the warps of a team of linear.cu */
    STAGE = 8,      /* tiles of rows staged at once, a multiple of AHEAD */
    ROW_BYTES = 32, /* of a tile */
};

/* Of a block: its warps have so many panels each and so many tiles of eight rows, where `sides` have the same panels; so many tiles of each panel are
 * on their way to a warp, as units of weights.h; so many blocks share out the slices. */
template <int PANELS_, int TILES_, int SIDES_, int AHEAD_, int CLUSTER_> struct wide_shape {
    enum {
        PANELS = PANELS_,
        TILES = TILES_,
        SIDES = SIDES_,
        AHEAD = AHEAD_,
        CLUSTER = CLUSTER_,
        ROWS = 8 * TILES * SIDES,
        BLOCK_PANELS = PANELS * WARPS / SIDES,
        STAGE_BYTES = STAGE * ROWS * ROW_BYTES,
        SHARED_BYTES = 2 * STAGE_BYTES,
    };
    static_assert(STAGE % AHEAD == 0, "a stage is a whole number of rounds of prefetching");
    static_assert(CLUSTER == 1 || (CLUSTER == (int)SLICES && PANELS == 1 && SIDES == 1), "a block has all slices, or one and a panel for each warp");
    static_assert(BLOCK_PANELS * TILES * 512 <= SHARED_BYTES || CLUSTER == 1, "the sums take the place of the rows");
};

struct wide_plan {
    struct wide_launch launch;
    int units; /* of a panel's weights */
    int panels;
    int steps; /* units of a slice, rounded up to AHEAD tiles */
    int row_blocks;
};

/* What there is of a unit of a warp's panels; zeros beyond. */
template <typename W, typename S>
static __device__ __forceinline__ void fetch(const struct wide_plan &plan, int panel, int slice, int end, int step,
                                             typename W::part weights[S::PANELS])
{
    int unit = step * SLICES + slice;

#pragma unroll
    for (int p = 0; p < S::PANELS; p++) {
        weights[p] = W::nothing();
        if (panel + p < plan.panels && slice < end && unit < plan.units)
            weights[p] = W::fetch(plan.launch.weights, (size_t)(panel + p) * (size_t)plan.units + (size_t)unit, S::SIDES > 1);
    }
}

/* Begins to copy the rows' columns of STAGE tiles of a slice, from step `first` on: [STAGE][ROWS][16]. */
template <int UNIT_TILES, typename S>
static __device__ __forceinline__ void stage(const struct wide_plan &plan, unsigned char *staged, int first_row, int slice, int first)
{
    const struct wide_launch &launch = plan.launch;

#pragma unroll
    for (int i = 0; i < S::STAGE_BYTES / 16 / THREADS; i++) {
        int piece = i * THREADS + (int)threadIdx.x, tile = piece / (2 * S::ROWS), row = first_row + piece / 2 % S::ROWS;
        int unit = (first + tile / UNIT_TILES) * SLICES + slice, column = 16 * (unit * UNIT_TILES + tile % UNIT_TILES) + 8 * (piece % 2);
        int there = row < launch.rows && column < launch.columns;
        const unsigned short *from = static_cast<const unsigned short *>(launch.from);

        warp_copy(staged + 16 * piece, there ? from + (size_t)row * (size_t)launch.columns + column : from, there);
    }
}

/* Where output i of a thread's tile lies: row 2 (l % 4) of the eight or the next, channel l / 4 of the panel or the eighth behind it. */
static __device__ __forceinline__ int row_of(int first_row, int n, int i)
{
    return first_row + 8 * n + 2 * ((int)threadIdx.x % 4) + i % 2;
}
static __device__ __forceinline__ int channel_of(int panel, int i)
{
    return 16 * panel + (int)threadIdx.x % 32 / 4 + i / 2 * 8;
}

/* total = scale total, or silu of the even panel's x the odd one's. */
template <bool SWIGLU, int PANELS, int TILES>
static __device__ __forceinline__ void finish(const struct wide_launch &launch, int first_row, float total[PANELS][TILES][4])
{
    float scale[TILES][2];

#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int row = row_of(first_row, n, i);

            scale[n][i] = launch.scale != NULL && row < launch.rows ? warp_fresh(launch.scale + row) : 1.0f;
        }
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int p = 0; p < PANELS; p++)
                total[p][n][i] *= scale[n][i % 2];
            if (SWIGLU)
                total[0][n][i] = total[0][n][i] / (1.0f + expf(-total[0][n][i])) * total[PANELS - 1][n][i];
        }
}

/* total += the sums that are stored, all loads issued before the first addition. */
template <int PANELS, int TILES>
static __device__ __forceinline__ void add(const struct wide_launch &launch, int panel, int first_row, float total[PANELS][TILES][4])
{
    const float *all = static_cast<const float *>(launch.to);
    float before[PANELS][TILES][4];

#pragma unroll
    for (int p = 0; p < PANELS; p++)
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int row = row_of(first_row, n, i), channel = channel_of(panel + p, i), there = row < launch.rows && channel < launch.outputs;

                before[p][n][i] = there ? warp_fresh(all + (size_t)row * (size_t)launch.outputs + channel) : 0.0f;
            }
#pragma unroll
    for (int p = 0; p < PANELS; p++)
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                total[p][n][i] = before[p][n][i] + total[p][n][i];
}

template <bool SWIGLU, int PANELS, int TILES>
static __device__ __forceinline__ void give(const struct wide_launch &launch, int panel, int first_row, const float total[PANELS][TILES][4])
{
    int channels = SWIGLU ? launch.ffn : launch.outputs;

#pragma unroll
    for (int p = 0; p < (SWIGLU ? 1 : PANELS); p++)
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int row = row_of(first_row, n, i), channel = channel_of(SWIGLU ? panel / 2 : panel + p, i);

                if (row < launch.rows && channel < channels)
                    warp_put(launch.to, SWIGLU ? launch.gives : KERNEL_F32, (size_t)row * (size_t)channels + (size_t)channel, total[p][n][i]);
            }
}

/* Totals of a block's rows from first_row on, to where they belong. */
template <bool SWIGLU, int PANELS, int TILES>
static __device__ __forceinline__ void settle(const struct wide_launch &launch, int panel, int first_row, float total[PANELS][TILES][4])
{
    finish<SWIGLU, PANELS, TILES>(launch, first_row, total);
    if (!SWIGLU && launch.adds)
        add<PANELS, TILES>(launch, panel, first_row, total);
    give<SWIGLU, PANELS, TILES>(launch, panel, first_row, total);
}

/* Adds up a cluster's outputs, eight rows of a panel, or of gate and up, at a time: each warp has its share of them, of all blocks' sums. */
template <typename S, bool SWIGLU>
static __device__ __forceinline__ void settle_cluster(const struct wide_plan &plan, int panel, int first_row, const float4 *sums)
{
    constexpr int panels = SWIGLU ? 2 : 1;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, rank = (int)blockIdx.x % S::CLUSTER;

    for (int share = warp * S::CLUSTER + rank; share < S::BLOCK_PANELS / panels * S::TILES; share += WARPS * S::CLUSTER) {
        int tile = share % S::TILES, own = share / S::TILES * panels;
        float total[panels][1][4];

#pragma unroll
        for (int p = 0; p < panels; p++)
#pragma unroll
            for (int slice = 0; slice < SLICES; slice++) {
                const float4 sum = cluster_of(sums, slice)[((own + p) * S::TILES + tile) * 32 + lane];
                const float four[4] = {sum.x, sum.y, sum.z, sum.w};

#pragma unroll
                for (int i = 0; i < 4; i++)
                    total[p][0][i] = slice > 0 ? total[p][0][i] + four[i] : four[i];
            }
        settle<SWIGLU, panels, 1>(plan.launch, panel + own, first_row + 8 * tile, total);
    }
}

template <typename W, typename S, bool SWIGLU>
static __global__ void __launch_bounds__(THREADS, S::CLUSTER > 1 ? 2 : 1) wide_kernel(const __grid_constant__ struct wide_plan plan)
{
    SHARED(memory);
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, side = warp % S::SIDES, number = (int)blockIdx.x / S::CLUSTER;
    int block_row = number % plan.row_blocks * S::ROWS, block_panel = number / plan.row_blocks * S::BLOCK_PANELS;
    int panel = block_panel + warp / S::SIDES * S::PANELS, place = 0;
    int first_slice = S::CLUSTER > 1 ? (int)blockIdx.x % S::CLUSTER : 0, end_slice = S::CLUSTER > 1 ? first_slice + 1 : (int)SLICES;
    const uint2 *own = reinterpret_cast<const uint2 *>(memory) + side * S::TILES * 32 + lane;
    float total[S::PANELS][S::TILES][4];
    constexpr int unit_tiles = W::TILES, depth = S::AHEAD / unit_tiles, stage_steps = STAGE / unit_tiles, tile_rows = S::ROWS * ROW_BYTES / 8;
    typename W::part ahead[depth][S::PANELS];

    overlap_allow();
#pragma unroll
    for (int i = 0; i < depth; i++)
        fetch<W, S>(plan, panel, first_slice, end_slice, i, ahead[i]);
    overlap_wait();
    stage<unit_tiles, S>(plan, memory, block_row, first_slice, 0);
    for (int slice = first_slice; slice < end_slice; slice++) {
        float sums[S::PANELS][S::TILES][4] = {};

        for (int first = 0; first < plan.steps; first += stage_steps, place = !place) {
            int end = min(first + stage_steps, plan.steps), turns = first + stage_steps >= plan.steps;
            const uint2 *rows = own + place * (S::STAGE_BYTES / 8);

            warp_copied();
            __syncthreads(); /* this stage is there, and nobody reads the other one any more */
            if (slice + turns < end_slice)
                stage<unit_tiles, S>(plan, memory + !place * S::STAGE_BYTES, block_row, slice + turns, turns ? 0 : first + stage_steps);
            for (int step = first; step < end; step += depth) {
#pragma unroll
                for (int i = 0; i < depth; i++) {
                    int next = step + i + depth, wraps = next >= plan.steps;
                    const uint2 *tiles[unit_tiles];

#pragma unroll
                    for (int t = 0; t < unit_tiles; t++)
                        tiles[t] = rows + ((step - first + i) * unit_tiles + t) * tile_rows;
                    if ((step + i) * SLICES + slice < plan.units)
                        W::template multiply<S::TILES, S::PANELS>(tiles, ahead[i], sums);
                    fetch<W, S>(plan, panel, slice + wraps, end_slice, wraps ? next - plan.steps : next, ahead[i]);
                    warp_in_turn();
                }
            }
        }
#pragma unroll
        for (int p = 0; p < S::PANELS; p++)
#pragma unroll
            for (int n = 0; n < S::TILES; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    total[p][n][i] = slice > first_slice ? total[p][n][i] + sums[p][n][i] : sums[p][n][i];
    }
    if constexpr (S::CLUSTER == 1) {
        settle<SWIGLU, S::PANELS, S::TILES>(plan.launch, panel, block_row + side * 8 * S::TILES, total);
    } else {
        float4 *sums = reinterpret_cast<float4 *>(memory);

        __syncthreads(); /* nobody reads rows any more, whose place the sums take */
#pragma unroll
        for (int n = 0; n < S::TILES; n++)
            sums[(warp * S::TILES + n) * 32 + lane] = {total[0][n][0], total[0][n][1], total[0][n][2], total[0][n][3]};
        cluster_meet(); /* all sums are there */
        settle_cluster<S, SWIGLU>(plan, block_panel, block_row, sums);
        cluster_meet(); /* no block ends while another reads its sums */
    }
}

template <typename W, typename S, bool SWIGLU> static void start(const struct wide_plan &plan, struct CUstream_st *stream)
{
    unsigned blocks = (unsigned)(S::CLUSTER * plan.row_blocks * ((plan.panels + S::BLOCK_PANELS - 1) / S::BLOCK_PANELS));

    LAUNCH_TOGETHER((wide_kernel<W, S, SWIGLU>), S::CLUSTER, blocks, THREADS, (size_t)S::SHARED_BYTES, stream, plan.launch.overlaps, plan);
}

template <typename W, typename S> static void start_type(const struct wide_launch *launch, struct CUstream_st *stream)
{
    constexpr int depth = S::AHEAD / W::TILES;
    struct wide_plan plan = {};

    plan.launch = *launch;
    plan.units = (launch->columns + 16 * W::TILES - 1) / (16 * W::TILES);
    plan.panels = (launch->outputs + 15) / 16;
    plan.steps = ((plan.units + SLICES - 1) / SLICES + depth - 1) / depth * depth;
    plan.row_blocks = (launch->rows + S::ROWS - 1) / S::ROWS;
    if (launch->ffn > 0)
        start<W, S, true>(plan, stream);
    else
        start<W, S, false>(plan, stream);
}

template <typename W, typename S, bool SWIGLU> static int prepare_kernel()
{
    int error = SHARED_LIMIT((wide_kernel<W, S, SWIGLU>), S::SHARED_BYTES);

    return error != 0 ? error : SHARED_PREFER((wide_kernel<W, S, SWIGLU>));
}

template <typename W, typename S> static int prepare_type()
{
    int error = prepare_kernel<W, S, false>();

    return error != 0 ? error : prepare_kernel<W, S, true>();
}

/* By how the weights lie, as linear_launch counts. */
struct wide_starts {
    void (*start)(const struct wide_launch *launch, struct CUstream_st *stream);
    int (*prepare)();
};

template <typename W, typename S> static constexpr struct wide_starts wide_starts_of()
{
    return {start_type<W, S>, prepare_type<W, S>};
}

template <typename S> static const struct wide_starts &wide_kind(int layout)
{
    static const struct wide_starts kinds[LAYOUTS] = {
        {NULL, NULL},
        wide_starts_of<plain_weights<f16>, S>(),
        wide_starts_of<plain_weights<bf16>, S>(),
        wide_starts_of<block_weights<DTYPE_F8>, S>(),
        wide_starts_of<block_weights<DTYPE_Q8_0>, S>(),
        wide_starts_of<block_weights<DTYPE_Q4_0>, S>(),
        wide_starts_of<block_weights<DTYPE_Q4_1>, S>(),
        wide_starts_of<block_weights<DTYPE_Q5_0>, S>(),
        wide_starts_of<block_weights<DTYPE_Q5_1>, S>(),
        wide_starts_of<block_weights<DTYPE_Q4_Z>, S>(),
        wide_starts_of<block_weights<DTYPE_Q2_K>, S>(),
        wide_starts_of<block_weights<DTYPE_Q3_K>, S>(),
        wide_starts_of<block_weights<DTYPE_Q4_K>, S>(),
        wide_starts_of<block_weights<DTYPE_Q5_K>, S>(),
        wide_starts_of<block_weights<DTYPE_Q6_K>, S>(),
        wide_starts_of<block_weights<BLOCKS_MIXED>, S>(),
        wide_starts_of<block_weights<BLOCKS_ZEROS>, S>(),
    };

    return kinds[layout];
}

#endif
