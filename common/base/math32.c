#include "common/base/math32.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

DEVICE_CODE static float from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

DEVICE_CODE float math32_exp(float x)
{
    static const float terms[] = MATH32_EXP_TERMS;
    float clamped = x < MATH32_EXP_LOW ? MATH32_EXP_LOW : x > MATH32_EXP_HIGH ? MATH32_EXP_HIGH : x;
    float n = rintf(clamped * MATH32_LOG2E);
    float r = fmaf(n, -MATH32_LN2_LOW, fmaf(n, -MATH32_LN2_HIGH, clamped));
    float poly = terms[0];

    for (int i = 1; i < 6; i++)
        poly = fmaf(poly, r, terms[i]);
    poly = fmaf(poly, r * r, r) + 1.0f;
    if (x < MATH32_EXP_LOW)
        return 0.0f;
    return poly * from_bits((uint32_t)((int32_t)n + 127) << 23);
}

DEVICE_CODE float math32_log(float x)
{
    static const float terms[] = MATH32_LOG_TERMS;
    uint32_t bits;
    float mantissa, exponent, f, square, poly;
    int small;

    if (x <= 0.0f)
        return -88.0f;
    memcpy(&bits, &x, sizeof bits);
    exponent = (float)((int32_t)(bits >> 23) - 126);
    mantissa = from_bits((bits & 0x007fffff) | 0x3f000000); /* [0.5, 1) */
    small = mantissa < MATH32_SQRT_HALF;
    exponent = small ? exponent - 1.0f : exponent;
    f = small ? (mantissa + mantissa) - 1.0f : mantissa - 1.0f;
    square = f * f;
    poly = terms[0];
    for (int i = 1; i < 9; i++)
        poly = fmaf(poly, f, terms[i]);
    poly = poly * f * square;
    poly = fmaf(exponent, MATH32_LN2_LOW, poly);
    poly = fmaf(-0.5f, square, poly);
    return fmaf(exponent, MATH32_LN2_HIGH, f + poly);
}
