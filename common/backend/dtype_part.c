/* ggml's quantised blocks, byte by byte (ggml-common.h and ggml-quants.c of llama.cpp have the layouts). */
#include "common/backend/backend.h"

#include <math.h>
#include <string.h>

enum { HALF = DTYPE_BLOCK / 2 };

static uint16_t bits_at(const unsigned char *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static void set_scales(struct dtype_part *part, int first, int second)
{
    part->scale[0] = (int8_t)first;
    part->scale[1] = (int8_t)second;
}

static void set_least(struct dtype_part *part, int first, int second)
{
    part->has_least = 1;
    part->least[0] = (int8_t)first;
    part->least[1] = (int8_t)second;
}

/* A d for 32 values, and an m where the format has one.  Byte i of quants holds value i in its low half and value i + 16 in its high one; bit i of
 * the 32 at `fifth` is the fifth of value i. */
static void of_small_block(struct dtype_part *part, const unsigned char *block, int has_m, int has_fifth, int offset)
{
    const unsigned char *fifth = block + (has_m ? 4 : 2), *quants = fifth + (has_fifth ? 4 : 0);

    part->d = bits_at(block);
    set_scales(part, 1, 1);
    if (has_m) {
        part->m = bits_at(block + 2);
        set_least(part, 1, 1);
    }
    for (int i = 0; i < DTYPE_BLOCK; i++) {
        int low = quants[i % HALF] >> (i < HALF ? 0 : 4) & 15, high = has_fifth ? fifth[i / 8] >> i % 8 & 1 : 0;

        part->q[i] = (int8_t)((low | high << 4) - offset);
    }
}

static void of_q4_z(struct dtype_part *part, const unsigned char *block)
{
    part->d = bits_at(block);
    set_scales(part, 1, 1);
    part->zero = (int8_t)(block[2] & 15);
    for (int i = 0; i < DTYPE_BLOCK; i++)
        part->q[i] = (int8_t)((block[3 + i % HALF] >> (i < HALF ? 0 : 4) & 15) - part->zero);
}

static void of_q8_0(struct dtype_part *part, const unsigned char *block)
{
    part->d = bits_at(block);
    set_scales(part, 1, 1);
    memcpy(part->q, block + 2, DTYPE_BLOCK);
}

/* d, dmin, 8 scales and 8 minima of 6 bits in 12 bytes, [Q5_K: 32 bytes of fifth bits,] 128 bytes of halves. Minima are taken away. */
static void of_q4_k_or_q5_k(struct dtype_part *part, const unsigned char *block, int number, int has_fifth)
{
    const unsigned char *packed = block + 4, *fifth = block + 16, *quants = block + (has_fifth ? 48 : 16) + number / 2 * DTYPE_BLOCK;
    int scale = packed[number < 4 ? number : number + 4], least = packed[number + 4];

    if (number < 4) { /* the upper two bits are those of the last four */
        scale &= 63;
        least &= 63;
    } else {
        scale = (scale & 15) | packed[number - 4] >> 6 << 4;
        least = least >> 4 | packed[number] >> 6 << 4;
    }
    part->d = bits_at(block);
    part->m = bits_at(block + 2);
    set_scales(part, scale, scale);
    set_least(part, -least, -least);
    for (int i = 0; i < DTYPE_BLOCK; i++) {
        int low = quants[i] >> (number % 2 == 0 ? 0 : 4) & 15, high = has_fifth ? fifth[i] >> number & 1 : 0;

        part->q[i] = (int8_t)(low | high << 4);
    }
}

/* 128 bytes of low halves, 64 of upper pairs of bits, 16 scales with a sign, d. Each 128 values have half of the bytes. */
static void of_q6_k(struct dtype_part *part, const unsigned char *block, int number)
{
    const unsigned char *low = block + number / 4 * 64 + number % 2 * DTYPE_BLOCK, *high = block + 128 + number / 4 * DTYPE_BLOCK;
    const unsigned char *scale = block + 192 + 2 * number;
    int shift = number % 4 < 2 ? 0 : 4;

    part->d = bits_at(block + 208);
    set_scales(part, (int8_t)scale[0], (int8_t)scale[1]);
    for (int i = 0; i < DTYPE_BLOCK; i++)
        part->q[i] = (int8_t)(((low[i] >> shift & 15) | (high[i] >> 2 * (number % 4) & 3) << 4) - 32);
}

/* Scale `i` of Q3_K's 16, of 6 bits: the low four of i are in a half of the first eight bytes, the upper two in the last four bytes. */
static int scale_of_q3_k(const unsigned char *packed, int i)
{
    int low = packed[i % 8] >> (i < 8 ? 0 : 4) & 15, high = packed[8 + i % 4] >> 2 * (i / 4) & 3;

    return (low | high << 4) - 32;
}

/* 32 bytes of third bits, turned around; 64 of pairs of bits; 12 of scales; d. */
static void of_q3_k(struct dtype_part *part, const unsigned char *block, int number)
{
    const unsigned char *third = block, *quants = block + 32 + number / 4 * DTYPE_BLOCK, *packed = block + 96;

    part->d = bits_at(block + 108);
    set_scales(part, scale_of_q3_k(packed, 2 * number), scale_of_q3_k(packed, 2 * number + 1));
    for (int i = 0; i < DTYPE_BLOCK; i++)
        part->q[i] = (int8_t)((quants[i] >> 2 * (number % 4) & 3) - ((third[i] >> number & 1) != 0 ? 0 : 4));
}

/* 16 bytes of a scale and a minimum of 4 bits each, 64 bytes of pairs of bits, d, dmin. */
static void of_q2_k(struct dtype_part *part, const unsigned char *block, int number)
{
    const unsigned char *packed = block + 2 * number, *quants = block + 16 + number / 4 * DTYPE_BLOCK;

    part->d = bits_at(block + 80);
    part->m = bits_at(block + 82);
    set_scales(part, packed[0] & 15, packed[1] & 15);
    set_least(part, -(packed[0] >> 4), -(packed[1] >> 4));
    for (int i = 0; i < DTYPE_BLOCK; i++)
        part->q[i] = (int8_t)(quants[i] >> 2 * (number % 4) & 3);
}

/* A float32 of the block, 128 bytes. */
static void of_f8(struct dtype_part *part, const unsigned char *block, int number)
{
    const unsigned char *bytes = block + sizeof part->f8_scale;

    memcpy(&part->f8_scale, block, sizeof part->f8_scale);
    if (!(fabsf(part->f8_scale) < DTYPE_F8_SCALE))
        part->f8_scale = NAN;
    for (int i = 0; i < DTYPE_BLOCK_F8; i++)
        if ((bytes[i] & 0x7f) == 0x7f)
            part->f8_scale = NAN;
    memcpy(part->q, bytes + number * DTYPE_BLOCK, DTYPE_BLOCK);
}

void dtype_part_of(enum dtype dtype, const void *row, size_t number, struct dtype_part *part)
{
    size_t parts = dtype_block(dtype) / DTYPE_BLOCK;
    const unsigned char *block = (const unsigned char *)row + number / parts * dtype_row_bytes(dtype, dtype_block(dtype));
    int of_block = (int)(number % parts);

    *part = (struct dtype_part){0};
    switch (dtype) {
    case DTYPE_F8:
        of_f8(part, block, of_block);
        break;
    case DTYPE_Q8_0:
        of_q8_0(part, block);
        break;
    case DTYPE_Q4_0:
        of_small_block(part, block, 0, 0, 8);
        break;
    case DTYPE_Q4_1:
        of_small_block(part, block, 1, 0, 0);
        break;
    case DTYPE_Q5_0:
        of_small_block(part, block, 0, 1, 16);
        break;
    case DTYPE_Q5_1:
        of_small_block(part, block, 1, 1, 0);
        break;
    case DTYPE_Q4_Z:
        of_q4_z(part, block);
        break;
    case DTYPE_Q2_K:
        of_q2_k(part, block, of_block);
        break;
    case DTYPE_Q3_K:
        of_q3_k(part, block, of_block);
        break;
    case DTYPE_Q4_K:
        of_q4_k_or_q5_k(part, block, of_block, 0);
        break;
    case DTYPE_Q5_K:
        of_q4_k_or_q5_k(part, block, of_block, 1);
        break;
    case DTYPE_Q6_K:
        of_q6_k(part, block, of_block);
        break;
    default:
        break; /* has no parts */
    }
}
