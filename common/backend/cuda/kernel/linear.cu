/* A linear map of few rows: the weights are read once, for all rows, as fast as memory gives them, and everything else hides behind that.
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
 * columns by a fixed tree, then over these in rising order. Nothing there knows how many rows there are, nor chunks or groups. */
#include "common/backend/cuda/kernel/evidence.h"
#include "common/backend/cuda/kernel/linear.h"

namespace
{
enum {
    WARPS = 8, /* of a team */
    THREADS = 32 * WARPS,
    MOST_TEAMS = 2, /* of a block */
    SWEEP = 4 * THREADS, /* columns that a team stages at once, four a thread */
    SWEEP_TILES = SWEEP / 16,
    AHEAD = 8,               /* tiles of weights on their way to a warp; AHEAD x WARPS divides SWEEP_TILES */
    BATCH = 4,               /* loads on their way to a thread that stages */
    CHUNK_BYTES = 64 << 10,  /* staged at once where all is too much: meanwhile, weights arrive in as many bytes of registers */
    BLOCK_BYTES = 1 << 10,   /* of shared memory that CUDA keeps for itself */
    PREFETCH_BYTES = 4 << 10, /* of weights for each row that is staged meanwhile, for 8 to 16 of them: all teams' are a third of the L2 cache */
};
static_assert(SWEEP_TILES % (AHEAD * WARPS) == 0, "a sweep is a whole number of rounds of prefetching");

/* What becomes of the sums. */
enum giving { GIVE_OUTPUTS, GIVE_SWIGLU, GIVE_EVIDENCE };

struct plan {
    struct linear_launch launch;
    int tiles; /* of a panel */
    int panels;
    int groups;
    int teams;                         /* of a block */
    int chunk;                         /* tiles staged at once, a multiple of SWEEP_TILES, or all */
    int slots;                         /* rows that shared memory has room for: 1, or 8 for each tile of rows */
    int segments;                      /* of 128 columns, whose squares are summed by one warp */
    int aligned;                       /* rows can be read by 16 bytes */
    int restage;                       /* the rows are staged anew for each group */
    int at_sums, at_squares, at_scale; /* bytes into shared memory */
};

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

__device__ __forceinline__ struct member own_member()
{
    return {(int)threadIdx.x / THREADS, (int)threadIdx.x % THREADS};
}

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

/* Takes the columns of the tiles [first, first + count) of all rows: into shared memory if `stores`, their squares into shared.squares if
 * `squares`. An item is four columns of one row; teams take BATCH of them in turns. */
template <typename T>
__device__ void stage(const struct plan &plan, const struct shared_parts &shared, int first, int count, bool stores, bool squares)
{
    const struct linear_launch &launch = plan.launch;
    const struct member self = own_member();
    int thread = self.thread, lane = thread % 32, sweeps = (count + SWEEP_TILES - 1) / SWEEP_TILES, items = sweeps * launch.rows;
    bool scales = launch.is_f16 && launch.norm != NULL;

    for (int item = self.team * BATCH; item < items; item += plan.teams * BATCH) {
        float4 x[BATCH], norm[BATCH];
        float square[BATCH];

#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            int sweep = (item + i) / launch.rows, row = (item + i) % launch.rows, column = 16 * first + SWEEP * sweep + 4 * thread;

            norm[i] = {1.0f, 1.0f, 1.0f, 1.0f};
            x[i] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (item + i >= items)
                continue;
            x[i] = read_four(plan, static_cast<const float *>(launch.from) + (size_t)row * (size_t)launch.columns, column);
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
                    linear_round_four<T>(x[i], norm[i], scales ? shared.scale[row] : 1.0f);
        }
        if (squares) {
            float sum = sum_four(square, lane);
            int mine = item + lane / 8, sweep = first / SWEEP_TILES + mine / launch.rows;

            if (lane % 8 == 0 && mine < items)
                shared.squares[mine % launch.rows * plan.segments + sweep * WARPS + thread / 32] = sum;
        }
    }
}

/* The same of rows that are rounded already, in pieces of eight columns. */
__device__ void stage_rounded(const struct plan &plan, const struct shared_parts &shared, int first, int count)
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
__device__ void find_scales(const struct plan &plan, const struct shared_parts &shared)
{
    int row = own_member().thread;
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

/* Brings more of a panel, of so many of a group, than the registers take, from tile `first` on, as near as the L2 cache. */
__device__ __forceinline__ void prefetch(const struct plan &plan, int panel, int panels, int first)
{
    const uint4 *all = static_cast<const uint4 *>(plan.launch.weights);
    int count = min(plan.tiles - first, min(max(plan.launch.rows, 8), 16) * ((int)PREFETCH_BYTES / 512) / panels);

    if (count > 0 && panel < plan.panels)
        warp_prefetch(all + ((size_t)panel * (size_t)plan.tiles + (size_t)first) * 32, (unsigned)count * 512);
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

    for (int i = own_member().thread; i < width * launch.rows; i += THREADS) {
        int row = i / width, within = i % width, channel = group * width + within;
        float scale = scales ? shared.scale[row] : 1.0f, value;

        if (channel >= channels)
            continue;
        value = scale * sum_warps<TILES, PANELS>(shared.sums, SWIGLU ? 0 : within / 16, within % 16, row);
        if (SWIGLU)
            value = value / (1.0f + expf(-value)) * (scale * sum_warps<TILES, PANELS>(shared.sums, PANELS - 1, within, row));
        size_t at = (size_t)row * (size_t)channels + (size_t)channel;

        if (!SWIGLU && launch.adds)
            value = warp_fresh(static_cast<const float *>(launch.to) + at) + value;
        warp_put(launch.to, SWIGLU ? launch.gives : KERNEL_F32, at, value);
    }
}

/* A channel's logit with its row's Gumbel noise. */
__device__ __forceinline__ struct scored_token gumbel_score(const struct evidence_launch &evidence, int row, int channel, float logit)
{
    uint32_t id = (uint32_t)evidence.first_token + (uint32_t)channel, words[4];
    float score;

    if (!evidence_has_noise(evidence, row) || logit == -INFINITY)
        return {-INFINITY, -1};
    rng_words(&evidence.key[row], (enum rng_purpose)evidence.purpose[row], id / 4, words);
    score = logit + rng_gumbel_of(words[id % 4]);
    if (score == -INFINITY || (evidence.excludes[row] != 0 && evidence_listed(evidence, row, (int32_t)id) >= 0))
        return {-INFINITY, -1};
    return {score, channel};
}

/* The evidence of the group's channels, a part of each row: so many neighbours of a warp as a group has channels are one row's. */
template <int TILES, int PANELS> __device__ void give_evidence(const struct plan &plan, const struct shared_parts &shared, int group)
{
    const struct linear_launch &launch = plan.launch;
    const struct evidence_launch &evidence = launch.evidence;
    constexpr int width = 16 * PANELS;
    bool scales = launch.norm != NULL && !launch.is_f16;

    for (int i = own_member().thread; i < (width * launch.rows + 31) / 32 * 32; i += THREADS) { /* warps as a whole */
        int row = i / width, within = i % width, channel = group * width + within;
        bool is_there = row < launch.rows && channel < launch.outputs;
        struct evidence_part part = {0.0, {-INFINITY, -1}, {-INFINITY, -1}};
        float logit = -INFINITY;

        if (is_there) {
            logit = (scales ? shared.scale[row] : 1.0f) * sum_warps<TILES, PANELS>(shared.sums, within / 16, within % 16, row);
            logit *= evidence.from.scale[row];
            part.largest = {logit, channel};
        }
        part.largest = evidence_best(part.largest, width);
        if (is_there && part.largest.score > -INFINITY)
            part.sum = (double)math32_exp(logit - part.largest.score);
        part.sum = evidence_sum(part.sum, width);
        if (is_there) {
            int listed = evidence_listed(evidence, row, evidence.first_token + channel);

            part.winner = gumbel_score(evidence, row, channel, logit);
            if (listed >= 0)
                evidence.logit[listed] = logit;
        }
        part.winner = evidence_best(part.winner, width);
        if (within == 0 && row < launch.rows && group < plan.groups)
            static_cast<struct evidence_part *>(evidence.scratch)[(size_t)row * (size_t)plan.groups + (size_t)group] = part;
    }
}

/* Teams of a block that the registers of a multiprocessor are enough for. */
constexpr int most_teams(int tiles, int panels)
{
    return tiles * panels <= 8 ? MOST_TEAMS : 1;
}

/* The team waits for its own, or, where teams go through what is staged together, for the other one, too. */
__device__ __forceinline__ void meet(const struct plan &plan, int team)
{
    if (plan.restage)
        __syncthreads();
    else
        warp_meet(team, THREADS);
}

template <typename T, int TILES, int PANELS, enum giving GIVING>
__global__ void __launch_bounds__(most_teams(TILES, PANELS) * THREADS) linear_kernel(const __grid_constant__ struct plan plan)
{
    SHARED(memory);
    const struct member self = own_member();
    const struct shared_parts shared = {
        reinterpret_cast<uint2 *>(memory), reinterpret_cast<float *>(memory + plan.at_squares),
        reinterpret_cast<float *>(memory + plan.at_sums) + self.team * WARPS * PANELS * TILES * 128,
        reinterpret_cast<float *>(memory + plan.at_scale) + self.team * plan.launch.rows};
    constexpr int depth = AHEAD / PANELS;
    int warp = self.thread / 32, lane = self.thread % 32, ahead_of_first = self.team * (int)gridDim.x;
    int group = (int)blockIdx.x + ahead_of_first, stride = plan.teams * (int)gridDim.x; /* the first teams of all blocks come first */
    int steps = (plan.tiles + WARPS * depth - 1) / (WARPS * depth) * depth; /* of a warp through a panel */
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
                reinterpret_cast<float4 *>(shared.sums)[((warp * PANELS + p) * TILES + n) * 32 + lane] = {sums[p][n][0], sums[p][n][1],
                                                                                                          sums[p][n][2], sums[p][n][3]};
        meet(plan, self.team);
        if (GIVING == GIVE_EVIDENCE)
            give_evidence<TILES, PANELS>(plan, shared, group);
        else
            give<TILES, PANELS, GIVING == GIVE_SWIGLU>(plan, shared, group);
    }
}

int round_up(int value, int to)
{
    return (value + to - 1) / to * to;
}

/* Lays out shared memory; gives its size. Where all does not fit beside each other the sums take the place of the rows, which are staged again. */
int lay_out(struct plan *plan, int tiles, int panels)
{
    int rows = plan->launch.rows, sums = plan->teams * WARPS * panels * tiles * 512, scales = 4 * plan->teams * round_up(rows, 4);
    int squares = plan->launch.norm != NULL ? 4 * rows * plan->segments : 0, tile_bytes, staged;

    plan->slots = rows == 1 ? 1 : 8 * tiles;
    tile_bytes = 32 * plan->slots;
    plan->chunk = round_up(plan->tiles, WARPS);
    plan->at_sums = staged = plan->chunk * tile_bytes;
    plan->restage = staged + sums + squares + scales > plan->launch.block_bytes;
    if (plan->restage) {
        int most = CHUNK_BYTES / tile_bytes / SWEEP_TILES * SWEEP_TILES;

        most = most > SWEEP_TILES ? most : (int)SWEEP_TILES;
        plan->chunk = plan->chunk < most ? plan->chunk : most;
        staged = plan->chunk * tile_bytes;
        plan->at_sums = 0;
    }
    plan->at_squares = plan->restage && staged > sums ? staged : plan->at_sums + sums;
    plan->at_scale = plan->at_squares + squares;
    return plan->at_scale + scales;
}

/* Of any launch of up to so many rows, where the sums take the place of the rows. */
constexpr int most_shared(int rows)
{
    int staged = SWEEP_TILES * 32 * rows, sums = MOST_TEAMS * WARPS * 2 * rows / 8 * 512;

    staged = staged > CHUNK_BYTES ? staged : (int)CHUNK_BYTES;
    return (staged > sums ? staged : sums) + 4 * rows * (KERNEL_MAX_HIDDEN / 128) + 4 * MOST_TEAMS * rows;
}
constexpr int FEW_ROWS = KERNEL_ROWS / 2;
static_assert(most_shared(KERNEL_ROWS) <= 163 << 10, "what sm_80 has for a block");
static_assert(most_shared(FEW_ROWS) <= 99 << 10, "what sm_86, sm_89 and sm_120 have");

template <typename T, int TILES, int PANELS, enum giving GIVING> void start(struct plan plan, struct CUstream_st *stream)
{
    plan.groups = (plan.panels + PANELS - 1) / PANELS;
    plan.teams = plan.launch.rows > 1 && plan.groups > plan.launch.processors ? most_teams(TILES, PANELS) : 1;
    int shared_bytes = lay_out(&plan, TILES, PANELS);
    bool two = plan.teams == 1 && most_teams(TILES, PANELS) == 2 && 2 * (shared_bytes + BLOCK_BYTES) <= plan.launch.processor_bytes;
    int resident = plan.launch.processors * (two ? 2 : 1);

    LAUNCH_AHEAD((linear_kernel<T, TILES, PANELS, GIVING>), (unsigned)(plan.groups < resident ? plan.groups : resident), plan.teams * THREADS,
                 (size_t)shared_bytes, stream, plan.launch.overlaps, plan);
}

/* Are there enough pairs of panels for all multiprocessors? Then rows are read from shared memory half as often. */
bool pairs_of(int panels, int processors)
{
    return panels >= 4 * processors;
}

template <typename T, int TILES> void start_rows(const struct plan &plan, struct CUstream_st *stream)
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

template <typename T, int TILES, int PANELS, enum giving GIVING> int prepare_kernel(int block_bytes)
{
    int error = SHARED_LIMIT((linear_kernel<T, TILES, PANELS, GIVING>), block_bytes);

    return error != 0 ? error : SHARED_PREFER((linear_kernel<T, TILES, PANELS, GIVING>));
}

template <typename T, int TILES> int prepare(int block_bytes)
{
    int error = prepare_kernel<T, TILES, 2, GIVE_SWIGLU>(block_bytes);

    error = error != 0 ? error : prepare_kernel<T, TILES, 2, GIVE_EVIDENCE>(block_bytes);
    error = error != 0 ? error : prepare_kernel<T, TILES, 1, GIVE_EVIDENCE>(block_bytes);
    error = error != 0 ? error : prepare_kernel<T, TILES, 2, GIVE_OUTPUTS>(block_bytes);
    return error != 0 ? error : prepare_kernel<T, TILES, 1, GIVE_OUTPUTS>(block_bytes);
}

template <typename T> int prepare_type(int block_bytes)
{
    int error = prepare<T, 1>(block_bytes);

    error = error != 0 ? error : prepare<T, 2>(block_bytes);
    error = error != 0 ? error : prepare<T, 4>(block_bytes);
    return error != 0 ? error : prepare<T, 8>(block_bytes);
}
} // namespace

extern "C" int linear_rows(int block_bytes)
{
    return block_bytes >= most_shared(KERNEL_ROWS) ? KERNEL_ROWS : block_bytes >= most_shared(FEW_ROWS) ? FEW_ROWS : 0;
}

extern "C" int linear_prepare(int block_bytes)
{
    int error = prepare_type<bf16>(block_bytes);

    return error != 0 ? error : prepare_type<f16>(block_bytes);
}

extern "C" int linear_parts(int outputs, int processors)
{
    int panels = (outputs + 15) / 16;

    return pairs_of(panels, processors) ? (panels + 1) / 2 : panels;
}

extern "C" void linear_start(const struct linear_launch *launch, struct CUstream_st *stream)
{
    struct plan plan = {};

    plan.launch = *launch;
    plan.tiles = (launch->columns + 15) / 16;
    plan.panels = (launch->outputs + 15) / 16;
    plan.segments = (launch->columns + SWEEP - 1) / SWEEP * WARPS;
    plan.aligned = launch->columns % (launch->is_rounded ? 8 : 4) == 0 && (uintptr_t)launch->from % 16 == 0 && (uintptr_t)launch->norm % 16 == 0;
    if (launch->is_f16)
        start_type<f16>(plan, stream);
    else
        start_type<bf16>(plan, stream);
}
