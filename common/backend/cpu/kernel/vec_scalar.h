/* The 16-float vector in plain C: what the other two must equal bit for bit, and what runs where they cannot. See vec.h for what
 * each function promises. */
#ifndef TANDEM_COMMON_BACKEND_CPU_KERNEL_VEC_SCALAR_H
#define TANDEM_COMMON_BACKEND_CPU_KERNEL_VEC_SCALAR_H

#include "common/backend/backend.h"
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    float lane[16];
} vec;
typedef struct {
    uint32_t lane[16];
} veci;
typedef uint32_t vecm; /* bit i is lane i */
typedef struct {
    double lane[16];
} vecd;

INLINE vec vec_set(float value)
{
    vec to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = value;
    return to;
}

INLINE vec vec_zero(void)
{
    return vec_set(0.0f);
}

INLINE vec vec_load(const float *from)
{
    vec to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = from[i];
    return to;
}

INLINE vec vec_load_part(const float *from, int lanes)
{
    vec to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = i < lanes ? from[i] : 0.0f;
    return to;
}

INLINE void vec_store(float *to, vec v)
{
    for (int i = 0; i < 16; i++)
        to[i] = v.lane[i];
}

INLINE void vec_store_part(float *to, vec v, int lanes)
{
    for (int i = 0; i < lanes; i++)
        to[i] = v.lane[i];
}

INLINE vec vec_fma(vec a, vec b, vec c)
{
    vec to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = fmaf(a.lane[i], b.lane[i], c.lane[i]);
    return to;
}

INLINE vec vec_add(vec a, vec b)
{
    vec to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = a.lane[i] + b.lane[i];
    return to;
}

INLINE vec vec_sub(vec a, vec b)
{
    vec to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = a.lane[i] - b.lane[i];
    return to;
}

INLINE vec vec_mul(vec a, vec b)
{
    vec to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = a.lane[i] * b.lane[i];
    return to;
}

INLINE vec vec_div(vec a, vec b)
{
    vec to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = a.lane[i] / b.lane[i];
    return to;
}

INLINE vec vec_max(vec a, vec b)
{
    vec to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i];
    return to;
}

INLINE vec vec_min(vec a, vec b)
{
    vec to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i];
    return to;
}

INLINE vec vec_rint(vec a)
{
    vec to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = rintf(a.lane[i]);
    return to;
}

INLINE vecm vec_less(vec a, vec b)
{
    vecm mask = 0;

    for (int i = 0; i < 16; i++)
        mask |= (uint32_t)(a.lane[i] < b.lane[i]) << i;
    return mask;
}

INLINE vecm vec_equal(vec a, vec b)
{
    vecm mask = 0;

    for (int i = 0; i < 16; i++)
        mask |= (uint32_t)(a.lane[i] == b.lane[i]) << i;
    return mask;
}

INLINE vec vec_select(vecm mask, vec a, vec b)
{
    vec to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = (mask >> i & 1) != 0 ? a.lane[i] : b.lane[i];
    return to;
}

INLINE vecm vecm_of_bits(uint32_t bits)
{
    return bits & 0xffff;
}

INLINE uint32_t vecm_bits(vecm mask)
{
    return mask;
}

INLINE veci veci_set(uint32_t value)
{
    veci to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = value;
    return to;
}

INLINE veci veci_load(const uint32_t *from)
{
    veci to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = from[i];
    return to;
}

INLINE veci veci_add(veci a, veci b)
{
    veci to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = a.lane[i] + b.lane[i];
    return to;
}

INLINE veci veci_and(veci a, veci b)
{
    veci to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = a.lane[i] & b.lane[i];
    return to;
}

INLINE veci veci_or(veci a, veci b)
{
    veci to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = a.lane[i] | b.lane[i];
    return to;
}

INLINE veci veci_xor(veci a, veci b)
{
    veci to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = a.lane[i] ^ b.lane[i];
    return to;
}

INLINE veci veci_left(veci a, int bits)
{
    veci to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = a.lane[i] << bits;
    return to;
}

INLINE veci veci_right(veci a, int bits)
{
    veci to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = a.lane[i] >> bits;
    return to;
}

INLINE veci veci_of_vec_bits(vec a)
{
    veci to;

    memcpy(&to, &a, sizeof to);
    return to;
}

INLINE vec vec_of_bits(veci a)
{
    vec to;

    memcpy(&to, &a, sizeof to);
    return to;
}

INLINE vec vec_of_int(veci a)
{
    vec to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = (float)(int32_t)a.lane[i];
    return to;
}

INLINE vec vec_of_unsigned(veci a)
{
    vec to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = (float)a.lane[i];
    return to;
}

INLINE veci veci_of_integral(vec a)
{
    veci to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = (uint32_t)(int32_t)a.lane[i];
    return to;
}

INLINE veci veci_multiply(veci a, uint32_t factor, veci *high)
{
    veci low;

    for (int i = 0; i < 16; i++) {
        uint64_t product = (uint64_t)a.lane[i] * factor;

        low.lane[i] = (uint32_t)product;
        high->lane[i] = (uint32_t)(product >> 32);
    }
    return low;
}

INLINE void veci_transpose(veci w[4])
{
    veci to[4];

    for (int v = 0; v < 4; v++)
        for (int i = 0; i < 16; i++)
            to[v].lane[i] = w[i % 4].lane[i / 4 * 4 + v];
    memcpy(w, to, sizeof to);
}

INLINE veci veci_dot(veci sum, veci bytes, const activation *four, int part)
{
    (void)part;
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 4; k++)
            sum.lane[i] += (uint32_t)((int32_t)(bytes.lane[i] >> 8 * k & 0xff) * four[k]);
    return sum;
}

INLINE int32_t veci_sum(veci a)
{
    uint32_t sum = 0;

    for (int i = 0; i < 16; i++)
        sum += a.lane[i];
    return (int32_t)sum;
}

INLINE void veci_store_bytes(int8_t *to, veci a)
{
    for (int i = 0; i < 16; i++)
        to[i] = (int8_t)(int32_t)a.lane[i];
}

INLINE float vec_max_lane(vec v)
{
    float largest = v.lane[0];

    for (int i = 1; i < 16; i++)
        largest = v.lane[i] > largest ? v.lane[i] : largest;
    return largest;
}

INLINE vec vec_widen_bf16_even(const void *pairs)
{
    return vec_of_bits(veci_left(veci_load(pairs), 16));
}

INLINE vec vec_widen_bf16_odd(const void *pairs)
{
    return vec_of_bits(veci_and(veci_load(pairs), veci_set(0xffff0000)));
}

INLINE vec vec_widen_bf16_part(const void *words, int lanes)
{
    const uint16_t *from = words;
    veci to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = i < lanes ? (uint32_t)from[i] << 16 : 0;
    return vec_of_bits(to);
}

INLINE vec vec_widen_bf16(const void *words)
{
    return vec_widen_bf16_part(words, 16);
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
    vec to;

    dtype_widen(DTYPE_F16, halves, to.lane, 16);
    return to;
}

INLINE vec vec_widen_e4m3(const void *bytes)
{
    const uint8_t *from = bytes;
    uint16_t halves[16];

    for (int i = 0; i < 16; i++)
        halves[i] = (uint16_t)((from[i] & 0x80) << 8 | (from[i] & 0x7f) << 7);
    return vec_widen_f16(halves);
}

INLINE vec vec_widen_e4m3_or_nan(const void *bytes)
{
    const uint8_t *from = bytes;
    uint16_t halves[16];

    for (int i = 0; i < 16; i++) {
        halves[i] = (uint16_t)((from[i] & 0x80) << 8 | (from[i] & 0x7f) << 7);
        halves[i] = (uint16_t)(halves[i] | ((halves[i] + 0x80) & 0x4000));
    }
    return vec_widen_f16(halves);
}

INLINE vec vec_widen_i8(const void *bytes)
{
    const int8_t *from = bytes;
    vec to;

    for (int i = 0; i < 16; i++)
        to.lane[i] = (float)from[i];
    return to;
}

INLINE vecd vecd_zero(void)
{
    return (vecd){{0}};
}

INLINE vecd vecd_add(vecd sum, vec v)
{
    for (int i = 0; i < 16; i++)
        sum.lane[i] = sum.lane[i] + (double)v.lane[i];
    return sum;
}

INLINE void vecd_store(double *to, vecd v)
{
    memcpy(to, &v, sizeof v);
}

#endif
