/* A linear map of few rows: the weights are read once, for all rows, as fast as memory gives them, and everything else hides behind that.
 *
 * A block takes a group of one or two panels of 16 output channels, then the group gridDim.x further on, and so on. Its warps share out the
 * tiles of a panel: warp w has the tiles w, w + 8, w + 16 ... A tile goes from memory straight into the registers in which the matrix
 * instruction wants it (kernels.h has the layout), eight of them ahead of use, across barriers and from one group to the next. They do not
 * depend on the kernel ahead in the stream, so the first are on their way before it has ended.
 *
 * The rows, rounded to the type of the weights, are the other operand. They are staged in shared memory, all columns at once where they
 * fit, else in chunks: 8 bytes for each row and lane, 32 for each row and tile, so that a warp reads 8 rows at once without conflicts. Lane
 * l has of row l / 4 the columns 4 (l % 4) .. + 3: the matrix unit does not care which column is called which, as long as both operands
 * agree.
 *
 * A norm's weights are applied while rows are staged. Its scale is a number for each row and is applied to the sums; where numbers are f16,
 * whose range is small, it is found first and applied before rounding.
 *
 * Row-invariance. An output is summed over a warp's tiles in rising order, then over the warps in rising order; the sum of squares over 128
 * columns by a fixed tree, then over these in rising order. Nothing there knows how many rows there are, nor chunks or groups. */
#include "common/backend/cuda/kernel/warp.h"
#include "common/backend/cuda/kernels.h"

namespace
{
enum {
    WARPS = 8,
    THREADS = 32 * WARPS,
    SWEEP = 4 * THREADS, /* columns that the threads stage at once, four each */
    SWEEP_TILES = SWEEP / 16,
    AHEAD = 8,               /* tiles of weights on their way to a warp; AHEAD x WARPS divides SWEEP_TILES */
    BATCH = 4,               /* loads on their way to a thread that stages */
    STAGED_BYTES = 80 << 10, /* two blocks fit on a multiprocessor */
    PREFETCH_BYTES = 32 << 10,
};
static_assert(SWEEP_TILES % (AHEAD * WARPS) == 0, "a sweep is a whole number of rounds of prefetching");

struct plan {
    struct linear_launch launch;
    int tiles; /* of a panel */
    int panels;
    int groups;
    int chunk;                         /* tiles staged at once, a multiple of SWEEP_TILES, or all */
    int slots;                         /* rows that shared memory has room for: 1, or 8 for each tile of rows */
    int segments;                      /* of 128 columns, whose squares are summed by one warp */
    int aligned;                       /* rows can be read by 16 bytes */
    int restage;                       /* the rows are staged anew for each group */
    int at_sums, at_squares, at_scale; /* bytes into shared memory */
};

struct shared_parts {
    uint2 *staged;  /* [chunk][slots][4] */
    float *sums;    /* [WARPS][PANELS][TILES][32][4] */
    float *squares; /* [rows][segments] */
    float *scale;   /* [rows] */
};

__device__ __forceinline__ float4 read_four(const struct plan &plan, const float *vector, int column)
{
    int columns = plan.launch.columns;
    float4 value = {0.0f, 0.0f, 0.0f, 0.0f};

    if (plan.aligned && column < columns)
        return warp_fresh(reinterpret_cast<const float4 *>(vector + column));
    if (column < columns)
        value.x = warp_fresh(vector + column);
    if (column + 1 < columns)
        value.y = warp_fresh(vector + column + 1);
    if (column + 2 < columns)
        value.z = warp_fresh(vector + column + 2);
    if (column + 3 < columns)
        value.w = warp_fresh(vector + column + 3);
    return value;
}

/* Sums each of four numbers over the warp; lane 8 i has the sum of number i. */
__device__ __forceinline__ float sum_four(const float value[BATCH], int lane)
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

/* Four columns of a row, as they enter the product. */
template <typename T> __device__ __forceinline__ uint2 round_four(const float4 &x, const float4 &norm, float scale)
{
    return {warp_pack(T(), x.x * norm.x * scale, x.y * norm.y * scale), warp_pack(T(), x.z * norm.z * scale, x.w * norm.w * scale)};
}

/* Takes the columns of the tiles [first, first + count) of all rows: into shared memory if `stores`, their squares into shared.squares if
 * `squares`. An item is four columns of one row. */
template <typename T>
__device__ void stage(const struct plan &plan, const struct shared_parts &shared, int first, int count, bool stores, bool squares)
{
    const struct linear_launch &launch = plan.launch;
    int thread = (int)threadIdx.x, lane = thread % 32, sweeps = (count + SWEEP_TILES - 1) / SWEEP_TILES, items = sweeps * launch.rows;
    bool scales = launch.is_f16 && launch.norm != NULL;

    for (int item = 0; item < items; item += BATCH) {
        float4 x[BATCH], norm[BATCH];
        float square[BATCH];

#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            int sweep = (item + i) / launch.rows, row = (item + i) % launch.rows, column = 16 * first + SWEEP * sweep + 4 * thread;

            norm[i] = {1.0f, 1.0f, 1.0f, 1.0f};
            x[i] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (item + i >= items)
                continue;
            x[i] = read_four(plan, launch.from + (size_t)row * (size_t)launch.columns, column);
            if (launch.norm != NULL)
                norm[i] = read_four(plan, launch.norm, column);
        }
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            int sweep = (item + i) / launch.rows, row = (item + i) % launch.rows, tile = SWEEP_TILES * sweep + thread / 4;
            int slot = plan.slots > 1 ? row ^ (tile & 3) : 0; /* neighbouring tiles in different banks */

            square[i] = x[i].x * x[i].x + x[i].y * x[i].y + (x[i].z * x[i].z + x[i].w * x[i].w);
            if (stores && item + i < items && tile < count)
                shared.staged[(size_t)(tile * plan.slots + slot) * 4 + thread % 4] =
                    round_four<T>(x[i], norm[i], scales ? shared.scale[row] : 1.0f);
        }
        if (squares) {
            float sum = sum_four(square, lane);
            int mine = item + lane / 8, sweep = first / SWEEP_TILES + mine / launch.rows;

            if (lane % 8 == 0 && mine < items)
                shared.squares[mine % launch.rows * plan.segments + sweep * WARPS + thread / 32] = sum;
        }
    }
}

/* The scale of the norm of each row, from the squares of all its columns. */
__device__ void find_scales(const struct plan &plan, const struct shared_parts &shared)
{
    int row = (int)threadIdx.x;
    float sum = 0.0f;

    if (row >= plan.launch.rows)
        return;
    for (int i = 0; i < plan.segments; i++)
        sum += shared.squares[row * plan.segments + i];
    shared.scale[row] = 1.0f / sqrtf(sum / (float)plan.launch.columns + plan.launch.norm_eps);
}

/* What there is of a warp's tile of a group's panels; zeros beyond. */
template <int PANELS> __device__ __forceinline__ void fetch(const struct plan &plan, int group, int tile, uint4 weights[PANELS])
{
    const uint4 *all = static_cast<const uint4 *>(plan.launch.weights);

#pragma unroll
    for (int p = 0; p < PANELS; p++) {
        int panel = group * PANELS + p;

        weights[p] = {0, 0, 0, 0};
        if (panel < plan.panels && tile < plan.tiles)
            weights[p] = warp_stream(all + ((size_t)panel * (size_t)plan.tiles + (size_t)tile) * 32 + threadIdx.x % 32);
    }
}

/* Brings more of a panel than the registers take, from tile `first` on, as near as the L2 cache. */
__device__ __forceinline__ void prefetch(const struct plan &plan, int panel, int first)
{
    const uint4 *all = static_cast<const uint4 *>(plan.launch.weights);
    int count = min(plan.tiles - first, (int)PREFETCH_BYTES / 512);

    if (count > 0 && panel < plan.panels)
        warp_prefetch(all + ((size_t)panel * (size_t)plan.tiles + (size_t)first) * 32, (unsigned)count * 512);
}

/* sums += the tile's weights x its rows. */
template <typename T, int TILES, int PANELS>
__device__ __forceinline__ void multiply(const uint2 *rows, const uint4 weights[PANELS], float sums[PANELS][TILES][4])
{
#pragma unroll
    for (int n = 0; n < TILES; n++) {
        uint2 tokens = rows[n * 32];

#pragma unroll
        for (int p = 0; p < PANELS; p++)
            warp_mma(T(), sums[p][n], weights[p], tokens);
    }
}

/* The sum over the warps of one output of the group. */
template <int TILES, int PANELS> __device__ __forceinline__ float sum_warps(const float *sums, int panel, int channel, int row)
{
    int lane = channel % 8 * 4 + row % 8 / 2, at = ((panel * TILES + row / 8) * 32 + lane) * 4 + channel / 8 * 2 + row % 2;
    float sum = sums[at];

#pragma unroll
    for (int w = 1; w < WARPS; w++)
        sum += sums[w * PANELS * TILES * 128 + at];
    return sum;
}

/* Writes the group's outputs: from the sums of all warps in shared memory to where they belong. */
template <int TILES, int PANELS, bool SWIGLU> __device__ void give(const struct plan &plan, const struct shared_parts &shared, int group)
{
    const struct linear_launch &launch = plan.launch;
    int width = SWIGLU ? 16 : 16 * PANELS, channels = SWIGLU ? launch.ffn : launch.outputs;
    bool scales = launch.norm != NULL && !launch.is_f16;

    for (int i = (int)threadIdx.x; i < width * launch.rows; i += THREADS) {
        int row = i / width, within = i % width, channel = group * width + within;
        float scale = scales ? shared.scale[row] : 1.0f, value;

        if (channel >= channels)
            continue;
        value = scale * sum_warps<TILES, PANELS>(shared.sums, SWIGLU ? 0 : within / 16, within % 16, row);
        if (SWIGLU)
            value = value / (1.0f + expf(-value)) * (scale * sum_warps<TILES, PANELS>(shared.sums, PANELS - 1, within, row));
        float *to = launch.to + (size_t)row * (size_t)channels + (size_t)channel;

        *to = launch.adds ? *to + value : value;
    }
}

template <typename T, int TILES, int PANELS, bool SWIGLU>
__global__ void __launch_bounds__(THREADS, TILES <= 2 ? 2 : 1) linear_kernel(const __grid_constant__ struct plan plan)
{
    SHARED(memory);
    const struct shared_parts shared = {reinterpret_cast<uint2 *>(memory), reinterpret_cast<float *>(memory + plan.at_sums),
                                        reinterpret_cast<float *>(memory + plan.at_squares),
                                        reinterpret_cast<float *>(memory + plan.at_scale)};
    constexpr int depth = AHEAD / PANELS;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, group = (int)blockIdx.x;
    int steps = (plan.tiles + WARPS * depth - 1) / (WARPS * depth) * depth; /* of a warp through a panel */
    int own = plan.slots > 1 ? ((lane / 4) ^ (warp & 3)) * 4 + lane % 4 : lane % 4;
    bool scales_first = plan.launch.norm != NULL && plan.launch.is_f16, squares = plan.launch.norm != NULL && !plan.launch.is_f16;
    uint4 ahead[depth][PANELS];

    overlap_allow();
#pragma unroll
    for (int i = 0; i < depth; i++)
        fetch<PANELS>(plan, group, i * WARPS + warp, ahead[i]);
    if (threadIdx.x == 0 && plan.launch.overlaps)
        prefetch(plan, group * PANELS, depth * WARPS);
    overlap_wait();
    if (scales_first) {
        stage<T>(plan, shared, 0, plan.tiles, false, true);
        __syncthreads();
        find_scales(plan, shared);
    }
    for (; group < plan.groups; group += (int)gridDim.x) {
        float sums[PANELS][TILES][4] = {};
        bool is_first = group == (int)blockIdx.x;

        for (int first = 0; first < plan.tiles; first += plan.chunk) {
            int count = min(plan.chunk, plan.tiles - first), end = min(steps, (first + plan.chunk) / WARPS);

            if (plan.restage || is_first) {
                __syncthreads();
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
                        multiply<T, TILES, PANELS>(shared.staged + (size_t)((tile - first) * plan.slots) * 4 + own, ahead[i], sums);
                    next -= wraps ? steps : 0;
                    fetch<PANELS>(plan, wraps ? group + (int)gridDim.x : group, next * WARPS + warp, ahead[i]);
                }
            }
        }
        __syncthreads(); /* nobody reads the last group's sums any more, nor, where sums take their place, staged rows */
#pragma unroll
        for (int p = 0; p < PANELS; p++)
#pragma unroll
            for (int n = 0; n < TILES; n++)
                reinterpret_cast<float4 *>(shared.sums)[((warp * PANELS + p) * TILES + n) * 32 + lane] = {sums[p][n][0], sums[p][n][1],
                                                                                                          sums[p][n][2], sums[p][n][3]};
        __syncthreads();
        give<TILES, PANELS, SWIGLU>(plan, shared, group);
    }
}

int round_up(int value, int to)
{
    return (value + to - 1) / to * to;
}

/* Lays out shared memory; gives its size. */
int lay_out(struct plan *plan, int tiles, int panels)
{
    int rows = plan->launch.rows, sums = WARPS * panels * tiles * 512, tile_bytes, most;

    plan->slots = rows == 1 ? 1 : 8 * tiles;
    tile_bytes = 32 * plan->slots;
    most = STAGED_BYTES / tile_bytes / SWEEP_TILES * SWEEP_TILES;
    most = most > SWEEP_TILES ? most : (int)SWEEP_TILES;
    plan->chunk = plan->tiles < most ? round_up(plan->tiles, WARPS) : most;
    plan->restage = plan->tiles > most;
    plan->at_sums = plan->chunk * tile_bytes;
    if (tiles == 8) { /* the sums take the place of the rows, which are staged again */
        plan->restage = 1;
        plan->at_squares = plan->at_sums > sums ? plan->at_sums : sums;
        plan->at_sums = 0;
    } else {
        plan->at_squares = plan->at_sums + sums;
    }
    plan->at_scale = plan->at_squares + (plan->launch.norm != NULL ? 4 * rows * plan->segments : 0);
    return plan->at_scale + 4 * round_up(rows, 4);
}

/* Of any launch. */
constexpr int MOST_SHARED = SWEEP_TILES * 32 * 64 + 4 * KERNEL_ROWS * (KERNEL_MAX_HIDDEN / 128) + 4 * KERNEL_ROWS;
static_assert(MOST_SHARED <= 163 << 10, "what sm_80 has for a block");

template <typename T, int TILES, int PANELS, bool SWIGLU> void start(struct plan plan, struct CUstream_st *stream)
{
    int shared_bytes = lay_out(&plan, TILES, PANELS), resident = plan.launch.processors * (TILES <= 2 ? 2 : 1);

    plan.groups = (plan.panels + PANELS - 1) / PANELS;
    LAUNCH_AHEAD((linear_kernel<T, TILES, PANELS, SWIGLU>), (unsigned)(plan.groups < resident ? plan.groups : resident), THREADS,
                 (size_t)shared_bytes, stream, plan.launch.overlaps, plan);
}

template <typename T, int TILES> void start_rows(const struct plan &plan, struct CUstream_st *stream)
{
    if (plan.launch.ffn > 0)
        start<T, TILES, 2, true>(plan, stream);
    else if (plan.panels >= 4 * plan.launch.processors) /* enough pairs for all: rows are read from shared memory half as often */
        start<T, TILES, 2, false>(plan, stream);
    else
        start<T, TILES, 1, false>(plan, stream);
}

template <typename T> void start_type(const struct plan &plan, struct CUstream_st *stream)
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

template <typename T, int TILES, int PANELS, bool SWIGLU> int prepare_kernel()
{
    int error = SHARED_LIMIT((linear_kernel<T, TILES, PANELS, SWIGLU>), MOST_SHARED);

    return error != 0 ? error : SHARED_PREFER((linear_kernel<T, TILES, PANELS, SWIGLU>));
}

template <typename T, int TILES> int prepare()
{
    int error = prepare_kernel<T, TILES, 2, true>();

    error = error != 0 ? error : prepare_kernel<T, TILES, 2, false>();
    return error != 0 ? error : prepare_kernel<T, TILES, 1, false>();
}

template <typename T> int prepare_type()
{
    int error = prepare<T, 1>();

    error = error != 0 ? error : prepare<T, 2>();
    error = error != 0 ? error : prepare<T, 4>();
    return error != 0 ? error : prepare<T, 8>();
}
} // namespace

extern "C" int linear_prepare(void)
{
    int error = prepare_type<bf16>();

    return error != 0 ? error : prepare_type<f16>();
}

extern "C" void linear_start(const struct linear_launch *launch, struct CUstream_st *stream)
{
    struct plan plan = {};

    plan.launch = *launch;
    plan.tiles = (launch->columns + 15) / 16;
    plan.panels = (launch->outputs + 15) / 16;
    plan.segments = (launch->columns + SWEEP - 1) / SWEEP * WARPS;
    plan.aligned = launch->columns % 4 == 0 && (uintptr_t)launch->from % 16 == 0 && (uintptr_t)launch->norm % 16 == 0;
    if (launch->is_f16)
        start_type<f16>(plan, stream);
    else
        start_type<bf16>(plan, stream);
}
