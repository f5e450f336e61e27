/* The 16-float vector on AVX2 with FMA and F16C: two registers. See vec.h for what each function promises. */
#ifndef TANDEM_COMMON_BACKEND_CPU_KERNEL_VEC_AVX2_H
#define TANDEM_COMMON_BACKEND_CPU_KERNEL_VEC_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    __m256 half[2];
} vec, vecm;
typedef struct {
    __m256i half[2];
} veci;
typedef struct {
    __m256d part[4];
} vecd;

INLINE vec vec_set(float value)
{
    return (vec){{_mm256_set1_ps(value), _mm256_set1_ps(value)}};
}

INLINE vec vec_zero(void)
{
    return vec_set(0.0f);
}

INLINE vec vec_load(const float *from)
{
    return (vec){{_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}};
}

INLINE __m256i lanes_below(int lanes)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE vec vec_load_part(const float *from, int lanes)
{
    return (vec){{_mm256_maskload_ps(from, lanes_below(lanes)), _mm256_maskload_ps(from + 8, lanes_below(lanes - 8))}};
}

INLINE void vec_store(float *to, vec v)
{
    _mm256_storeu_ps(to, v.half[0]);
    _mm256_storeu_ps(to + 8, v.half[1]);
}

INLINE void vec_store_part(float *to, vec v, int lanes)
{
    _mm256_maskstore_ps(to, lanes_below(lanes), v.half[0]);
    _mm256_maskstore_ps(to + 8, lanes_below(lanes - 8), v.half[1]);
}

INLINE vec vec_fma(vec a, vec b, vec c)
{
    return (vec){{_mm256_fmadd_ps(a.half[0], b.half[0], c.half[0]), _mm256_fmadd_ps(a.half[1], b.half[1], c.half[1])}};
}

INLINE vec vec_add(vec a, vec b)
{
    return (vec){{_mm256_add_ps(a.half[0], b.half[0]), _mm256_add_ps(a.half[1], b.half[1])}};
}

INLINE vec vec_sub(vec a, vec b)
{
    return (vec){{_mm256_sub_ps(a.half[0], b.half[0]), _mm256_sub_ps(a.half[1], b.half[1])}};
}

INLINE vec vec_mul(vec a, vec b)
{
    return (vec){{_mm256_mul_ps(a.half[0], b.half[0]), _mm256_mul_ps(a.half[1], b.half[1])}};
}

INLINE vec vec_div(vec a, vec b)
{
    return (vec){{_mm256_div_ps(a.half[0], b.half[0]), _mm256_div_ps(a.half[1], b.half[1])}};
}

INLINE vec vec_max(vec a, vec b)
{
    return (vec){{_mm256_max_ps(a.half[0], b.half[0]), _mm256_max_ps(a.half[1], b.half[1])}};
}

INLINE vec vec_min(vec a, vec b)
{
    return (vec){{_mm256_min_ps(a.half[0], b.half[0]), _mm256_min_ps(a.half[1], b.half[1])}};
}

INLINE vec vec_rint(vec a)
{
    enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

    return (vec){{_mm256_round_ps(a.half[0], NEAREST), _mm256_round_ps(a.half[1], NEAREST)}};
}

INLINE vecm vec_less(vec a, vec b)
{
    return (vecm){{_mm256_cmp_ps(a.half[0], b.half[0], _CMP_LT_OQ), _mm256_cmp_ps(a.half[1], b.half[1], _CMP_LT_OQ)}};
}

INLINE vecm vec_equal(vec a, vec b)
{
    return (vecm){{_mm256_cmp_ps(a.half[0], b.half[0], _CMP_EQ_OQ), _mm256_cmp_ps(a.half[1], b.half[1], _CMP_EQ_OQ)}};
}

INLINE vec vec_select(vecm mask, vec a, vec b)
{
    return (vec){{_mm256_blendv_ps(b.half[0], a.half[0], mask.half[0]), _mm256_blendv_ps(b.half[1], a.half[1], mask.half[1])}};
}

INLINE vecm vecm_of_bits(uint32_t bits)
{
    const __m256i low = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), high = _mm256_slli_epi32(low, 8);
    __m256i all = _mm256_set1_epi32((int)bits);

    return (vecm){{_mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, low), low)),
                   _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, high), high))}};
}

INLINE uint32_t vecm_bits(vecm mask)
{
    return (uint32_t)_mm256_movemask_ps(mask.half[0]) | (uint32_t)_mm256_movemask_ps(mask.half[1]) << 8;
}

INLINE veci veci_set(uint32_t value)
{
    return (veci){{_mm256_set1_epi32((int)value), _mm256_set1_epi32((int)value)}};
}

INLINE veci veci_load(const uint32_t *from)
{
    return (veci){{_mm256_loadu_si256((const __m256i *)from), _mm256_loadu_si256((const __m256i *)(from + 8))}};
}

INLINE veci veci_add(veci a, veci b)
{
    return (veci){{_mm256_add_epi32(a.half[0], b.half[0]), _mm256_add_epi32(a.half[1], b.half[1])}};
}

INLINE veci veci_and(veci a, veci b)
{
    return (veci){{_mm256_and_si256(a.half[0], b.half[0]), _mm256_and_si256(a.half[1], b.half[1])}};
}

INLINE veci veci_or(veci a, veci b)
{
    return (veci){{_mm256_or_si256(a.half[0], b.half[0]), _mm256_or_si256(a.half[1], b.half[1])}};
}

INLINE veci veci_xor(veci a, veci b)
{
    return (veci){{_mm256_xor_si256(a.half[0], b.half[0]), _mm256_xor_si256(a.half[1], b.half[1])}};
}

INLINE veci veci_left(veci a, int bits)
{
    return (veci){{_mm256_slli_epi32(a.half[0], bits), _mm256_slli_epi32(a.half[1], bits)}};
}

INLINE veci veci_right(veci a, int bits)
{
    return (veci){{_mm256_srli_epi32(a.half[0], bits), _mm256_srli_epi32(a.half[1], bits)}};
}

INLINE veci veci_of_vec_bits(vec a)
{
    return (veci){{_mm256_castps_si256(a.half[0]), _mm256_castps_si256(a.half[1])}};
}

INLINE vec vec_of_bits(veci a)
{
    return (vec){{_mm256_castsi256_ps(a.half[0]), _mm256_castsi256_ps(a.half[1])}};
}

INLINE vec vec_of_int(veci a)
{
    return (vec){{_mm256_cvtepi32_ps(a.half[0]), _mm256_cvtepi32_ps(a.half[1])}};
}

/* There is no unsigned conversion: both halves are exact, so the fused multiply-add rounds once, as the scalar one does. */
INLINE vec vec_of_unsigned(veci a)
{
    vec high = vec_of_int(veci_right(a, 16)), low = vec_of_int(veci_and(a, veci_set(0xffff)));

    return vec_fma(high, vec_set(65536.0f), low);
}

INLINE veci veci_of_integral(vec a)
{
    return (veci){{_mm256_cvtps_epi32(a.half[0]), _mm256_cvtps_epi32(a.half[1])}};
}

INLINE __m256i multiply_half(__m256i a, __m256i f, __m256i *high)
{
    __m256i even = _mm256_mul_epu32(a, f), odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), f);

    *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

INLINE veci veci_multiply(veci a, uint32_t factor, veci *high)
{
    __m256i f = _mm256_set1_epi64x(factor);
    veci low;

    low.half[0] = multiply_half(a.half[0], f, &high->half[0]);
    low.half[1] = multiply_half(a.half[1], f, &high->half[1]);
    return low;
}

INLINE void veci_transpose(veci w[4])
{
    for (int h = 0; h < 2; h++) {
        __m256i a = _mm256_unpacklo_epi32(w[0].half[h], w[1].half[h]), b = _mm256_unpackhi_epi32(w[0].half[h], w[1].half[h]);
        __m256i c = _mm256_unpacklo_epi32(w[2].half[h], w[3].half[h]), d = _mm256_unpackhi_epi32(w[2].half[h], w[3].half[h]);

        w[0].half[h] = _mm256_unpacklo_epi64(a, c);
        w[1].half[h] = _mm256_unpackhi_epi64(a, c);
        w[2].half[h] = _mm256_unpacklo_epi64(b, d);
        w[3].half[h] = _mm256_unpackhi_epi64(b, d);
    }
}

INLINE __m256i repeated(const void *four_bytes)
{
    int word;

    __builtin_memcpy(&word, four_bytes, sizeof word);
    return _mm256_set1_epi32(word);
}

/* A sum of integers that the compiler makes here and now: left to itself it makes all products of a block first, and keeps them in memory. */
INLINE veci veci_made(veci sum)
{
    __asm__("" : "+x"(sum.half[0]), "+x"(sum.half[1]));
    return sum;
}

#if !defined(VEC_WORDS)
INLINE veci veci_dot(veci sum, veci bytes, const activation *four, int part)
{
    __m256i x = repeated(four);

    (void)part;
    return (veci){{_mm256_dpbusd_avx_epi32(sum.half[0], bytes.half[0], x), _mm256_dpbusd_avx_epi32(sum.half[1], bytes.half[1], x)}};
}
#else
/* The instruction that takes bytes saturates, so they go as words: columns 0 and 2, then 1 and 3. */
INLINE veci veci_dot_part(veci bytes, int part)
{
    if (part == 0)
        return veci_and(bytes, veci_set(0x00ff00ff));
    return (veci){{_mm256_srli_epi16(bytes.half[0], 8), _mm256_srli_epi16(bytes.half[1], 8)}};
}

INLINE veci veci_dot(veci sum, veci bytes, const activation *four, int part)
{
    __m256i x = repeated(four + 2 * part);

    return veci_made(veci_add(sum, (veci){{_mm256_madd_epi16(bytes.half[0], x), _mm256_madd_epi16(bytes.half[1], x)}}));
}

INLINE veci veci_nibbles_begin(int32_t start)
{
    (void)start;
    return veci_set(0);
}

/* Words: sixteen products of at most 15 x 128 are at most 30,720. */
INLINE veci veci_dot_nibbles(veci sum, veci nibbles, const int8_t *four)
{
    __m256i x = repeated(four);

    return veci_made((veci){{_mm256_add_epi16(sum.half[0], _mm256_maddubs_epi16(nibbles.half[0], x)),
                             _mm256_add_epi16(sum.half[1], _mm256_maddubs_epi16(nibbles.half[1], x))}});
}

INLINE veci veci_nibbles_end(veci sum, int32_t start)
{
    const __m256i one = _mm256_set1_epi16(1);

    return veci_add(veci_set((uint32_t)start), (veci){{_mm256_madd_epi16(sum.half[0], one), _mm256_madd_epi16(sum.half[1], one)}});
}
#endif

INLINE int32_t veci_sum(veci a)
{
    __m256i eight = _mm256_add_epi32(a.half[0], a.half[1]);
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));

    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}

INLINE void veci_store_bytes(int8_t *to, veci a)
{
    __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.half[0], a.half[1]), 0xd8);

    _mm_storeu_si128((__m128i *)to, _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}

#if defined(VEC_WORDS)
INLINE void veci_store_activations(activation *to, veci a)
{
    __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.half[0], a.half[1]), 0xd8);

    _mm256_storeu_si256((__m256i *)to, _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(words, 0xd8), 0xd8));
}
#endif

INLINE float vec_max_lane(vec v)
{
    __m256 eight = _mm256_max_ps(v.half[0], v.half[1]);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));

    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

INLINE vec vec_widen_bf16_even(const void *pairs)
{
    const __m256i *from = pairs;

    return (vec){{_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256(from), 16)),
                  _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256(from + 1), 16))}};
}

INLINE vec vec_widen_bf16_odd(const void *pairs)
{
    const __m256i *from = pairs;
    const __m256i high = _mm256_set1_epi32((int)0xffff0000);

    return (vec){{_mm256_castsi256_ps(_mm256_and_si256(_mm256_loadu_si256(from), high)),
                  _mm256_castsi256_ps(_mm256_and_si256(_mm256_loadu_si256(from + 1), high))}};
}

/* As pairs: the even ones, then the odd ones. Two operations for 16 numbers, where widening them in their order takes four. */
INLINE vec widen_bf16_pairs(__m256i pairs)
{
    return (vec){{_mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)),
                  _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32((int)0xffff0000)))}};
}

INLINE vec vec_widen_bf16(const void *words)
{
    return widen_bf16_pairs(_mm256_loadu_si256(words));
}

/* There are masks for pairs of words alone. */
INLINE vec vec_widen_bf16_part(const void *words, int lanes)
{
    return widen_bf16_pairs(_mm256_maskload_epi32(words, lanes_below(lanes / 2)));
}

INLINE vec vec_of_widened(vec v)
{
    __m256 low = _mm256_unpacklo_ps(v.half[0], v.half[1]), high = _mm256_unpackhi_ps(v.half[0], v.half[1]);

    return (vec){{_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)}};
}

INLINE vec vec_as_widened(vec v)
{
    __m256 low = _mm256_permute2f128_ps(v.half[0], v.half[1], 0x20), high = _mm256_permute2f128_ps(v.half[0], v.half[1], 0x31);

    return (vec){{_mm256_shuffle_ps(low, high, 0x88), _mm256_shuffle_ps(low, high, 0xdd)}};
}

INLINE vec vec_widen_f16(const void *halves)
{
    const __m128i *from = halves;

    return (vec){{_mm256_cvtph_ps(_mm_loadu_si128(from)), _mm256_cvtph_ps(_mm_loadu_si128(from + 1))}};
}

INLINE vec vec_widen_e4m3(const void *bytes)
{
    __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes));

    words = _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16((short)0xbf80)); /* the sign is there twice */
    return (vec){{_mm256_cvtph_ps(_mm256_castsi256_si128(words)), _mm256_cvtph_ps(_mm256_extracti128_si256(words, 1))}};
}

INLINE vec vec_widen_e4m3_or_nan(const void *bytes)
{
    __m256i words = _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128(bytes)), 7), _mm256_set1_epi16((short)0xbf80));
    __m256i nan = _mm256_and_si256(_mm256_add_epi16(words, _mm256_set1_epi16(0x80)), _mm256_set1_epi16(0x4000));

    words = _mm256_or_si256(words, nan);
    return (vec){{_mm256_cvtph_ps(_mm256_castsi256_si128(words)), _mm256_cvtph_ps(_mm256_extracti128_si256(words, 1))}};
}

INLINE vec vec_widen_i8(const void *bytes)
{
    __m128i all = _mm_loadu_si128(bytes);

    return (vec){{_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(all)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(all, 8)))}};
}

INLINE vecd vecd_zero(void)
{
    return (vecd){{_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()}};
}

INLINE vecd vecd_add(vecd sum, vec v)
{
    for (int h = 0; h < 2; h++) {
        sum.part[2 * h] = _mm256_add_pd(sum.part[2 * h], _mm256_cvtps_pd(_mm256_castps256_ps128(v.half[h])));
        sum.part[2 * h + 1] = _mm256_add_pd(sum.part[2 * h + 1], _mm256_cvtps_pd(_mm256_extractf128_ps(v.half[h], 1)));
    }
    return sum;
}

INLINE void vecd_store(double *to, vecd v)
{
    for (int i = 0; i < 4; i++)
        _mm256_storeu_pd(to + 4 * i, v.part[i]);
}

#endif
