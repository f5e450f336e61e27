/* Evidence of rows of logits. A block takes a part of 4,096 logits of one row: its largest, the sum of exp(logit - largest), and the winner
 * of the Gumbel race, with the noise of common/base/rng.c, compiled for the device. Then a warp for each row puts the parts together.
 * Parts, lanes and warps follow the place in the row, so the sum has one order. */
#define DEVICE_CODE __device__ inline
#include "common/backend/cuda/kernel/warp.h"
#include "common/backend/cuda/kernels.h"

#include "common/base/math32.c"
#include "common/base/rng.c"

namespace
{
enum { THREADS = 256, WARPS = THREADS / 32, FOURS = 4 /* of a thread */, PART = THREADS * FOURS * 4 };

struct part {
    double sum; /* 0 when the largest is minus infinity */
    struct scored_token largest, winner;
};

struct work {
    struct evidence_launch launch;
    int parts;           /* of a row */
    struct part *of_row; /* [rows][parts] */
};

/* Larger scores first, then lower tokens; token -1 is none. */
__device__ __forceinline__ struct scored_token better(const struct scored_token &a, const struct scored_token &b)
{
    bool is_a = b.token < 0 || (a.token >= 0 && (a.score > b.score || (a.score == b.score && a.token < b.token)));

    return is_a ? a : b;
}

__device__ struct scored_token best_of_warp(struct scored_token mine)
{
    for (int by = 16; by > 0; by /= 2) {
        struct scored_token other = {__shfl_xor_sync(0xffffffffu, mine.score, by), __shfl_xor_sync(0xffffffffu, mine.token, by)};

        mine = better(mine, other);
    }
    return mine;
}

__device__ double sum_of_warp(double mine)
{
    for (int by = 16; by > 0; by /= 2)
        mine += __shfl_xor_sync(0xffffffffu, mine, by);
    return mine;
}

/* The best of the block, in every thread.  room: [WARPS] of shared memory */
__device__ struct scored_token best_of_block(struct scored_token mine, struct scored_token *room)
{
    mine = best_of_warp(mine);
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = mine;
    __syncthreads();
    mine = room[0];
    for (int w = 1; w < WARPS; w++)
        mine = better(mine, room[w]);
    __syncthreads();
    return mine;
}

/* The first of the four neighbours k of a thread. */
__device__ __forceinline__ int first_of(int k)
{
    return (int)blockIdx.x * PART + (k * THREADS + (int)threadIdx.x) * 4;
}

/* Scaled; minus infinity past the row's end. */
__device__ void load_logits(const struct work &work, float logit[FOURS * 4])
{
    const struct kernel_logits &from = work.launch.from;
    const float *row = from.logits + (size_t)from.row[blockIdx.y] * from.count;
    float scale = from.scale[blockIdx.y];

#pragma unroll
    for (int i = 0; i < FOURS * 4; i++) {
        int at = first_of(i / 4) + i % 4;

        logit[i] = at < from.count ? row[at] * scale : -INFINITY;
    }
}

__device__ struct scored_token find_largest(const float logit[FOURS * 4], int count)
{
    struct scored_token largest = {-INFINITY, -1};

#pragma unroll
    for (int i = 0; i < FOURS * 4; i++) {
        int at = first_of(i / 4) + i % 4;

        if (at < count && (largest.token < 0 || logit[i] > largest.score))
            largest = {logit[i], at};
    }
    return largest;
}

/* Is the id among the row's tokens? */
__device__ bool is_listed(const struct evidence_launch &launch, int row, int32_t id)
{
    int low = launch.token_first[row], high = launch.token_first[row + 1];

    while (low < high) {
        int middle = (low + high) / 2;

        if (launch.token[middle] == id)
            return true;
        if (launch.token[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* A four whose largest logit could not win with the largest noise of all is left out; rounding never turns an order round. */
__device__ struct scored_token race(const struct work &work, const float logit[FOURS * 4])
{
    const struct evidence_launch &launch = work.launch;
    bool excludes = launch.excludes[blockIdx.y] != 0;
    struct rng_key key = launch.key[blockIdx.y];
    struct scored_token best = {-INFINITY, -1};

#pragma unroll
    for (int k = 0; k < FOURS; k++) {
        float largest = fmaxf(fmaxf(logit[4 * k], logit[4 * k + 1]), fmaxf(logit[4 * k + 2], logit[4 * k + 3]));
        uint32_t words[4];

        if (largest == -INFINITY || largest + RNG_GUMBEL_MAX < best.score)
            continue;
        rng_words(&key, launch.purpose, ((uint32_t)launch.first_token + (uint32_t)first_of(k)) / 4, words);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int at = first_of(k) + i;
            float score = logit[4 * k + i] + rng_gumbel_of(words[i]);

            if (score > best.score && !(excludes && is_listed(launch, (int)blockIdx.y, launch.first_token + at)))
                best = {score, at};
        }
    }
    return best;
}

__global__ __launch_bounds__(THREADS) void part_kernel(const __grid_constant__ struct work work)
{
    SHARED(memory);
    double *sums = (double *)(void *)memory; /* [WARPS] */
    struct scored_token *room = (struct scored_token *)(void *)(sums + WARPS);
    struct part part = {0.0, {-INFINITY, -1}, {-INFINITY, -1}};
    float logit[FOURS * 4];
    double sum = 0.0;

    load_logits(work, logit);
    part.largest = best_of_block(find_largest(logit, work.launch.from.count), room);
    if (part.largest.score > -INFINITY)
#pragma unroll
        for (int i = 0; i < FOURS * 4; i++)
            sum += (double)math32_exp(logit[i] - part.largest.score);
    sum = sum_of_warp(sum);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = sum;
    if (work.launch.key != NULL)
        part.winner = best_of_block(race(work, logit), room);
    __syncthreads();
    for (int w = 0; w < WARPS; w++)
        part.sum += sums[w];
    if (threadIdx.x == 0)
        work.of_row[(size_t)blockIdx.y * work.parts + blockIdx.x] = part;
}

/* The logits of a row's tokens. */
__device__ void answer(const struct evidence_launch &launch, int row, int lane)
{
    const struct kernel_logits &from = launch.from;

    for (int i = launch.token_first[row] + lane; i < launch.token_first[row + 1]; i += 32) {
        int at = launch.token[i] - launch.first_token;

        launch.logit[i] = at >= 0 && at < from.count ? from.logits[(size_t)from.row[row] * from.count + at] * from.scale[row] : -INFINITY;
    }
}

/* One warp: the parts of one row. */
__global__ __launch_bounds__(32) void join_kernel(const __grid_constant__ struct work work)
{
    int row = (int)blockIdx.x, lane = (int)threadIdx.x;
    const struct part *part = work.of_row + (size_t)row * work.parts;
    struct scored_token largest = {-INFINITY, -1}, winner = {-INFINITY, -1};
    double sum = 0.0;

    for (int p = lane; p < work.parts; p += 32) {
        largest = better(largest, part[p].largest);
        winner = better(winner, part[p].winner);
    }
    largest = best_of_warp(largest);
    winner = best_of_warp(winner);
    for (int p = lane; p < work.parts; p += 32)
        if (part[p].largest.score > -INFINITY)
            sum += part[p].sum * exp((double)part[p].largest.score - (double)largest.score);
    sum = sum_of_warp(sum);
    if (lane == 0) {
        work.launch.stats[row].max = largest.score;
        work.launch.stats[row].argmax = largest.token;
        work.launch.stats[row].sum = sum;
    }
    if (lane == 0 && work.launch.key != NULL)
        work.launch.winner[row] = winner;
    answer(work.launch, row, lane);
}

int parts_of(int count)
{
    return (count + PART - 1) / PART;
}
} // namespace

size_t evidence_scratch_bytes(int rows, int count)
{
    return (size_t)rows * (size_t)parts_of(count) * sizeof(struct part);
}

void evidence_start(const struct evidence_launch *launch, struct CUstream_st *stream)
{
    struct work work = {*launch, parts_of(launch->from.count), (struct part *)launch->scratch};

    LAUNCH(part_kernel, dim3(work.parts, launch->from.rows), THREADS, WARPS * (sizeof(double) + sizeof(struct scored_token)), stream, work);
    LAUNCH(join_kernel, launch->from.rows, 32, 0, stream, work);
}
