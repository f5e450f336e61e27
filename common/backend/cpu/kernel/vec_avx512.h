/* The 16-float vector on AVX-512: one register. See vec.h for what each function promises. */
#ifndef TANDEM_COMMON_BACKEND_CPU_KERNEL_VEC_AVX512_H
#define TANDEM_COMMON_BACKEND_CPU_KERNEL_VEC_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

typedef __m512 vec;
typedef __m512i veci;
typedef __mmask16 vecm;
typedef struct {
    __m512d half[2];
} vecd;

INLINE vec vec_zero(void)
{
    return _mm512_setzero_ps();
}

INLINE vec vec_set(float value)
{
    return _mm512_set1_ps(value);
}

INLINE vec vec_load(const float *from)
{
    return _mm512_loadu_ps(from);
}

INLINE vec vec_load_part(const float *from, int lanes)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << lanes) - 1), from);
}

INLINE void vec_store(float *to, vec v)
{
    _mm512_storeu_ps(to, v);
}

INLINE void vec_store_part(float *to, vec v, int lanes)
{
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << lanes) - 1), v);
}

INLINE vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

INLINE vec vec_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}

INLINE vec vec_sub(vec a, vec b)
{
    return _mm512_sub_ps(a, b);
}

INLINE vec vec_mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}

INLINE vec vec_div(vec a, vec b)
{
    return _mm512_div_ps(a, b);
}

INLINE vec vec_max(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}

INLINE vec vec_min(vec a, vec b)
{
    return _mm512_min_ps(a, b);
}

INLINE vec vec_rint(vec a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INLINE vecm vec_less(vec a, vec b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

INLINE vecm vec_equal(vec a, vec b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

INLINE vec vec_select(vecm mask, vec a, vec b)
{
    return _mm512_mask_blend_ps(mask, b, a);
}

INLINE vecm vecm_of_bits(uint32_t bits)
{
    return (__mmask16)bits;
}

INLINE uint32_t vecm_bits(vecm mask)
{
    return mask;
}

INLINE veci veci_set(uint32_t value)
{
    return _mm512_set1_epi32((int)value);
}

INLINE veci veci_load(const uint32_t *from)
{
    return _mm512_loadu_si512(from);
}

INLINE veci veci_add(veci a, veci b)
{
    return _mm512_add_epi32(a, b);
}

INLINE veci veci_and(veci a, veci b)
{
    return _mm512_and_si512(a, b);
}

INLINE veci veci_or(veci a, veci b)
{
    return _mm512_or_si512(a, b);
}

INLINE veci veci_xor(veci a, veci b)
{
    return _mm512_xor_si512(a, b);
}

INLINE veci veci_left(veci a, int bits)
{
    return _mm512_slli_epi32(a, (unsigned)bits);
}

INLINE veci veci_right(veci a, int bits)
{
    return _mm512_srli_epi32(a, (unsigned)bits);
}

INLINE veci veci_of_vec_bits(vec a)
{
    return _mm512_castps_si512(a);
}

INLINE vec vec_of_bits(veci a)
{
    return _mm512_castsi512_ps(a);
}

INLINE vec vec_of_int(veci a)
{
    return _mm512_cvtepi32_ps(a);
}

INLINE vec vec_of_unsigned(veci a)
{
    return _mm512_cvtepu32_ps(a);
}

INLINE veci veci_of_integral(vec a)
{
    return _mm512_cvtps_epi32(a);
}

INLINE veci veci_multiply(veci a, uint32_t factor, veci *high)
{
    __m512i f = _mm512_set1_epi64(factor);
    __m512i even = _mm512_mul_epu32(a, f), odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), f);

    *high = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    return _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}

INLINE void veci_transpose(veci w[4])
{
    __m512i a = _mm512_unpacklo_epi32(w[0], w[1]), b = _mm512_unpackhi_epi32(w[0], w[1]);
    __m512i c = _mm512_unpacklo_epi32(w[2], w[3]), d = _mm512_unpackhi_epi32(w[2], w[3]);

    w[0] = _mm512_unpacklo_epi64(a, c);
    w[1] = _mm512_unpackhi_epi64(a, c);
    w[2] = _mm512_unpacklo_epi64(b, d);
    w[3] = _mm512_unpackhi_epi64(b, d);
}

/* See vec_avx2.h. */
INLINE veci veci_made(veci sum)
{
    __asm__("" : "+v"(sum));
    return sum;
}

INLINE veci repeated(const void *four_bytes)
{
    int word;

    __builtin_memcpy(&word, four_bytes, sizeof word);
    return _mm512_set1_epi32(word);
}

#if !defined(VEC_WORDS)
INLINE veci veci_dot(veci sum, veci bytes, const activation *four, int part)
{
    (void)part;
    return _mm512_dpbusd_epi32(sum, bytes, repeated(four));
}
#else
INLINE veci veci_dot_part(veci bytes, int part)
{
    return part == 0 ? _mm512_and_si512(bytes, _mm512_set1_epi32(0x00ff00ff)) : _mm512_srli_epi16(bytes, 8);
}

INLINE veci veci_dot(veci sum, veci bytes, const activation *four, int part)
{
    return veci_made(_mm512_add_epi32(sum, _mm512_madd_epi16(bytes, repeated(four + 2 * part))));
}

INLINE veci veci_nibbles_begin(int32_t start)
{
    (void)start;
    return veci_set(0);
}

INLINE veci veci_dot_nibbles(veci sum, veci nibbles, const int8_t *four)
{
    return veci_made(_mm512_add_epi16(sum, _mm512_maddubs_epi16(nibbles, repeated(four))));
}

INLINE veci veci_nibbles_end(veci sum, int32_t start)
{
    return _mm512_add_epi32(veci_set((uint32_t)start), _mm512_madd_epi16(sum, _mm512_set1_epi16(1)));
}
#endif

INLINE int32_t veci_sum(veci a)
{
    return _mm512_reduce_add_epi32(a);
}

INLINE void veci_store_bytes(int8_t *to, veci a)
{
    _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8(a));
}

#if defined(VEC_WORDS)
INLINE void veci_store_activations(activation *to, veci a)
{
    __m256i words = _mm512_cvtepi32_epi16(a);

    _mm256_storeu_si256((__m256i *)to, _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(words, 0xd8), 0xd8));
}
#endif

INLINE float vec_max_lane(vec v)
{
    return _mm512_reduce_max_ps(v);
}

INLINE vec vec_widen_bf16_even(const void *pairs)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(pairs), 16));
}

INLINE vec vec_widen_bf16_odd(const void *pairs)
{
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(pairs), _mm512_set1_epi32((int)0xffff0000)));
}

INLINE vec widen_bf16_words(__m256i words)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
}

INLINE vec vec_widen_bf16(const void *words)
{
    return widen_bf16_words(_mm256_loadu_si256((const __m256i *)words));
}

INLINE vec vec_widen_bf16_part(const void *words, int lanes)
{
    return widen_bf16_words(_mm256_maskz_loadu_epi16((__mmask16)((1u << lanes) - 1), words));
}

INLINE vec vec_of_widened(vec v)
{
    return v;
}

INLINE vec vec_as_widened(vec v)
{
    return v;
}

INLINE vec vec_widen_f16(const void *halves)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)halves));
}

INLINE vec vec_widen_e4m3(const void *bytes)
{
    __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes));

    return _mm512_cvtph_ps(_mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16((short)0xbf80))); /* the sign is there twice */
}

INLINE vec vec_widen_e4m3_or_nan(const void *bytes)
{
    __m256i words = _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128(bytes)), 7), _mm256_set1_epi16((short)0xbf80));
    __m256i nan = _mm256_and_si256(_mm256_add_epi16(words, _mm256_set1_epi16(0x80)), _mm256_set1_epi16(0x4000));

    return _mm512_cvtph_ps(_mm256_or_si256(words, nan));
}

INLINE vec vec_widen_i8(const void *bytes)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(bytes)));
}

INLINE vecd vecd_zero(void)
{
    return (vecd){{_mm512_setzero_pd(), _mm512_setzero_pd()}};
}

INLINE vecd vecd_add(vecd sum, vec v)
{
    sum.half[0] = _mm512_add_pd(sum.half[0], _mm512_cvtps_pd(_mm512_castps512_ps256(v)));
    sum.half[1] = _mm512_add_pd(sum.half[1], _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)));
    return sum;
}

INLINE void vecd_store(double *to, vecd v)
{
    _mm512_storeu_pd(to, v.half[0]);
    _mm512_storeu_pd(to + 8, v.half[1]);
}

#endif
