/* CUDA's language on the CPU: enough of it for the kernels of this folder to compile as C++ and to run as they would on a device, thread for thread,
 * so that their logic can be tested anywhere. A thread of a block is a fiber; it runs until it meets others (__syncthreads, a shuffle, a matrix
 * instruction), so a missing barrier shows as a wrong result once threads run in another order (emulation_order). It owns the fibers and the block's
 * shared memory, which is filled with NaN before each block and has exactly the size of the launch, for address sanitizers to watch. Tests alone use
 * it; one launch at a time.
 *
 * It cannot show: races between blocks (they run one after the other, but for those of a cluster), what a warp does without a barrier in lockstep,
 * how fast anything is, and the order in which a matrix unit adds (here: one chain of fused multiply-adds in rising k). */
#ifndef TANDEM_COMMON_BACKEND_CUDA_EMULATION_H
#define TANDEM_COMMON_BACKEND_CUDA_EMULATION_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};
struct uint2 {
    unsigned x, y;
};
struct uint4 {
    unsigned x, y, z, w;
};
struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};
typedef struct CUstream_st *cudaStream_t; /* there is one, and a launch is done when it returns */

struct emulation_place {
    dim3 thread, block, block_size, grid_size;
    unsigned char *shared;
};
extern struct emulation_place emulation_now;
#define threadIdx emulation_now.thread
#define blockIdx  emulation_now.block
#define blockDim  emulation_now.block_size
#define gridDim   emulation_now.grid_size

/* What a kernel is known by. */
template <typename... A> const void *emulation_name(void (*kernel)(A...))
{
    return reinterpret_cast<const void *>(kernel);
}
/* The kernel's blocks may have so much shared memory, 48 KiB where nothing else was said. 0, or CUDA's number of the error. */
int emulation_prepare(const void *kernel, size_t shared_bytes);
/* How many kernels were launched that were not prepared. */
extern "C" int emulation_unprepared();

/* Runs the body once for each thread of each block; blocks of so many neighbours, a cluster, run together. */
void emulation_launch(const void *kernel, unsigned cluster, dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &body);
/* Launches and copies from here on are recorded instead of done, up to emulation_recorded; emulation_play does them. */
extern "C" void emulation_record();
extern "C" struct device_graph *emulation_recorded();
extern "C" void emulation_play(struct device_graph *graph);
extern "C" void emulation_forget(struct device_graph *graph);
/* Whether emulation_recorded gives NULL from here on, as a device does that has no memory for what was recorded. */
extern "C" void emulation_refuse_recordings(int refuse);
/* The most shared memory that a block may ask for from here on. */
extern "C" void emulation_allow(size_t block_bytes);
/* memcpy in its turn. */
extern "C" void emulation_copy(void *to, const void *from, size_t bytes);
/* The order of threads and blocks from here on: 0 rising (at first), 1 falling, others shuffled by this seed; where it is odd, a warp runs
 * as far as it can before another does. */
extern "C" void emulation_order(unsigned seed);

void __syncthreads();
void __syncwarp(unsigned mask = 0xffffffffu);
/* Copies what lies at `from`, or zeros for NULL, when the thread comes to emulation_copied; up to then there is NaN. It may not end before. */
void emulation_copy_later(void *to, const void *from, size_t bytes);
void emulation_copied();
/* Until `threads` of the block are at this place, 0 or 1. */
void emulation_meet(int place, int threads);
/* Until all threads of the cluster are here. */
void emulation_meet_cluster();
/* Where what lies there in the caller's shared memory lies in that of block `number` of the cluster. */
const void *emulation_of_block(const void *shared, int number);
/* Every lane of the calling thread's warp gives `bytes` (at most 64); returns all of them, [32][64], anything for lanes that have ended.
 * Valid until the lane's next but one exchange. */
const unsigned char *emulation_exchange(const void *mine, size_t bytes);

template <typename T> T emulation_from(T value, int lane)
{
    T other;
    memcpy(&other, emulation_exchange(&value, sizeof value) + 64 * (lane & 31), sizeof other);
    return other;
}
static inline int emulation_lane()
{
    return (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & 31;
}
template <typename T> T __shfl_sync(unsigned, T value, int lane)
{
    return emulation_from(value, lane);
}
template <typename T> T __shfl_xor_sync(unsigned, T value, int mask)
{
    return emulation_from(value, emulation_lane() ^ mask);
}
template <typename T> T __shfl_down_sync(unsigned, T value, int by)
{
    int lane = emulation_lane();
    return emulation_from(value, lane + by < 32 ? lane + by : lane);
}
template <typename T> T __shfl_up_sync(unsigned, T value, int by)
{
    int lane = emulation_lane();
    return emulation_from(value, lane >= by ? lane - by : lane);
}
unsigned __ballot_sync(unsigned mask, int predicate);
static inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}

template <typename T> T atomicAdd(T *at, T value)
{
    T before = *at;
    *at = before + value;
    return before;
}
template <typename T> T atomicExch(T *at, T value)
{
    T before = *at;
    *at = value;
    return before;
}
template <typename T> T atomicMax(T *at, T value)
{
    T before = *at;
    *at = value > before ? value : before;
    return before;
}
template <typename T> T atomicCAS(T *at, T expected, T value)
{
    T before = *at;
    *at = before == expected ? value : before;
    return before;
}
template <typename T> T __ldg(const T *from)
{
    return *from;
}
static inline void __threadfence()
{
}
static inline float __uint_as_float(unsigned bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline unsigned __float_as_uint(float value)
{
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}
static inline int __popcll(unsigned long long bits)
{
    return __builtin_popcountll(bits);
}
static inline int __ffsll(long long bits)
{
    return __builtin_ffsll(bits);
}
static inline int __clz(int bits)
{
    return bits == 0 ? 32 : __builtin_clz((unsigned)bits);
}
static inline int min(int a, int b)
{
    return a < b ? a : b;
}
static inline int max(int a, int b)
{
    return a > b ? a : b;
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}

#endif
