/* Evidence of rows of logits. A block takes a part of 4,096 logits of one row: its largest, the sum of exp(logit - largest), and the winner
 * of the Gumbel-max draw, with the noise of common/base/rng.c, compiled for the device. Then a block for each row puts the parts together. The head
 * of linear.cu can make parts itself, of the channels that a block of it has, and keep no logits. Parts, lanes and warps follow the place in
 * the row, so the sum has one order. */
#include "common/backend/cuda/kernel/evidence.h"

namespace
{
enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    FOURS = 4, /* of a thread */
    PART = THREADS * FOURS * 4,
    JOINED = 8, /* parts on their way to a thread */
};

struct work {
    struct evidence_launch launch;
    int parts;           /* of a row */
    struct evidence_part *of_row; /* [rows][parts] */
};

__device__ double sum_of_block(double mine, double *room)
{
    double sum = 0.0;

    mine = evidence_sum(mine);
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = mine;
    __syncthreads();
    for (int w = 0; w < WARPS; w++)
        sum += room[w];
    __syncthreads();
    return sum;
}

/* The best of the block, in every thread.  room: [WARPS] of shared memory */
__device__ struct scored_token best_of_block(struct scored_token mine, struct scored_token *room)
{
    mine = evidence_best(mine);
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = mine;
    __syncthreads();
    mine = room[0];
    for (int w = 1; w < WARPS; w++)
        mine = evidence_better(mine, room[w]);
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

/* A four whose largest logit could not win with the largest noise of all is left out; rounding never turns an order round. */
__device__ struct scored_token gumbel_max(const struct work &work, const float logit[FOURS * 4])
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
        rng_words(&key, (enum rng_purpose)launch.purpose[blockIdx.y], ((uint32_t)launch.first_token + (uint32_t)first_of(k)) / 4, words);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int at = first_of(k) + i;
            float score = logit[4 * k + i] + rng_gumbel_of(words[i]);

            if (score > best.score && !(excludes && evidence_listed(launch, (int)blockIdx.y, launch.first_token + at) >= 0))
                best = {score, at};
        }
    }
    return best;
}

/* Where exp is 0 the distance counts as the least for which it is, so that minus infinity adds 0. */
__device__ double below_of(const float logit[FOURS * 4], float largest)
{
    double below = 0.0;

    if (largest > -INFINITY)
#pragma unroll
        for (int i = 0; i < FOURS * 4; i++)
            below += (double)(fminf(largest - logit[i], -MATH32_EXP_LOW) * math32_exp(logit[i] - largest));
    return below;
}

__global__ __launch_bounds__(THREADS) void part_kernel(const __grid_constant__ struct work work)
{
    SHARED(memory);
    double *sums = (double *)(void *)memory; /* [WARPS] */
    struct scored_token *room = (struct scored_token *)(void *)(sums + WARPS);
    struct evidence_part part = {0.0, {-INFINITY, -1}, {-INFINITY, -1}, 0.0};
    float logit[FOURS * 4];
    double sum = 0.0;

    load_logits(work, logit);
    part.largest = best_of_block(find_largest(logit, work.launch.from.count), room);
    if (part.largest.score > -INFINITY)
#pragma unroll
        for (int i = 0; i < FOURS * 4; i++)
            sum += (double)math32_exp(logit[i] - part.largest.score);
    part.sum = sum_of_block(sum, sums);
    if (work.launch.below)
        part.below = sum_of_block(below_of(logit, part.largest.score), sums);
    if (evidence_has_noise(work.launch, (int)blockIdx.y))
        part.winner = best_of_block(gumbel_max(work, logit), room);
    if (threadIdx.x == 0)
        work.of_row[(size_t)blockIdx.y * work.parts + blockIdx.x] = part;
}

/* The logits of a row's tokens. Where the head has not kept its logits it has written those of this shard. */
__device__ void answer(const struct evidence_launch &launch, int row)
{
    const struct kernel_logits &from = launch.from;

    for (int i = launch.token_first[row] + (int)threadIdx.x; i < launch.token_first[row + 1]; i += THREADS) {
        int at = launch.token[i] - launch.first_token;

        if (at < 0 || at >= from.count)
            launch.logit[i] = -INFINITY;
        else if (from.logits != NULL)
            launch.logit[i] = from.logits[(size_t)from.row[row] * from.count + at] * from.scale[row];
    }
}

/* The parts that a thread has of those from `first` on, all on their way at once; beyond the last, the last once more. */
__device__ __forceinline__ void take_parts(const struct work &work, const struct evidence_part *part, int first, struct evidence_part mine[JOINED])
{
#pragma unroll
    for (int i = 0; i < JOINED; i++)
        mine[i] = part[min(first + i * THREADS + (int)threadIdx.x, work.parts - 1)];
    warp_in_turn();
}

/* The parts of one row. */
__global__ __launch_bounds__(THREADS) void join_kernel(const __grid_constant__ struct work work)
{
    SHARED(memory);
    double *sums = (double *)(void *)memory; /* [WARPS] */
    struct scored_token *room = (struct scored_token *)(void *)(sums + WARPS), largest = {-INFINITY, -1}, winner = {-INFINITY, -1};
    int row = (int)blockIdx.x;
    const struct evidence_part *part = work.of_row + (size_t)row * work.parts;
    double sum = 0.0, below = 0.0;

    for (int first = 0; first < work.parts; first += JOINED * THREADS) {
        struct evidence_part mine[JOINED];

        take_parts(work, part, first, mine);
#pragma unroll
        for (int i = 0; i < JOINED; i++) { /* the same part twice is no matter */
            largest = evidence_better(largest, mine[i].largest);
            winner = evidence_better(winner, mine[i].winner);
        }
    }
    largest = best_of_block(largest, room);
    winner = best_of_block(winner, room);
    for (int first = 0; first < work.parts; first += JOINED * THREADS) {
        struct evidence_part mine[JOINED];

        take_parts(work, part, first, mine);
#pragma unroll
        for (int i = 0; i < JOINED; i++)
            if (first + i * THREADS + (int)threadIdx.x < work.parts && mine[i].largest.score > -INFINITY) {
                double apart = (double)largest.score - (double)mine[i].largest.score, share = exp(-apart);

                sum += mine[i].sum * share;
                if (work.launch.below)
                    below += (mine[i].below + apart * mine[i].sum) * share;
            }
    }
    sum = sum_of_block(sum, sums);
    if (work.launch.below)
        below = sum_of_block(below, sums);
    if (threadIdx.x == 0) {
        work.launch.stats[row].max = largest.score;
        work.launch.stats[row].argmax = largest.token;
        work.launch.stats[row].sum = sum;
        work.launch.stats[row].below = below;
    }
    if (threadIdx.x == 0 && work.launch.key != NULL)
        work.launch.winner[row] = winner;
    answer(work.launch, row);
}

int parts_of(int count)
{
    return (count + PART - 1) / PART;
}

constexpr size_t SHARED_BYTES = WARPS * (sizeof(double) + sizeof(struct scored_token));
} // namespace

int evidence_prepare(void)
{
    int error = SHARED_PREFER(part_kernel);

    return error != 0 ? error : SHARED_PREFER(join_kernel);
}

size_t evidence_scratch_bytes(int rows, int count)
{
    size_t apart = (size_t)rows * (size_t)parts_of(count), with_head = (size_t)min(rows, (int)KERNEL_ROWS) * (size_t)((count + 15) / 16);

    return (apart > with_head ? apart : with_head) * sizeof(struct evidence_part);
}

void evidence_start(const struct evidence_launch *launch, struct CUstream_st *stream)
{
    struct work work = {*launch, parts_of(launch->from.count), (struct evidence_part *)launch->scratch};

    LAUNCH(part_kernel, dim3(work.parts, launch->from.rows), THREADS, SHARED_BYTES, stream, work);
    LAUNCH(join_kernel, launch->from.rows, THREADS, SHARED_BYTES, stream, work);
}

void evidence_join_start(const struct evidence_launch *launch, int parts, struct CUstream_st *stream)
{
    struct work work = {*launch, parts, (struct evidence_part *)launch->scratch};

    LAUNCH(join_kernel, launch->from.rows, THREADS, SHARED_BYTES, stream, work);
}
