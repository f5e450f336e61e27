/* Keys and values of attend.cu, from the cache to the matrix unit, as B. The sum over a head's dimensions may take them in any order, and which of
 * eight products has which dimension is free, too: so a lane reads 8 numbers of a place at once (16 bytes; of
 * E4M3 8, which are widened in registers) and uses them where it is. Lanes are named as in
 * attend_queries.h. Device code, for attend.cu alone; it reads the cache and never writes it. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_ATTEND_CACHE_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_ATTEND_CACHE_H

#include "common/backend/cuda/kernel/warp.h"

/* Eight numbers from dimension d on of a place; zeros where there are none. Heads of a multiple of 8 have them aligned. */
template <bool aligned> static __device__ __forceinline__ uint4 load_eight(const uint16_t *place, int d, int head_dim, bool wanted)
{
    unsigned word[4] = {0, 0, 0, 0};

    if (aligned && wanted && d < head_dim)
        return warp_stream((const uint4 *)(const void *)(place + d));
    for (int i = 0; i < 4 && !aligned; i++)
        if (wanted && d + 2 * i < head_dim)
            word[i] = ((const unsigned *)(const void *)(place + d))[i];
    return {word[0], word[1], word[2], word[3]};
}

/* The same of E4M3, as bfloat16. */
template <bool aligned> static __device__ __forceinline__ uint4 load_eight(const uint8_t *place, int d, int head_dim, bool wanted)
{
    unsigned word[2] = {0, 0};

    if (aligned && wanted && d < head_dim) {
        uint2 bytes = warp_stream((const uint2 *)(const void *)(place + d));

        word[0] = bytes.x;
        word[1] = bytes.y;
    }
    for (int i = 0; i < 8 && !aligned; i++)
        if (wanted && d + i < head_dim)
            word[i / 4] |= (unsigned)place[d + i] << 8 * (i % 4);
    return {warp_widen_e4m3(word[0], 0), warp_widen_e4m3(word[0], 2), warp_widen_e4m3(word[1], 0), warp_widen_e4m3(word[1], 2)};
}

/* Lane (g, t): of the keys at places first + 8 j + g the dimensions d + 32 i + 8 t .. + 7. */
template <int passes, bool aligned, typename N>
static __device__ __forceinline__ void load_keys(const N *keys, int first, int end, int d, int head_dim, int lane, uint4 loaded[2 * passes][4])
{
#pragma unroll
    for (int i = 0; i < 2 * passes; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int place = first + 8 * j + lane / 4;

            loaded[i][j] = load_eight<aligned>(keys + (size_t)place * head_dim, d + 32 * i + lane % 4 * 8, head_dim, place < end);
        }
}

/* score[j]: lane (g, t) has queries g, g, g + 8, g + 8 at places 8 j + 2 t, + 1, the same.  staged: [4 passes][high, low][32] */
template <int passes>
static __device__ __forceinline__ void take_scores(const uint4 *staged, const uint4 loaded[2 * passes][4], int lane, float score[4][4])
{
#pragma unroll
    for (int i = 0; i < 4 * passes; i++) {
        uint4 high = staged[i * 64 + lane], low = staged[i * 64 + 32 + lane];

#pragma unroll
        for (int j = 0; j < 4; j++) {
            const uint4 &key = loaded[i / 2][j];
            uint2 b = i % 2 == 0 ? uint2{key.x, key.y} : uint2{key.z, key.w};

            warp_mma(bf16(), score[j], high, b);
            warp_mma(bf16(), score[j], low, b);
        }
    }
}

/* Lane (g, t): of the values at places first + 16 s + 2 t, + 1, + 8, + 9 the dimensions d + 8 g .. + 7. */
template <bool aligned, typename N>
static __device__ __forceinline__ void load_values(const N *values, int first, int end, int d, int head_dim, int lane, uint4 value[2][4])
{
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int place = first + i / 4 * 16 + lane % 4 * 2 + i % 4 / 2 * 8 + i % 2;

        value[i / 4][i % 4] = load_eight<aligned>(values + (size_t)place * head_dim, d + lane / 4 * 8, head_dim, place < end);
    }
}

/* The highest bit of each half whose exponent is that of infinities and NaN. */
static __device__ __forceinline__ unsigned not_finite(unsigned pair)
{
    return ((pair & 0x7f807f80) + 0x00800080) & 0x80008000;
}

static __device__ __forceinline__ unsigned not_finite(const uint4 &v)
{
    return not_finite(v.x) | not_finite(v.y) | not_finite(v.z) | not_finite(v.w);
}

static __device__ __forceinline__ unsigned word_of(const uint4 &v, int i)
{
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

/* Dimension i of the eight, as B of 16 places. */
static __device__ __forceinline__ uint2 column_of(const uint4 value[4], int i)
{
    unsigned a = word_of(value[0], i / 2), b = word_of(value[1], i / 2), c = word_of(value[2], i / 2), d = word_of(value[3], i / 2);

    if (i % 2 == 0)
        return {(a & 0xffff) | b << 16, (c & 0xffff) | d << 16};
    return {a >> 16 | (b & 0xffff0000), c >> 16 | (d & 0xffff0000)};
}

/* Ones of bfloat16 where the bits k and k + 1 are set. */
static __device__ __forceinline__ unsigned ones(unsigned bits, int k)
{
    return (bits >> k & 1) * 0x3f80u | (bits >> k >> 1 & 1) * 0x3f800000u;
}

/* Takes what is not finite out of the values: sum becomes NaN where a query sees such a one, else stays 0. */
static __device__ void mend_values(const unsigned seen[2], int lane, uint4 value[2][4], float sum[8][4])
{
    int t = lane % 4;

#pragma unroll
    for (int s = 0; s < 2; s++) {
        uint4 sees = {ones(seen[0], 16 * s + 2 * t), ones(seen[1], 16 * s + 2 * t), ones(seen[0], 16 * s + 2 * t + 8),
                      ones(seen[1], 16 * s + 2 * t + 8)};
        uint4 mark[4];

#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint4 odd = {not_finite(value[s][i].x) >> 15, not_finite(value[s][i].y) >> 15, not_finite(value[s][i].z) >> 15,
                         not_finite(value[s][i].w) >> 15};

            mark[i] = {odd.x * 0x3f80, odd.y * 0x3f80, odd.z * 0x3f80, odd.w * 0x3f80};
            value[s][i] = {value[s][i].x & ~(odd.x * 0xffff), value[s][i].y & ~(odd.y * 0xffff), value[s][i].z & ~(odd.z * 0xffff),
                           value[s][i].w & ~(odd.w * 0xffff)};
        }
#pragma unroll
        for (int i = 0; i < 8; i++)
            warp_mma(bf16(), sum[i], sees, column_of(mark, i));
    }
#pragma unroll
    for (int i = 0; i < 32; i++)
        sum[i / 4][i % 4] = sum[i / 4][i % 4] > 0.0f ? __uint_as_float(0x7fffffff) : 0.0f;
}

/* What a lane knows of its two queries once the scores are exponentiated. */
struct weighed {
    uint4 high[2], low[2]; /* A of the 16 places s */
    unsigned seen[2];
};

/* sum[i]: lane (g, t) has queries g, g, g + 8, g + 8 in dimensions d + 16 t + i, + 8 + i, the same. Whether values were not finite: these are others
 * now, for the warp's queries alone. */
static __device__ bool sum_values(const struct weighed &weighed, uint4 value[2][4], int lane, float sum[8][4])
{
    unsigned odd = 0;
    bool mended;

#pragma unroll
    for (int i = 0; i < 8; i++)
        odd |= not_finite(value[i / 4][i % 4]);
    mended = __any_sync(0xffffffffu, odd != 0);
    if (mended)
        mend_values(weighed.seen, lane, value, sum);
#pragma unroll
    for (int s = 0; s < 2; s++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            uint2 b = column_of(value[s], i);

            warp_mma(bf16(), sum[i], weighed.high[s], b);
            warp_mma(bf16(), sum[i], weighed.low[s], b);
        }
    return mended;
}

#endif
