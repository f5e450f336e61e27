/* Linear maps of many rows at once, as a prompt has them: linear.cu, which reads all rows for each group of panels, would take as long for rows as
 * for weights. Here a block has 128 rows and eight panels of 16 output channels; eight warps share them out, two panels and 64 rows each.
 *
 * Rows are rounded to the type of the weights beforehand, by who made them or by round_kernel, which finds the scale of their norm, too. They are
 * staged by cp.async, a stage ahead, 32 bytes for each tile and row, so that a warp reads eight rows at once without conflicts. Weights go straight
 * into registers, AHEAD tiles of each panel before their use; the second warp of a panel finds them in the L1 cache. Blocks that share weights are
 * neighbours, so these come from memory once.
 *
 * The bits are linear.cu's: an output is summed over the tiles w, w + 8, w + 16 ... in rising order for each w of 0 .. 7, then over these sums in
 * rising order, by the same instruction with the same operands. There a warp has one w; here a warp goes through all, one after the other. */
#include "common/backend/cuda/kernel/linear.h"

namespace
{
enum {
    WARPS = 8,
    THREADS = 32 * WARPS,
    SLICES = 8, /* sums of an output: the warps of a team of linear.cu */
    PANELS = 2, /* of a warp */
    TILES = 8,  /* of eight rows, of a warp */
    SIDES = 2,  /* warps that have the same panels */
    ROWS = 8 * TILES * SIDES,
    BLOCK_PANELS = PANELS * WARPS / SIDES,
    AHEAD = 4, /* tiles of each panel on their way to a warp, as units of weights.h */
    STAGE = 8, /* tiles of rows staged at once, a multiple of AHEAD */
    ROW_BYTES = 32, /* of a tile */
    STAGE_BYTES = STAGE * ROWS * ROW_BYTES,
    SEGMENT = 128, /* columns whose squares a warp sums, as in linear.cu */
    SEGMENTS = KERNEL_MAX_HIDDEN / SEGMENT,
    ROUND_BYTES = 4 * (SEGMENTS + 1),
};
static_assert(STAGE % AHEAD == 0, "a stage is a whole number of rounds of prefetching");

struct plan {
    struct wide_launch launch;
    int units; /* of a panel's weights */
    int panels;
    int steps; /* units of a slice, rounded up to AHEAD tiles */
    int row_blocks;
};

/* What there is of a unit of a warp's panels; zeros beyond. */
template <typename W>
__device__ __forceinline__ void fetch(const struct plan &plan, int panel, int slice, int step, typename W::part weights[PANELS])
{
    int unit = step * SLICES + slice;

#pragma unroll
    for (int p = 0; p < PANELS; p++) {
        weights[p] = W::nothing();
        if (panel + p < plan.panels && slice < SLICES && unit < plan.units)
            weights[p] = W::fetch(plan.launch.weights, (size_t)(panel + p) * (size_t)plan.units + (size_t)unit, true);
    }
}

/* Begins to copy the rows' columns of STAGE tiles of a slice, from step `first` on: [STAGE][ROWS][16]. */
template <int UNIT_TILES>
__device__ __forceinline__ void stage(const struct plan &plan, unsigned char *staged, int first_row, int slice, int first)
{
    const struct wide_launch &launch = plan.launch;

#pragma unroll
    for (int i = 0; i < STAGE_BYTES / 16 / THREADS; i++) {
        int piece = i * THREADS + (int)threadIdx.x, tile = piece / (2 * ROWS), row = first_row + piece / 2 % ROWS;
        int unit = (first + tile / UNIT_TILES) * SLICES + slice, column = 16 * (unit * UNIT_TILES + tile % UNIT_TILES) + 8 * (piece % 2);
        int there = row < launch.rows && column < launch.columns;
        const unsigned short *from = static_cast<const unsigned short *>(launch.from);

        warp_copy(staged + 16 * piece, there ? from + (size_t)row * (size_t)launch.columns + column : from, there);
    }
}

/* Where output i of a thread's tile lies: row 2 (l % 4) of the eight or the next, channel l / 4 of the panel or the eighth behind it. */
__device__ __forceinline__ int row_of(int first_row, int n, int i)
{
    return first_row + 8 * n + 2 * ((int)threadIdx.x % 4) + i % 2;
}
__device__ __forceinline__ int channel_of(int panel, int i)
{
    return 16 * panel + (int)threadIdx.x % 32 / 4 + i / 2 * 8;
}

/* total = scale total, or silu of the even panel's x the odd one's. */
template <bool SWIGLU> __device__ __forceinline__ void finish(const struct wide_launch &launch, int first_row, float total[PANELS][TILES][4])
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
__device__ __forceinline__ void add(const struct wide_launch &launch, int panel, int first_row, float total[PANELS][TILES][4])
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

template <bool SWIGLU>
__device__ __forceinline__ void give(const struct wide_launch &launch, int panel, int first_row, const float total[PANELS][TILES][4])
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

template <typename W, bool SWIGLU> __global__ void __launch_bounds__(THREADS) wide_kernel(const __grid_constant__ struct plan plan)
{
    SHARED(memory);
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, side = warp % SIDES;
    int block_row = (int)blockIdx.x % plan.row_blocks * ROWS;
    int panel = (int)blockIdx.x / plan.row_blocks * BLOCK_PANELS + warp / SIDES * PANELS, place = 0;
    const uint2 *own = reinterpret_cast<const uint2 *>(memory) + side * TILES * 32 + lane;
    float total[PANELS][TILES][4];
    constexpr int unit_tiles = W::TILES, depth = AHEAD / unit_tiles, stage_steps = STAGE / unit_tiles, tile_rows = ROWS * ROW_BYTES / 8;
    typename W::part ahead[depth][PANELS];

    overlap_allow();
#pragma unroll
    for (int i = 0; i < depth; i++)
        fetch<W>(plan, panel, 0, i, ahead[i]);
    overlap_wait();
    stage<unit_tiles>(plan, memory, block_row, 0, 0);
    for (int slice = 0; slice < SLICES; slice++) {
        float sums[PANELS][TILES][4] = {};

        for (int first = 0; first < plan.steps; first += stage_steps, place = !place) {
            int end = min(first + stage_steps, plan.steps), turns = first + stage_steps >= plan.steps;
            const uint2 *rows = own + place * (STAGE_BYTES / 8);

            warp_copied();
            __syncthreads(); /* this stage is there, and nobody reads the other one any more */
            if (slice + turns < SLICES)
                stage<unit_tiles>(plan, memory + !place * STAGE_BYTES, block_row, slice + turns, turns ? 0 : first + stage_steps);
            for (int step = first; step < end; step += depth) {
#pragma unroll
                for (int i = 0; i < depth; i++) {
                    int next = step + i + depth, wraps = next >= plan.steps;
                    const uint2 *tiles[unit_tiles];

#pragma unroll
                    for (int t = 0; t < unit_tiles; t++)
                        tiles[t] = rows + ((step - first + i) * unit_tiles + t) * tile_rows;
                    if ((step + i) * SLICES + slice < plan.units)
                        W::template multiply<TILES, PANELS>(tiles, ahead[i], sums);
                    fetch<W>(plan, panel, slice + wraps, wraps ? next - plan.steps : next, ahead[i]);
                    warp_in_turn();
                }
            }
        }
#pragma unroll
        for (int p = 0; p < PANELS; p++)
#pragma unroll
            for (int n = 0; n < TILES; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    total[p][n][i] = slice > 0 ? total[p][n][i] + sums[p][n][i] : sums[p][n][i];
    }
    finish<SWIGLU>(plan.launch, block_row + side * 8 * TILES, total);
    if (!SWIGLU && plan.launch.adds)
        add(plan.launch, panel, block_row + side * 8 * TILES, total);
    give<SWIGLU>(plan.launch, panel, block_row + side * 8 * TILES, total);
}

/* A block has a row. Squares are summed as linear.cu sums them. */
template <typename T> __global__ void __launch_bounds__(THREADS) round_kernel(const __grid_constant__ struct round_launch launch)
{
    SHARED(memory);
    float *squares = reinterpret_cast<float *>(memory), *found = squares + SEGMENTS;
    int thread = (int)threadIdx.x, lane = thread % 32;
    size_t row = (size_t)blockIdx.x * (size_t)launch.columns;
    float scale = 1.0f;

    overlap_allow();
    overlap_wait();
    if (launch.norm != NULL) {
        for (int segment = thread / 32; segment * SEGMENT < launch.columns; segment += WARPS) {
            int column = segment * SEGMENT + 4 * lane;
            float4 x = {0.0f, 0.0f, 0.0f, 0.0f};

            if (column < launch.columns)
                x = warp_fresh(reinterpret_cast<const float4 *>(launch.from + row + column));
            float sum = warp_sum(x.x * x.x + x.y * x.y + (x.z * x.z + x.w * x.w));
            if (lane == 0)
                squares[segment] = sum;
        }
        __syncthreads();
        if (thread == 0) {
            float sum = 0.0f;

            for (int i = 0; i * SEGMENT < launch.columns; i++)
                sum += squares[i];
            *found = 1.0f / sqrtf(sum / (float)launch.columns + launch.norm_eps);
            if (launch.scale != NULL)
                launch.scale[blockIdx.x] = *found;
        }
        __syncthreads();
        scale = launch.scale != NULL ? 1.0f : *found;
    }
    for (int column = 4 * thread; column < launch.columns; column += 4 * THREADS) {
        float4 x = warp_fresh(reinterpret_cast<const float4 *>(launch.from + row + column)), norm = {1.0f, 1.0f, 1.0f, 1.0f};

        if (launch.norm != NULL)
            norm = warp_kept(reinterpret_cast<const float4 *>(launch.norm + column));
        *reinterpret_cast<uint2 *>(launch.to + row + column) = linear_round_four<T>(x, norm, scale);
    }
}

template <typename W, bool SWIGLU> void start(const struct plan &plan, struct CUstream_st *stream)
{
    unsigned blocks = (unsigned)(plan.row_blocks * ((plan.panels + BLOCK_PANELS - 1) / BLOCK_PANELS));

    LAUNCH_AHEAD((wide_kernel<W, SWIGLU>), blocks, THREADS, (size_t)(2 * STAGE_BYTES), stream, plan.launch.overlaps, plan);
}

template <typename W> void start_type(const struct plan &plan, struct CUstream_st *stream)
{
    if (plan.launch.ffn > 0)
        start<W, true>(plan, stream);
    else
        start<W, false>(plan, stream);
}

template <typename W, bool SWIGLU> int prepare_kernel()
{
    int error = SHARED_LIMIT((wide_kernel<W, SWIGLU>), 2 * STAGE_BYTES);

    return error != 0 ? error : SHARED_PREFER((wide_kernel<W, SWIGLU>));
}

template <typename W> int prepare_type()
{
    int error = prepare_kernel<W, false>();

    return error != 0 ? error : prepare_kernel<W, true>();
}

/* By how the weights lie, as linear_launch counts. */
const struct kind {
    void (*start)(const struct plan &plan, struct CUstream_st *stream);
    int (*prepare)();
} kinds[LAYOUTS] = {
    {NULL, NULL},
    {start_type<plain_weights<f16>>, prepare_type<plain_weights<f16>>},
    {start_type<plain_weights<bf16>>, prepare_type<plain_weights<bf16>>},
    {start_type<block_weights<DTYPE_F8>>, prepare_type<block_weights<DTYPE_F8>>},
    {start_type<block_weights<DTYPE_Q8_0>>, prepare_type<block_weights<DTYPE_Q8_0>>},
    {start_type<block_weights<DTYPE_Q4_0>>, prepare_type<block_weights<DTYPE_Q4_0>>},
    {start_type<block_weights<DTYPE_Q4_1>>, prepare_type<block_weights<DTYPE_Q4_1>>},
    {start_type<block_weights<DTYPE_Q5_0>>, prepare_type<block_weights<DTYPE_Q5_0>>},
    {start_type<block_weights<DTYPE_Q5_1>>, prepare_type<block_weights<DTYPE_Q5_1>>},
    {start_type<block_weights<DTYPE_Q4_Z>>, prepare_type<block_weights<DTYPE_Q4_Z>>},
    {start_type<block_weights<DTYPE_Q2_K>>, prepare_type<block_weights<DTYPE_Q2_K>>},
    {start_type<block_weights<DTYPE_Q3_K>>, prepare_type<block_weights<DTYPE_Q3_K>>},
    {start_type<block_weights<DTYPE_Q4_K>>, prepare_type<block_weights<DTYPE_Q4_K>>},
    {start_type<block_weights<DTYPE_Q5_K>>, prepare_type<block_weights<DTYPE_Q5_K>>},
    {start_type<block_weights<DTYPE_Q6_K>>, prepare_type<block_weights<DTYPE_Q6_K>>},
    {start_type<block_weights<BLOCKS_MIXED>>, prepare_type<block_weights<BLOCKS_MIXED>>},
    {start_type<block_weights<BLOCKS_ZEROS>>, prepare_type<block_weights<BLOCKS_ZEROS>>},
};
} // namespace

extern "C" int wide_prepare(int layout)
{
    return kinds[layout].prepare();
}

extern "C" int round_prepare(void)
{
    int error = SHARED_PREFER((round_kernel<bf16>));

    return error != 0 ? error : SHARED_PREFER((round_kernel<f16>));
}

extern "C" void round_start(const struct round_launch *launch, struct CUstream_st *stream)
{
    const struct round_launch own = *launch; /* it may be recorded */

    if (launch->is_f16)
        LAUNCH_AHEAD(round_kernel<f16>, (unsigned)own.rows, THREADS, (size_t)ROUND_BYTES, stream, own.overlaps, own);
    else
        LAUNCH_AHEAD(round_kernel<bf16>, (unsigned)own.rows, THREADS, (size_t)ROUND_BYTES, stream, own.overlaps, own);
}

extern "C" void wide_start(const struct wide_launch *launch, struct CUstream_st *stream)
{
    int unit_tiles = launch->layout < BLOCKS_FIRST ? 1 : 2, depth = AHEAD / unit_tiles;
    struct plan plan = {};

    plan.launch = *launch;
    plan.units = (launch->columns + 16 * unit_tiles - 1) / (16 * unit_tiles);
    plan.panels = (launch->outputs + 15) / 16;
    plan.steps = ((plan.units + SLICES - 1) / SLICES + depth - 1) / depth * depth;
    plan.row_blocks = (launch->rows + ROWS - 1) / ROWS;
    kinds[launch->layout].start(plan, stream);
}
