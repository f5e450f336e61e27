/* The sum over devices in one kernel (one-shot all-reduce, low-latency protocol: each eight bytes are four of data and the number of the sum,
 * which arrive together or not at all).
 *
 * An inbox has two halves, used in turn. Sum e goes into half e % 2, whose last numbers were of sum e - 2. A rank that begins sum e has ended sum
 * e - 1, for kernels of a stream follow each other; so it has had a number of sum e - 1 from every other, and each of these had then ended sum
 * e - 2: nobody reads any more what is now overwritten. Numbers of sums go round after 2^32; a place that was not written for exactly so long would
 * be taken for new, and each step writes all of a row's places. */
#include "common/backend/cuda/kernel/tree.h"
#include "common/backend/cuda/kernel/warp.h"
#include "common/backend/cuda/kernels.h"

namespace
{
enum {
    THREADS = 256,
    LOOKS = 1024, /* between two at `stop`, which is the host's memory */
    BLOCKS = 2,   /* of a multiprocessor: all are there at once, so none waits for one that has not begun */
};

/* Two numbers of one rank. */
__device__ __forceinline__ uint4 *place_of(const struct one_shot_launch &launch, int whose, unsigned sum, int from, size_t pair)
{
    size_t pairs = (launch.most + 1) / 2;

    return static_cast<uint4 *>(launch.inbox[whose]) + ((size_t)(sum % 2) * (size_t)launch.size + (size_t)from) * pairs + pair;
}

__device__ __forceinline__ float2 load_pair(const float *from, size_t i, size_t count)
{
    return {from[i], i + 1 < count ? from[i + 1] : 0.0f};
}

/* The others' pairs; false when it is over. */
__device__ bool await_pairs(const struct one_shot_launch &launch, unsigned sum, size_t pair, uint4 came[ONE_SHOT_RANKS])
{
    for (int looks = 1;; looks++) {
        bool all = true;

#pragma unroll
        for (int r = 0; r < ONE_SHOT_RANKS; r++)
            if (r < launch.size && r != launch.rank)
                came[r] = warp_receive(place_of(launch, launch.rank, sum, r, pair));
#pragma unroll
        for (int r = 0; r < ONE_SHOT_RANKS; r++)
            all = all && (r >= launch.size || r == launch.rank || (came[r].y == sum && came[r].w == sum));
        if (all)
            return true;
        if (looks % LOOKS == 0 && warp_look(launch.stop) != 0)
            return false;
        warp_pause();
    }
}

__device__ void send_pair(const struct one_shot_launch &launch, unsigned sum, size_t pair)
{
    float2 mine = load_pair(launch.partial, 2 * pair, launch.count);
    uint4 sent = {__float_as_uint(mine.x), sum, __float_as_uint(mine.y), sum};

    for (int r = 0; r < launch.size; r++)
        if (r != launch.rank)
            warp_send(place_of(launch, r, sum, launch.rank, pair), sent);
}

__device__ void sum_pair(const struct one_shot_launch &launch, unsigned sum, size_t pair)
{
    size_t i = 2 * pair;
    float2 mine = load_pair(launch.partial, i, launch.count);
    uint4 came[ONE_SHOT_RANKS] = {};
    float first[ONE_SHOT_RANKS], second[ONE_SHOT_RANKS], low, high;

    if (!await_pairs(launch, sum, pair, came))
        return;
#pragma unroll
    for (int r = 0; r < ONE_SHOT_RANKS; r++) {
        bool other = r < launch.size && r != launch.rank;

        first[r] = other ? __uint_as_float(came[r].x) : mine.x;
        second[r] = other ? __uint_as_float(came[r].z) : mine.y;
    }
    low = tree_sum<ONE_SHOT_RANKS>(first, launch.size);
    high = tree_sum<ONE_SHOT_RANKS>(second, launch.size);
    launch.x[i] = launch.adds ? launch.x[i] + low : low;
    if (i + 1 < launch.count)
        launch.x[i + 1] = launch.adds ? launch.x[i + 1] + high : high;
}

__global__ __launch_bounds__(THREADS) void one_shot_kernel(const __grid_constant__ struct one_shot_launch launch)
{
    overlap_allow();
    overlap_wait();
    unsigned sum = warp_look(&launch.counters[0]) + 1;
    size_t own = (size_t)blockIdx.x * THREADS + threadIdx.x, stride = (size_t)gridDim.x * THREADS;

    for (size_t pair = own; 2 * pair < launch.count; pair += stride)
        send_pair(launch, sum, pair);
    for (size_t pair = own; 2 * pair < launch.count; pair += stride)
        sum_pair(launch, sum, pair);
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(&launch.counters[1], 1u) == gridDim.x - 1) { /* every block has read the number of this sum */
        launch.counters[1] = 0;
        launch.counters[0] = sum;
    }
}
} // namespace

int one_shot_prepare(void)
{
    return SHARED_PREFER(one_shot_kernel);
}

size_t one_shot_bytes(int size, size_t most)
{
    return 2 * (size_t)size * ((most + 1) / 2) * sizeof(uint4);
}

void one_shot_start(const struct one_shot_launch *launch, struct CUstream_st *stream)
{
    struct one_shot_launch copy = *launch;
    size_t blocks = (launch->count + 2 * THREADS - 1) / (2 * THREADS), most = (size_t)launch->processors * BLOCKS;

    LAUNCH_AHEAD(one_shot_kernel, dim3((unsigned)(blocks < most ? blocks : most)), THREADS, 0, stream, launch->overlaps, copy);
}
