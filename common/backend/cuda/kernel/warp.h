/* What a warp does at once, on the device and, as a plain twin, in the emulation: the matrix instruction, streaming loads, numbers of 16 bits. struct
 * bf16 and struct f16 only name a type of number; two of them lie in 32 bits, the first in the low half. Device code, for kernels alone; all lanes of
 * a warp call together. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_WARP_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_WARP_H

#include "common/backend/cuda/kernel/cuda.h"
#include "common/backend/cuda/kernels.h"

#ifndef __CUDACC__
#include <sched.h>
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

struct bf16 {
};
struct f16 {
};

#ifdef __CUDACC__

/* Rounds to nearest even. */
static __device__ __forceinline__ unsigned warp_pack(bf16, float low, float high)
{
    __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);

    return *reinterpret_cast<unsigned *>(&pair);
}
static __device__ __forceinline__ unsigned warp_pack(f16, float low, float high)
{
    __half2 pair = __floats2half2_rn(low, high);

    return *reinterpret_cast<unsigned *>(&pair);
}
static __device__ __forceinline__ float2 warp_unpack(f16, unsigned pair)
{
    return __half22float2(*reinterpret_cast<__half2 *>(&pair));
}

/* Both of a pair, less those of the other. */
static __device__ __forceinline__ unsigned warp_subtract(bf16, unsigned from, unsigned pair)
{
    __nv_bfloat162 difference = __hsub2(*reinterpret_cast<__nv_bfloat162 *>(&from), *reinterpret_cast<__nv_bfloat162 *>(&pair));

    return *reinterpret_cast<unsigned *>(&difference);
}

/* Both of a pair, times those of the other. */
static __device__ __forceinline__ unsigned warp_times(bf16, unsigned one, unsigned other)
{
    __nv_bfloat162 product = __hmul2(*reinterpret_cast<__nv_bfloat162 *>(&one), *reinterpret_cast<__nv_bfloat162 *>(&other));

    return *reinterpret_cast<unsigned *>(&product);
}

/* d += A B for A of 16 x 16, B of 16 x 8, spread over the lanes as PTX has it for mma.m16n8k16: with g = lane / 4 and t = lane % 4,
 *   a.x, a.y: rows g, g + 8, columns 2t, 2t + 1   a.z, a.w: the same rows, columns 2t + 8, 2t + 9
 *   b.x, b.y: column g, rows 2t, 2t + 1 and 2t + 8, 2t + 9   d: row g, columns 2t, 2t + 1; row g + 8, columns 2t, 2t + 1
 * A column of d depends on that column of B alone. All lanes take part. */
static __device__ __forceinline__ void warp_mma(bf16, float d[4], const uint4 &a, const uint2 &b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}
static __device__ __forceinline__ void warp_mma(f16, float d[4], const uint4 &a, const uint2 &b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}

/* Reads what nobody reads again soon: it does not stay in the L1 cache. Not by way of the "non-coherent" cache: a kernel may have written it after
 * this one began and before it waited for that; and such loads would not heed warp_in_turn. */
static __device__ __forceinline__ uint4 warp_stream(const uint4 *from)
{
    uint4 value;

    asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(from)
                 : "memory");
    return value;
}

static __device__ __forceinline__ uint2 warp_stream(const uint2 *from)
{
    uint2 value;

    asm volatile("ld.global.L1::no_allocate.L2::128B.v2.u32 {%0, %1}, [%2];" : "=r"(value.x), "=r"(value.y) : "l"(from) : "memory");
    return value;
}

/* The same of what another warp of the block is about to read as well: it may stay in the L1 cache. */
static __device__ __forceinline__ uint4 warp_stream_near(const uint4 *from)
{
    uint4 value;

    asm volatile("ld.global.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(from)
                 : "memory");
    return value;
}

static __device__ __forceinline__ uint2 warp_stream_near(const uint2 *from)
{
    uint2 value;

    asm volatile("ld.global.L2::128B.v2.u32 {%0, %1}, [%2];" : "=r"(value.x), "=r"(value.y) : "l"(from) : "memory");
    return value;
}
static __device__ __forceinline__ unsigned warp_stream_near(const unsigned *from)
{
    unsigned value;

    asm volatile("ld.global.L2::128B.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

/* Begins to copy 16 bytes from the L2 cache into shared memory, or, for `there` = 0, as many zeros; both are aligned to 16. Done for the calling
 * thread behind its warp_copied, and for others that meet it after that. */
static __device__ __forceinline__ void warp_copy(void *to, const void *from, int there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}
static __device__ __forceinline__ void warp_copied()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* Reads what another kernel, or a copy from the host, has just written: from the L2 cache, where all writes meet. */
template <typename T> static __device__ __forceinline__ T warp_fresh(const T *from)
{
    return __ldcg(from);
}

/* Reads what nothing writes while a model is loaded: from the cache of the multiprocessor, where what its threads read before still is. */
template <typename T> static __device__ __forceinline__ T warp_kept(const T *from)
{
    return __ldg(from);
}

/* One lane asks for `bytes`, a multiple of 16, to be brought into the L2 cache. A hint: older devices ignore it. */
static __device__ __forceinline__ void warp_prefetch(const uint4 *from, unsigned bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
#else
    (void)from, (void)bytes;
#endif
}

/* What a warp has asked for ahead of this it asks for first. Without it the compiler puts all the loads of a loop's body behind all its products,
 * and what is on its way to the warp runs dry in each turn; seen in the instructions of sm_90a. All lanes. */
static __device__ __forceinline__ void warp_in_turn()
{
    __syncwarp();
}

/* To another device and from it: 16 bytes, of which each half arrives at once. */
static __device__ __forceinline__ void warp_send(uint4 *to, const uint4 &value)
{
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
                 : "memory");
}
static __device__ __forceinline__ uint4 warp_receive(const uint4 *from)
{
    uint4 value;

    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(from)
                 : "memory");
    return value;
}
/* What is there now, whoever wrote it. */
static __device__ __forceinline__ unsigned warp_look(const unsigned *at)
{
    return *static_cast<const volatile unsigned *>(at);
}
/* Between two looks. */
static __device__ __forceinline__ void warp_pause()
{
}

/* Waits until `threads` of the block, whole warps, have come to this place, 0 or 1. Each is a barrier by name: for one that is computed, a block
 * would be given all sixteen. */
static __device__ __forceinline__ void warp_meet(int place, int threads)
{
    if (place == 0)
        asm volatile("barrier.sync 1, %0;" ::"r"(threads) : "memory");
    else
        asm volatile("barrier.sync 2, %0;" ::"r"(threads) : "memory");
}

#else

static inline unsigned warp_round(bf16, float value)
{
    unsigned bits = __float_as_uint(value);

    return value != value ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
static inline unsigned warp_round(f16, float value)
{
    unsigned bits = __float_as_uint(value), sign = bits >> 16 & 0x8000;
    float size = fabsf(value);

    if (value != value)
        return 0x7fff;
    if (size >= 65520.0f)
        return sign | 0x7c00;
    if (size < 0x1p-14f) /* a multiple of 2^-24: adding makes the rounding */
        return sign | (__float_as_uint(size + 0.5f) - __float_as_uint(0.5f));
    bits &= 0x7fffffff;
    return sign | ((bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13);
}
template <typename T> static inline unsigned warp_pack(T type, float low, float high)
{
    return warp_round(type, low) | warp_round(type, high) << 16;
}
static inline float warp_widen(bf16, unsigned bits)
{
    return __uint_as_float(bits << 16);
}
static inline float warp_widen(f16, unsigned bits)
{
    unsigned sign = (bits & 0x8000) << 16, rest = bits & 0x7fff;

    if (rest < 0x400)
        return __uint_as_float(sign | __float_as_uint((float)rest * 0x1p-24f));
    return __uint_as_float(sign | ((rest << 13) + (rest < 0x7c00 ? 112u << 23 : 224u << 23)));
}
static inline float2 warp_unpack(f16 type, unsigned pair)
{
    return {warp_widen(type, pair & 0xffff), warp_widen(type, pair >> 16)};
}

static inline unsigned warp_subtract(bf16 type, unsigned from, unsigned pair)
{
    return warp_pack(type, warp_widen(type, from & 0xffff) - warp_widen(type, pair & 0xffff),
                     warp_widen(type, from >> 16) - warp_widen(type, pair >> 16));
}

static inline unsigned warp_times(bf16 type, unsigned one, unsigned other)
{
    return warp_pack(type, warp_widen(type, one & 0xffff) * warp_widen(type, other & 0xffff),
                     warp_widen(type, one >> 16) * warp_widen(type, other >> 16));
}

/* One chain of fused multiply-adds in rising k. Sanitizers have nothing to see in it, and half of an emulated kernel's time is here. */
template <typename T> __attribute__((no_sanitize("address", "undefined"))) static void warp_mma(T type, float d[4], const uint4 &a, const uint2 &b)
{
    struct operands {
        uint4 a;
        uint2 b;
    } mine = {a, b}, from;
    const unsigned char *given = emulation_exchange(&mine, sizeof mine);
    int lane = emulation_lane();
    float2 left[2][8], right[2][8]; /* of two rows and of two columns, by pairs of k */

    for (int j = 0; j < 4; j++) { /* four lanes have a row or a column */
        memcpy(&from, given + 64 * (lane / 4 * 4 + j), sizeof from);
        left[0][j] = warp_unpack(type, from.a.x);
        left[1][j] = warp_unpack(type, from.a.y);
        left[0][4 + j] = warp_unpack(type, from.a.z);
        left[1][4 + j] = warp_unpack(type, from.a.w);
        for (int c = 0; c < 2; c++) {
            memcpy(&from, given + 64 * (4 * (2 * (lane % 4) + c) + j), sizeof from);
            right[c][j] = warp_unpack(type, from.b.x);
            right[c][4 + j] = warp_unpack(type, from.b.y);
        }
    }
    for (int pair = 0; pair < 8; pair++)
        for (int i = 0; i < 4; i++)
            d[i] = fmaf(left[i / 2][pair].y, right[i % 2][pair].y, fmaf(left[i / 2][pair].x, right[i % 2][pair].x, d[i]));
}

template <typename T> static inline T warp_stream(const T *from)
{
    return *from;
}
template <typename T> static inline T warp_stream_near(const T *from)
{
    return *from;
}
static inline void warp_copy(void *to, const void *from, int there)
{
    emulation_copy_later(to, there ? from : NULL, 16);
}
static inline void warp_copied()
{
    emulation_copied();
}
template <typename T> static inline T warp_fresh(const T *from)
{
    return *from;
}
template <typename T> static inline T warp_kept(const T *from)
{
    return *from;
}
static inline void warp_in_turn()
{
}
static inline void warp_send(uint4 *to, const uint4 &value)
{
    uint64_t half[2];

    memcpy(half, &value, sizeof half);
    __atomic_store_n(reinterpret_cast<uint64_t *>(to), half[0], __ATOMIC_RELEASE);
    __atomic_store_n(reinterpret_cast<uint64_t *>(to) + 1, half[1], __ATOMIC_RELEASE);
}
static inline uint4 warp_receive(const uint4 *from)
{
    uint64_t half[2];
    uint4 value;

    half[0] = __atomic_load_n(reinterpret_cast<const uint64_t *>(from), __ATOMIC_ACQUIRE);
    half[1] = __atomic_load_n(reinterpret_cast<const uint64_t *>(from) + 1, __ATOMIC_ACQUIRE);
    memcpy(&value, half, sizeof value);
    return value;
}
static inline unsigned warp_look(const unsigned *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}
static inline void warp_pause()
{
    sched_yield(); /* the others are processes of this machine */
}
static inline void warp_meet(int place, int threads)
{
    emulation_meet(place, threads);
}
/* Touches both ends, so that a sanitizer sees where they lie. */
static inline void warp_prefetch(const uint4 *from, unsigned bytes)
{
    volatile unsigned first = from->x, last = from[bytes / sizeof *from - 1].w;

    (void)first, (void)last;
}

#endif

static __device__ __forceinline__ float2 warp_unpack(bf16, unsigned pair)
{
    return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
}

/* to[at] = value, in these numbers */
static __device__ __forceinline__ void warp_put(void *to, enum kernel_numbers numbers, size_t at, float value)
{
    if (numbers == KERNEL_F32)
        static_cast<float *>(to)[at] = value;
    else
        static_cast<uint16_t *>(to)[at] = (uint16_t)(numbers == KERNEL_F16 ? warp_pack(f16(), value, 0.0f) : warp_pack(bf16(), value, 0.0f));
}

/* Where E4M3 has a sign, 4 bits of exponent and 3 of fraction: the nearest, ties to even; 448 in place of what is larger; NaN stays NaN. Below 2^-6
 * it is a multiple of 2^-9, which is the last place of a float32 of 2^14. */
static __device__ __forceinline__ uint8_t warp_e4m3(float x)
{
    unsigned sign = __float_as_uint(x) >> 24 & 0x80;
    float size = fminf(fabsf(x), 448.0f);
    unsigned bits = __float_as_uint(size);

    if (x != x)
        return (uint8_t)(sign | 0x7f);
    if (size < 0.015625f)
        return (uint8_t)(sign | (__float_as_uint(size + 16384.0f) & 15));
    return (uint8_t)(sign | (bits + (bits >> 20 & 1) + 0x7ffff - (120u << 23)) >> 20);
}

/* Of four bytes of E4M3 the two from byte `first` on, as bfloat16, which has them all: their bits are those of one with another bias, also where they
 * are subnormal. */
static __device__ __forceinline__ unsigned warp_widen_e4m3(unsigned bytes, int first)
{
    unsigned two = bytes >> 8 * first, size = (two & 0x7f) << 4 | (two & 0x7f00) << 12, sign = (two & 0x80) << 8 | (two & 0x8000) << 16;
    unsigned odd = (size + 0x00100010) >> 11 & 0x00010001; /* NaN */

    return warp_times(bf16(), size, 0x7b807b80) | sign | odd * 0x7fff; /* times 2^120 */
}

/* The sum over the lanes, the same bits in each. */
static __device__ __forceinline__ float warp_sum(float value)
{
    for (int by = 16; by > 0; by /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, by);
    return value;
}

#endif
