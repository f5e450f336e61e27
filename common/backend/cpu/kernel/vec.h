/* A vector of 16 floats, the unit of every kernel: a panel's channels, a tile's places, a stretch of a row. The kernels are
 * written once over it and compiled once per instruction set (TANDEM_ISA_AVX512, TANDEM_ISA_AVX2, or neither). All forms give
 * the same bits: each function is one IEEE operation per lane (fused where its name says so), sums across lanes go by one fixed
 * tree, and exp, log and Gumbel noise repeat common/base/math32.c and rng.c operation by operation.
 *
 * vec, veci (16 x uint32_t), vecm (a truth value per lane), vecd (16 doubles).
 *   vec_load_part, vec_store_part   the first `lanes` (0 .. 16) lanes; the rest read as 0, are not written, and are not touched
 *   vec_max, vec_min                undefined sign for two zeros: only for results in which it is lost; the second where either is NaN
 *   vec_rint, veci_of_integral      to the nearest, ties to even; exact
 *   veci_multiply                   low words returned, high words in *high
 *   veci_transpose                  in each quarter of 4 lanes: lane i of w[v] becomes lane v of w[i]
 *   veci_left, veci_right           shifts by a constant
 *   veci_dot                        adds to each lane the sum of its four bytes (0 .. 255) times four activations (-128 .. 127): in DOT_PARTS
 *                                   parts, each of what veci_dot_part makes of the bytes
 *   veci_dot_nibbles                as veci_dot, of bytes of 0 .. 15 and activations as bytes, up to eight times, into what veci_nibbles_begin
 *                                   gives; veci_nibbles_end, with the same start, makes the sums of it
 *   veci_sum                        of all lanes
 *   veci_store_bytes                the low bytes of lanes of -128 .. 127
 *   veci_store_activations          lanes of -128 .. 127 as veci_dot takes them
 *   vec_max_lane                    as vec_largest, but only for numbers, and undefined sign for two zeros
 *   vec_widen_bf16_even, _odd       16 pairs of bf16: the low halves, the high halves
 *   vec_widen_bf16                  16 consecutive bf16, in an order of lanes that is the instruction set's own
 *   vec_of_widened, vec_as_widened  from that order to the usual one, and back
 *   vec_widen_bf16_part             as vec_load_part, of bf16; `lanes` is even
 *   vec_widen_f16                   16 consecutive f16
 *   vec_widen_e4m3                  16 consecutive bytes of E4M3 that are numbers: 2^-8 of what they are, exactly
 *   vec_widen_e4m3_or_nan           the same of all bytes
 *   vec_widen_i8                    16 consecutive bytes with a sign
 *   vecd_add                        adds 16 floats, widened
 */
#ifndef TANDEM_COMMON_BACKEND_CPU_KERNEL_VEC_H
#define TANDEM_COMMON_BACKEND_CPU_KERNEL_VEC_H

#include "common/base/math32.h"

#include <stdint.h>

/* INLINE is for the functions of a vector; SPECIALISED for larger ones that are compiled anew for each set of constant arguments,
 * their loops unrolled. What is not worth the compiler's time is ROLLED: the same code, called and looped. */
#define ALWAYS_INLINE static inline __attribute__((always_inline, unused))
#ifdef TANDEM_KERNELS_ROLLED
#define SPECIALISED static __attribute__((noinline, unused))
#define UNROLL
#else
#define SPECIALISED ALWAYS_INLINE
#define UNROLL      _Pragma("GCC unroll 32")
#endif
#if defined(TANDEM_KERNELS_ROLLED) && !defined(TANDEM_ISA_AVX512) && !defined(TANDEM_ISA_AVX2)
#define INLINE static __attribute__((unused))
#else
#define INLINE ALWAYS_INLINE
#endif

/* How veci_dot takes activations: as bytes, or, where no instruction multiplies bytes without saturation, as words, in each four the first and
 * the third before the others. */
#if (defined(TANDEM_ISA_AVX512) || defined(TANDEM_ISA_AVX2)) && !defined(TANDEM_VNNI)
#define VEC_WORDS
typedef int16_t activation;
enum { DOT_PARTS = 2 };
#else
typedef int8_t activation;
enum { DOT_PARTS = 1 };
#endif

#if defined(TANDEM_ISA_AVX512)
#include "common/backend/cpu/kernel/vec_avx512.h"
#elif defined(TANDEM_ISA_AVX2)
#include "common/backend/cpu/kernel/vec_avx2.h"
#else
#include "common/backend/cpu/kernel/vec_scalar.h"
#endif

enum { LANES = 16 };

/* Asks for a cache line: into the first cache, or into the second, for of lines on their way to the first there can be only some ten or twenty. */
INLINE void prefetch(int first, const unsigned char *line)
{
    if (first)
        __builtin_prefetch(line, 0, 3);
    else
        __builtin_prefetch(line, 0, 2);
}

#if !defined(VEC_WORDS)
INLINE veci veci_dot_part(veci bytes, int part)
{
    (void)part;
    return bytes;
}

INLINE veci veci_nibbles_begin(int32_t start)
{
    return veci_set((uint32_t)start);
}

INLINE veci veci_dot_nibbles(veci sum, veci nibbles, const int8_t *four)
{
    return veci_dot(sum, nibbles, four, 0);
}

INLINE veci veci_nibbles_end(veci sum, int32_t start)
{
    (void)start;
    return sum;
}

INLINE void veci_store_activations(activation *to, veci a)
{
    veci_store_bytes(to, a);
}
#endif

/* The first `left` floats, at most a whole vector; and the same for a store. */
INLINE vec vec_load_left(const float *from, int left)
{
    return left >= LANES ? vec_load(from) : vec_load_part(from, left);
}

INLINE void vec_store_left(float *to, vec v, int left)
{
    if (left >= LANES)
        vec_store(to, v);
    else
        vec_store_part(to, v, left);
}

/* The fixed tree: lane i takes lane i + 8, then i + 4, i + 2, i + 1. */
INLINE float vec_sum(vec v)
{
    float lane[LANES];

    vec_store(lane, v);
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lane[i] = lane[i] + lane[i + width];
    return lane[0];
}

INLINE double vecd_sum(vecd v)
{
    double lane[LANES];

    vecd_store(lane, v);
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lane[i] = lane[i] + lane[i + width];
    return lane[0];
}

INLINE float vec_largest(vec v)
{
    float lane[LANES], largest;

    vec_store(lane, v);
    largest = lane[0];
    for (int i = 1; i < LANES; i++)
        largest = lane[i] > largest ? lane[i] : largest;
    return largest;
}

INLINE vec vec_negate(vec a)
{
    return vec_of_bits(veci_xor(veci_of_vec_bits(a), veci_set(0x80000000)));
}

/* math32_exp of each lane. */
SPECIALISED vec vec_exp(vec x)
{
    static const float terms[] = MATH32_EXP_TERMS;
    vec clamped = vec_min(vec_max(x, vec_set(MATH32_EXP_LOW)), vec_set(MATH32_EXP_HIGH));
    vec n = vec_rint(vec_mul(clamped, vec_set(MATH32_LOG2E)));
    vec r = vec_fma(n, vec_set(-MATH32_LN2_LOW), vec_fma(n, vec_set(-MATH32_LN2_HIGH), clamped));
    vec poly = vec_set(terms[0]);
    vec scale = vec_of_bits(veci_left(veci_add(veci_of_integral(n), veci_set(127)), 23));

    UNROLL for (int i = 1; i < 6; i++) poly = vec_fma(poly, r, vec_set(terms[i]));
    poly = vec_add(vec_fma(poly, vec_mul(r, r), r), vec_set(1.0f));
    return vec_select(vec_less(x, vec_set(MATH32_EXP_LOW)), vec_zero(), vec_mul(poly, scale));
}

/* math32_log of each lane. */
SPECIALISED vec vec_log(vec x)
{
    static const float terms[] = MATH32_LOG_TERMS;
    veci bits = veci_of_vec_bits(x);
    vec exponent = vec_of_int(veci_add(veci_right(bits, 23), veci_set((uint32_t)-126)));
    vec mantissa = vec_of_bits(veci_or(veci_and(bits, veci_set(0x007fffff)), veci_set(0x3f000000)));
    vecm small = vec_less(mantissa, vec_set(MATH32_SQRT_HALF));
    vec f = vec_sub(vec_select(small, vec_add(mantissa, mantissa), mantissa), vec_set(1.0f));
    vec square = vec_mul(f, f), poly = vec_set(terms[0]);

    exponent = vec_select(small, vec_sub(exponent, vec_set(1.0f)), exponent);
    UNROLL for (int i = 1; i < 9; i++) poly = vec_fma(poly, f, vec_set(terms[i]));
    poly = vec_mul(vec_mul(poly, f), square);
    poly = vec_fma(exponent, vec_set(MATH32_LN2_LOW), poly);
    poly = vec_fma(vec_set(-0.5f), square, poly);
    poly = vec_fma(exponent, vec_set(MATH32_LN2_HIGH), vec_add(f, poly));
    return vec_select(vec_less(vec_zero(), x), poly, vec_set(-88.0f));
}

/* (w + 1/2) 2^-32, the v of rng_gumbel. */
INLINE vec vec_unit_of_words(veci words)
{
    return vec_mul(vec_add(vec_of_unsigned(words), vec_set(0.5f)), vec_set(0x1p-32f));
}

/* rng_gumbel_of each word. */
SPECIALISED vec vec_gumbel(veci words)
{
    vec v = vec_min(vec_unit_of_words(words), vec_set(0x1.fffffep-1f));
    vec t = vec_sub(vec_set(1.0f), v);
    vec lost = vec_sub(vec_set(1.0f), t);
    vec exponential = vec_mul(vec_negate(vec_log(t)), vec_div(v, lost));

    return vec_negate(vec_log(vec_select(vec_equal(lost, vec_zero()), v, exponential)));
}

#endif
