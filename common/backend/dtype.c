#include "common/backend/backend.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A dtype without blocks has some of one value. */
static const struct format {
    const char *name;
    size_t block;
    size_t bytes;
    int bits;
} formats[DTYPES_ALL] = {
    {"F32", 1, 4, 32},     {"F16", 1, 2, 16},     {"BF16", 1, 2, 16},    {"F8_E4M3", 128, 132, 8},
    {"Q8_0", 32, 34, 8},   {"Q4_0", 32, 18, 4},   {"Q4_1", 32, 20, 4},   {"Q5_0", 32, 22, 5},
    {"Q5_1", 32, 24, 5},   {"Q4_Z", 32, 19, 4},   {"Q2_K", 256, 84, 2},  {"Q3_K", 256, 110, 3},
    {"Q4_K", 256, 144, 4}, {"Q5_K", 256, 176, 5}, {"Q6_K", 256, 210, 6}, [DTYPE_E4M3] = {"E4M3", 1, 1, 8},
};

int dtype_is_quantised(enum dtype dtype)
{
    return dtype >= DTYPE_Q8_0 && dtype < DTYPES;
}

size_t dtype_bytes(enum dtype dtype)
{
    return formats[dtype].block > 1 ? 0 : formats[dtype].bytes;
}

size_t dtype_row_bytes(enum dtype dtype, size_t columns)
{
    return columns / formats[dtype].block * formats[dtype].bytes;
}

size_t dtype_block(enum dtype dtype)
{
    return formats[dtype].block;
}

/* Q6_K has room for what Q3_K is, and Q5_K for any k-quant, as they are packed (cpu/matrix.h). */
enum dtype dtype_common(enum dtype one, enum dtype other)
{
    enum dtype low = one < other ? one : other, high = one < other ? other : one;

    if (one == other)
        return one;
    if (low == DTYPE_Q8_0 && high == DTYPE_Q5_0)
        return DTYPE_Q8_0;
    if (low == DTYPE_Q3_K && high == DTYPE_Q6_K)
        return DTYPE_Q6_K;
    return low >= DTYPE_Q2_K ? DTYPE_Q5_K : DTYPE_F32;
}

int dtype_bits(enum dtype dtype)
{
    return formats[dtype].bits;
}

const char *dtype_name(enum dtype dtype)
{
    return formats[dtype].name;
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

static uint16_t bits_at(const unsigned char *bytes)
{
    uint16_t bits;

    memcpy(&bits, bytes, sizeof bits);
    return bits;
}

/* Its bits are those of a float32 with another bias, also where they are subnormal. */
static float widen_e4m3(uint8_t byte)
{
    uint32_t bits = (uint32_t)(byte & 0x80) << 24 | (uint32_t)(byte & 0x7f) << 20;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value * 0x1p120f;
}

static float widen_one(enum dtype dtype, const unsigned char *from)
{
    switch (dtype) {
    case DTYPE_E4M3:
        return (*from & 0x7f) == 0x7f ? NAN : widen_e4m3(*from);
    case DTYPE_BF16:
        return widen_bf16(bits_at(from));
    default:
        return widen_f16(bits_at(from));
    }
}

/* With its halves' scales and minima, each rounded never. */
static void widen_part(const struct dtype_part *part, float *to)
{
    float d = widen_f16(part->d), m = widen_f16(part->m);

    for (int i = 0; i < DTYPE_BLOCK; i++) {
        int half = i / (DTYPE_BLOCK / 2);
        float least = part->has_least ? m * (float)part->least[half] : -0.0f; /* which keeps the sign of a zero */

        to[i] = d * (float)part->scale[half] * (float)part->q[i] + least;
    }
}

static void widen_f8(const struct dtype_part *part, float *to)
{
    for (int i = 0; i < DTYPE_BLOCK; i++)
        to[i] = widen_e4m3((uint8_t)part->q[i]) * part->f8_scale;
}

void dtype_widen(enum dtype dtype, const void *from, float *to, size_t count)
{
    const unsigned char *bytes = from;
    struct dtype_part part;

    if (dtype == DTYPE_F32) {
        memcpy(to, from, count * sizeof *to);
        return;
    }
    if (dtype_block(dtype) > 1) {
        for (size_t i = 0; i < count / DTYPE_BLOCK; i++) {
            dtype_part_of(dtype, from, i, &part);
            if (dtype == DTYPE_F8)
                widen_f8(&part, to + i * DTYPE_BLOCK);
            else
                widen_part(&part, to + i * DTYPE_BLOCK);
        }
        return;
    }
    for (size_t i = 0; i < count; i++)
        to[i] = widen_one(dtype, bytes + i * dtype_bytes(dtype));
}

void dtype_widen_columns(enum dtype dtype, const void *row, size_t first, size_t count, float *to)
{
    const unsigned char *bytes = row;
    size_t past = first + count, block = formats[dtype].block;
    float values[DTYPE_BLOCK_MOST];

    if (first % block == 0) { /* all but the last, cut block */
        size_t whole = count / block * block;

        dtype_widen(dtype, bytes + dtype_row_bytes(dtype, first), to, whole);
        first += whole;
        to += whole;
    }
    while (first < past) {
        size_t begin = first / block * block, stop = begin + block < past ? begin + block : past;

        dtype_widen(dtype, bytes + dtype_row_bytes(dtype, begin), values, block);
        memcpy(to, values + (first - begin), (stop - first) * sizeof *to);
        to += stop - first;
        first = stop;
    }
}

/* To the nearest, ties to even; of a finite value. */
static uint16_t narrow_f16(float value)
{
    float size = fabsf(value), raised = size + 0.5f; /* whose last bit is worth 2^-24, as that of a subnormal half is */
    uint32_t bits, sign = signbit(value) ? 0x8000 : 0;

    if (size < 0x1p-14f) {
        memcpy(&bits, &raised, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000));
    }
    memcpy(&bits, &size, sizeof bits);
    bits += 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | (bits < 0x47800000 ? (bits - 0x38000000) >> 13 : 0x7c00));
}

/* The first value of largest magnitude, or one that is not finite. */
static float largest_of(const float *values)
{
    float largest = 0;

    for (int i = 0; i < DTYPE_BLOCK; i++) {
        if (!isfinite(values[i]))
            return values[i];
        largest = fabsf(values[i]) > fabsf(largest) ? values[i] : largest;
    }
    return largest;
}

/* roundf: what casting leaves is exact. */
static int nearest(float value)
{
    int whole = (int)value;
    float rest = value - (float)whole;

    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

static int half_byte(float value)
{
    int quant = (int)(value + 8.5f);

    return quant < 15 ? quant : 15;
}

void dtype_round(enum dtype dtype, const float *from, void *block)
{
    float largest = largest_of(from), scale = dtype == DTYPE_Q8_0 ? fabsf(largest) / 127 : largest / -8;
    float inverse = fabsf(scale) >= FLT_MIN ? 1 / scale : 0;
    unsigned char *quants = (unsigned char *)block + 2;
    uint16_t bits = 0x7e00; /* NaN */

    if (!isfinite(largest)) {
        memset(quants, 0, formats[dtype].bytes - 2);
        memcpy(block, &bits, sizeof bits);
        return;
    }
    bits = narrow_f16(scale);
    memcpy(block, &bits, sizeof bits);
    if (dtype == DTYPE_Q8_0) {
        for (int i = 0; i < DTYPE_BLOCK; i++)
            quants[i] = (unsigned char)nearest(from[i] * inverse);
        return;
    }
    for (int i = 0; i < DTYPE_BLOCK / 2; i++)
        quants[i] = (unsigned char)(half_byte(from[i] * inverse) | half_byte(from[i + DTYPE_BLOCK / 2] * inverse) << 4);
}

void dtype_round_trip(enum dtype dtype, float *values, size_t count)
{
    unsigned char block[2 + DTYPE_BLOCK];
    struct dtype_part part;

    for (size_t at = 0; at < count; at += DTYPE_BLOCK) {
        size_t size = (count - at < DTYPE_BLOCK ? count - at : DTYPE_BLOCK) * sizeof *values;
        float full[DTYPE_BLOCK] = {0};

        memcpy(full, values + at, size);
        dtype_round(dtype, full, block);
        dtype_part_of(dtype, block, 0, &part);
        widen_part(&part, full);
        memcpy(values + at, full, size);
    }
}
