/* The largest logits of rows, in order. A block finds those of a part of 8,192 logits; then a block for each row finds them among the parts'.
 * A logit and its place make one number of 64 bits, all different, so that "largest first, ties to the lower index" is one order; the wanted-th
 * largest number is found digit by digit from histograms, what is not below it is gathered, and sorted (Alabi et al. 2012, radix select). */
#include "common/backend/cuda/kernel/cuda.h"
#include "common/backend/cuda/kernels.h"

namespace
{
enum { THREADS = 512, PART = 8192, MOST = ROW_MAX_ASKED, DIGITS = 256 };

struct work {
    struct top_launch launch;
    int parts;         /* of a row */
    uint64_t *of_part; /* [rows][parts][MOST] of each part its largest, in any order */
};

struct room {
    uint64_t list[MOST];
    unsigned histogram[DIGITS];
    unsigned gathered;
    uint64_t prefix; /* digits of the threshold that are known */
    unsigned wanted; /* numbers that are wanted of those with this prefix */
    int is_found;
};

/* Rises with the logit, then falls with the index. Zeros are alike. */
__device__ __forceinline__ uint64_t number_of(float logit, int index)
{
    unsigned bits = __float_as_uint(logit + 0.0f);

    bits = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (0xffffffffu - (unsigned)index);
}

__device__ __forceinline__ int index_of(uint64_t number)
{
    return (int)(0xffffffffu - (unsigned)number);
}

__device__ __forceinline__ int wanted_of(const struct top_launch &launch, int row)
{
    return launch.best_first[row + 1] - launch.best_first[row];
}

__device__ __forceinline__ float logit_of(const struct top_launch &launch, int row, int index)
{
    return launch.from.logits[(size_t)launch.from.row[row] * launch.from.count + index] * launch.from.scale[row];
}

/* Thread 0: the digit in which the wanted-th largest lies. */
__device__ void take_digit(struct room *room, int shift)
{
    int digit = DIGITS - 1;

    while (room->histogram[digit] < room->wanted)
        room->wanted -= room->histogram[digit--];
    room->prefix |= (uint64_t)digit << shift;
    room->is_found = room->histogram[digit] == room->wanted;
}

/* The `wanted` largest of numbers(0 .. count - 1), wanted <= count, in room->list, in any order. Zeros are no numbers. */
template <typename Numbers> __device__ void select(const Numbers &numbers, int count, int wanted, struct room *room)
{
    uint64_t known = 0;

    if (threadIdx.x == 0) {
        room->prefix = 0;
        room->wanted = (unsigned)wanted;
        room->gathered = 0;
        room->is_found = 0;
    }
    __syncthreads();
    for (int shift = 56; shift >= 0 && !room->is_found; shift -= 8) {
        uint64_t prefix = room->prefix;

        for (int d = (int)threadIdx.x; d < DIGITS; d += THREADS)
            room->histogram[d] = 0;
        __syncthreads();
        for (int i = (int)threadIdx.x; i < count; i += THREADS) {
            uint64_t number = numbers(i);

            if ((number & known) == prefix)
                atomicAdd(&room->histogram[number >> shift & 255], 1u);
        }
        __syncthreads();
        if (threadIdx.x == 0)
            take_digit(room, shift);
        known |= (uint64_t)255 << shift;
        __syncthreads();
    }
    for (int i = (int)threadIdx.x; i < count; i += THREADS) {
        uint64_t number = numbers(i);

        if (number >= room->prefix)
            room->list[atomicAdd(&room->gathered, 1u)] = number;
    }
    __syncthreads();
}

__global__ __launch_bounds__(THREADS) void part_kernel(const __grid_constant__ struct work work)
{
    SHARED(memory);
    struct room *room = (struct room *)(void *)memory;
    const struct top_launch &launch = work.launch;
    int row = (int)blockIdx.y, first = (int)blockIdx.x * PART, count = min(PART, launch.from.count - first);
    int wanted = min(wanted_of(launch, row), count);
    uint64_t *to = work.of_part + ((size_t)row * work.parts + blockIdx.x) * MOST;

    if (wanted == 0)
        return;
    select([&](int i) { return number_of(logit_of(launch, row, first + i), first + i); }, count, wanted, room);
    for (int i = (int)threadIdx.x; i < wanted; i += THREADS)
        to[i] = room->list[i];
}

/* Sorts list[0 .. size), a power of two, largest first (Batcher 1968, bitonic). */
__device__ void sort(uint64_t *list, int size)
{
    for (int block = 2; block <= size; block *= 2)
        for (int by = block / 2; by > 0; by /= 2) {
            for (int i = (int)threadIdx.x; i < size; i += THREADS) {
                int other = i ^ by;
                uint64_t a = list[i], b = other < size ? list[other] : 0;

                if (other > i && ((i & block) == 0 ? a < b : a > b)) {
                    list[i] = b;
                    list[other] = a;
                }
            }
            __syncthreads();
        }
}

__global__ __launch_bounds__(THREADS) void join_kernel(const __grid_constant__ struct work work)
{
    SHARED(memory);
    struct room *room = (struct room *)(void *)memory;
    const struct top_launch &launch = work.launch;
    int row = (int)blockIdx.x, asked = wanted_of(launch, row), wanted = min(asked, launch.from.count), size = 1;
    const uint64_t *of_row = work.of_part + (size_t)row * work.parts * MOST;
    struct scored_token *to = launch.best + launch.best_first[row];

    if (wanted == 0)
        return;
    /* Of the last part fewer may be there; what a part does not have is 0, below every number. */
    select(
        [&](int i) {
            int part = i / asked, at = i % asked, there = min(PART, launch.from.count - part * PART);

            return at < there ? of_row[(size_t)part * MOST + at] : (uint64_t)0;
        },
        work.parts * asked, wanted, room);
    while (size < wanted)
        size *= 2;
    for (int i = wanted + (int)threadIdx.x; i < size; i += THREADS)
        room->list[i] = 0;
    __syncthreads();
    sort(room->list, size);
    for (int i = (int)threadIdx.x; i < wanted; i += THREADS) {
        int index = index_of(room->list[i]);

        to[i] = {logit_of(launch, row, index), index};
    }
}

int parts_of(int count)
{
    return (count + PART - 1) / PART;
}
} // namespace

int top_prepare(void)
{
    int error = SHARED_PREFER(part_kernel);

    return error != 0 ? error : SHARED_PREFER(join_kernel);
}

size_t top_scratch_bytes(int rows, int count)
{
    return (size_t)rows * (size_t)parts_of(count) * MOST * sizeof(uint64_t);
}

void top_start(const struct top_launch *launch, struct CUstream_st *stream)
{
    struct work work = {*launch, parts_of(launch->from.count), (uint64_t *)launch->scratch};

    LAUNCH(part_kernel, dim3(work.parts, launch->from.rows), THREADS, sizeof(struct room), stream, work);
    LAUNCH(join_kernel, launch->from.rows, THREADS, sizeof(struct room), stream, work);
}
