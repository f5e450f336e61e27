#include "tests/support/block_encode.h"

#include <math.h>
#include <string.h>

enum { MOST_PARTS = 16 };

/* What a format has of each. */
struct kind {
    int part;   /* values that share a scale */
    int levels; /* of the integers */
    int offset; /* what is taken from one to make its value; 0: there is a minimum instead */
    int most_scale, most_least;
};

static struct kind kind_of(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_Q5_0:
        return (struct kind){32, 32, 16, 1, 0};
    case DTYPE_Q5_1:
        return (struct kind){32, 32, 0, 1, 1};
    case DTYPE_Q2_K:
        return (struct kind){16, 4, 0, 15, 15};
    case DTYPE_Q3_K:
        return (struct kind){16, 8, 4, 31, 0};
    case DTYPE_Q4_K:
        return (struct kind){32, 16, 0, 63, 63};
    case DTYPE_Q5_K:
        return (struct kind){32, 32, 0, 63, 63};
    default:
        return (struct kind){16, 64, 32, 127, 0}; /* Q6_K */
    }
}

static float put_half(float value, unsigned char *to)
{
    _Float16 half = (_Float16)value;

    memcpy(to, &half, sizeof half);
    return (float)half;
}

struct encoded {
    int scale[MOST_PARTS], least[MOST_PARTS];
    int q[DTYPE_BLOCK_MOST]; /* from 0 */
};

static void put_pairs(const int *q, unsigned char *to)
{
    for (int i = 0; i < DTYPE_BLOCK_MOST; i++)
        to[i / 128 * 32 + i % 32] |= (unsigned char)((q[i] & 3) << 2 * (i / 32 % 4));
}

static void put_halves(const int *q, unsigned char *to)
{
    for (int i = 0; i < DTYPE_BLOCK_MOST; i++)
        to[i / 64 * 32 + i % 32] |= (unsigned char)((q[i] & 15) << (i / 32 % 2 == 0 ? 0 : 4));
}

static void put_six_bit_scales(const struct encoded *encoded, unsigned char *to)
{
    for (int j = 0; j < 4; j++) {
        to[j] = (unsigned char)(encoded->scale[j] | encoded->scale[j + 4] >> 4 << 6);
        to[j + 4] = (unsigned char)(encoded->least[j] | encoded->least[j + 4] >> 4 << 6);
        to[j + 8] = (unsigned char)((encoded->scale[j + 4] & 15) | (encoded->least[j + 4] & 15) << 4);
    }
}

static void put_small(const struct encoded *encoded, unsigned char *fifth)
{
    for (int i = 0; i < DTYPE_BLOCK; i++) {
        fifth[i / 8] |= (unsigned char)(encoded->q[i] >> 4 << i % 8);
        fifth[4 + i % 16] |= (unsigned char)((encoded->q[i] & 15) << (i < 16 ? 0 : 4));
    }
}

static void put_q3_k(const struct encoded *encoded, unsigned char *block)
{
    for (int i = 0; i < DTYPE_BLOCK_MOST; i++)
        block[i % 32] |= (unsigned char)(encoded->q[i] >> 2 << i / 32);
    put_pairs(encoded->q, block + 32);
    for (int j = 0; j < MOST_PARTS; j++) {
        int scale = encoded->scale[j] + 32;

        block[96 + j % 8] |= (unsigned char)((scale & 15) << (j < 8 ? 0 : 4));
        block[104 + j % 4] |= (unsigned char)(scale >> 4 << 2 * (j / 4));
    }
}

static void put_q6_k(const struct encoded *encoded, unsigned char *block)
{
    for (int i = 0; i < DTYPE_BLOCK_MOST; i++) {
        block[i / 128 * 64 + i / 32 % 2 * 32 + i % 32] |= (unsigned char)((encoded->q[i] & 15) << (i / 32 % 4 < 2 ? 0 : 4));
        block[128 + i / 128 * 32 + i % 32] |= (unsigned char)(encoded->q[i] >> 4 << 2 * (i / 32 % 4));
    }
    for (int j = 0; j < MOST_PARTS; j++)
        block[192 + j] = (unsigned char)encoded->scale[j];
}

static void put(enum dtype dtype, const struct encoded *encoded, unsigned char *block)
{
    switch (dtype) {
    case DTYPE_Q5_0:
        put_small(encoded, block + 2);
        break;
    case DTYPE_Q5_1:
        put_small(encoded, block + 4);
        break;
    case DTYPE_Q2_K:
        for (int j = 0; j < MOST_PARTS; j++)
            block[j] = (unsigned char)(encoded->scale[j] | encoded->least[j] << 4);
        put_pairs(encoded->q, block + 16);
        break;
    case DTYPE_Q3_K:
        put_q3_k(encoded, block);
        break;
    case DTYPE_Q4_K:
        put_six_bit_scales(encoded, block + 4);
        put_halves(encoded->q, block + 16);
        break;
    case DTYPE_Q5_K:
        put_six_bit_scales(encoded, block + 4);
        for (int i = 0; i < DTYPE_BLOCK_MOST; i++)
            block[16 + i % 32] |= (unsigned char)(encoded->q[i] >> 4 << i / 32);
        put_halves(encoded->q, block + 48);
        break;
    default:
        put_q6_k(encoded, block);
        break;
    }
}

void block_encode(enum dtype dtype, const float *values, unsigned char *block)
{
    const struct kind kind = kind_of(dtype);
    int count = (int)dtype_block(dtype), parts = count / kind.part, is_k = count == DTYPE_BLOCK_MOST;
    size_t size = dtype_row_bytes(dtype, (size_t)count), at[2];
    float scale[MOST_PARTS], least[MOST_PARTS], most_scale = 0, most_least = 0, d, m = 0;
    struct encoded encoded = {0};

    (void)block_halves(dtype, at);
    memset(block, 0, size);
    for (int p = 0; p < parts; p++) {
        float low = 0, high = 0;

        for (int i = 0; i < kind.part; i++) {
            low = fminf(low, values[p * kind.part + i]);
            high = fmaxf(high, values[p * kind.part + i]);
        }
        least[p] = kind.offset == 0 ? low : 0;
        scale[p] = kind.offset == 0 ? (high - low) / (float)(kind.levels - 1) : fmaxf(high, -low) / (float)(kind.offset - 1);
        most_scale = fmaxf(most_scale, scale[p]);
        most_least = fmaxf(most_least, -least[p]);
    }
    d = put_half(most_scale / (float)kind.most_scale, block + at[0]);
    if (kind.offset == 0)
        m = put_half((is_k ? most_least : -most_least) / (float)kind.most_least, block + at[1]);
    for (int p = 0; p < parts; p++) {
        float step, from;

        encoded.scale[p] = d > 0 ? (int)fminf(ceilf(scale[p] / d), (float)kind.most_scale) : 0;
        encoded.least[p] = is_k && m > 0 ? (int)fminf(ceilf(-least[p] / m), (float)kind.most_least) : 0;
        step = d * (float)encoded.scale[p];
        from = is_k ? -m * (float)encoded.least[p] : m;
        for (int i = p * kind.part; i < (p + 1) * kind.part; i++) {
            float q = step > 0 ? rintf((values[i] - from) / step) + (float)kind.offset : (float)kind.offset;

            encoded.q[i] = (int)fmaxf(0, fminf(q, (float)(kind.levels - 1)));
        }
    }
    put(dtype, &encoded, block);
}
