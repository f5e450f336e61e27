#include "common/backend/backend.h"

#include <string.h>

size_t dtype_bytes(enum dtype dtype)
{
    return dtype == DTYPE_F32 ? 4 : 2;
}

const char *dtype_name(enum dtype dtype)
{
    static const char *const name[] = {"F32", "F16", "BF16"};

    return name[dtype];
}

static float widen_bf16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static float widen_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 0x1f;
    uint32_t fraction = half & 0x3ff;
    uint32_t bits;
    float value;

    if (exponent == 0) { /* zero and subnormals: fraction times 2^-24 */
        value = (float)fraction * 0x1p-24f;
        return sign != 0 ? -value : value;
    }
    bits = sign | (exponent == 31 ? 0x7f800000 : (exponent + 112) << 23) | fraction << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void dtype_widen(enum dtype dtype, const void *from, float *to, size_t count)
{
    const unsigned char *bytes = from;

    if (dtype == DTYPE_F32) {
        memcpy(to, from, count * sizeof *to);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint16_t half;

        memcpy(&half, bytes + 2 * i, sizeof half);
        to[i] = dtype == DTYPE_BF16 ? widen_bf16(half) : widen_f16(half);
    }
}
