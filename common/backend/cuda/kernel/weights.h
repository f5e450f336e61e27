/* How a kernel of linear.cu or wide.cu has its weights, one struct for each way: what a lane fetches of a panel for a unit of TILES tiles, and the
 * unit's products, added to the sums. Both kernels go by these alone, so a row has the same bits in both. Device code; it writes nothing.
 *
 * Weights in blocks (blocks.h) stay in their bits until they are multiplied. A lane takes the integers of a part out of its words, as
 * bfloat16, which holds them exactly; the matrix unit multiplies these by the rows and adds half a part, or a whole one, that has one scale; and
 * the sum is multiplied by the scale, in f32, as it is added: sum = fma(products, d scale, sum). Where there are minima, sum = fma(x, m least, sum)
 * follows, x being the sum of the row's columns, which the matrix unit makes by a tile of ones. So no weight is rounded. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_WEIGHTS_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_WEIGHTS_H

#include "common/backend/cuda/blocks.h"
#include "common/backend/cuda/kernel/warp.h"

/* Of 16 bits: a unit is a tile. */
template <typename T> struct plain_weights {
    typedef T number; /* as which rows and weights enter a product */
    enum { TILES = 1, GROUP_UNITS = 1, GROUP_BYTES = 512, HAS_PAIRS = 1 /* kernels of two panels that are not gate and up */ };
    struct part {
        uint4 tile;
    };

    static __device__ __forceinline__ struct part nothing()
    {
        return {{0, 0, 0, 0}};
    }
    /* unit: of the whole matrix, panel after panel  near: another warp of the block is about to read it, too */
    static __device__ __forceinline__ struct part fetch(const void *all, size_t unit, bool near)
    {
        const uint4 *from = static_cast<const uint4 *>(all) + unit * 32 + threadIdx.x % 32;

        return {near ? warp_stream_near(from) : warp_stream(from)};
    }
    /* sums += the unit's weights, of COUNT panels, x its rows, eight of each 32 of rows[0]. */
    template <int ROW_TILES, int COUNT>
    static __device__ __forceinline__ void multiply(const uint2 *const rows[TILES], const struct part weights[COUNT], float sums[COUNT][ROW_TILES][4])
    {
#pragma unroll
        for (int n = 0; n < ROW_TILES; n++) {
            uint2 tokens = rows[0][n * 32];

#pragma unroll
            for (int p = 0; p < COUNT; p++)
                warp_mma(T(), sums[p][n], weights[p].tile, tokens);
        }
    }
};

/* In blocks of this layout: a unit is a part. */
template <int LAYOUT> struct block_weights {
    static constexpr struct block_layout layout = block_layouts[LAYOUT - BLOCKS_FIRST];
    typedef bf16 number;
    enum {
        TILES = 2,
        HAS_PAIRS = 0,
        GROUP_UNITS = layout.parts,
        GROUP_BYTES = blocks_group_bytes(&layout),
        LOW = layout.low,
        HIGH = layout.high,
        OFFSET = layout.offset,
        HALVES = layout.halves,
        BIAS = layout.bias,
        HAS_LEAST = layout.has_least,
        IS_F8 = layout.is_f8,
        HAS_ZERO = layout.has_zero,
        NUMBERS = blocks_numbers(&layout), /* of a channel */
        LOW_SCALE = blocks_low_scale(&layout),
        HIGH_SCALE = layout.scale - LOW_SCALE,
        LOW_SCALE_BITS = 2 * NUMBERS * LOW_SCALE, /* of a pair of channels */
        HIGH_SCALE_BITS = 2 * NUMBERS * HIGH_SCALE,
        HIGH_AT = blocks_high_at(&layout),
        SCALES_AT = blocks_scales_at(&layout),
        HIGH_SCALES_AT = blocks_high_scales_at(&layout),
        HEADS_AT = blocks_heads_at(&layout),
        LOW_WORDS = LOW / 2,         /* of a lane */
        HIGH_WORDS = (HIGH + 1) / 2, /* the lower half of one where HIGH is 1 */
        HEAD_WORDS = blocks_head_words(&layout),
    };
    struct part {
        unsigned low[LOW_WORDS], high[HIGH_WORDS + 1], low_scales[LOW_SCALE_BITS / 32 + 1], high_scales, head[HEAD_WORDS];
    };
    /* What two channels of a lane, l / 4 and l / 4 + 8, multiply sums by. */
    struct factors {
        float scale[HALVES][2], least[HALVES][2];
    };

    static __device__ __forceinline__ struct part nothing()
    {
        return {};
    }

    /* So many words, at a place that is a multiple of their bytes. */
    template <int WORDS> static __device__ __forceinline__ void take(const unsigned char *from, unsigned to[WORDS])
    {
        if (WORDS == 4) {
            uint4 four = warp_stream_near(reinterpret_cast<const uint4 *>(from));

            to[0] = four.x, to[1 % WORDS] = four.y, to[2 % WORDS] = four.z, to[3 % WORDS] = four.w;
        } else if (WORDS == 2) {
            uint2 two = warp_stream_near(reinterpret_cast<const uint2 *>(from));

            to[0] = two.x, to[1 % WORDS] = two.y;
        } else {
            to[0] = warp_stream_near(reinterpret_cast<const unsigned *>(from));
        }
    }
    /* Element `at` of an array of BITS bits each: where it is a part of a word, that word. Nothing is done with it, which would wait for it. */
    template <int BITS> static __device__ __forceinline__ void take_bits(const unsigned char *array, int at, unsigned *to)
    {
        take<(BITS + 31) / 32>(array + at * BITS / 32 * 4, to);
    }
    /* And that part, once it is wanted; element 32 begins a word. */
    template <int BITS> static __device__ __forceinline__ unsigned own_bits(unsigned word, int at)
    {
        return BITS < 32 ? word >> at * BITS % 32 : word;
    }

    static __device__ __forceinline__ struct part fetch(const void *all, size_t unit, bool)
    {
        const unsigned char *group = static_cast<const unsigned char *>(all) + unit / GROUP_UNITS * GROUP_BYTES;
        int number = (int)(unit % GROUP_UNITS), lane = (int)threadIdx.x % 32, at = number * 32 + lane, pair = number * BLOCKS_PAIRS + lane / 4;
        struct part part = {};

        take_bits<16 * LOW>(group, at, part.low);
        if constexpr (HIGH > 0)
            take_bits<16 * HIGH>(group + HIGH_AT, at, part.high);
        if constexpr (NUMBERS > 0)
            take_bits<LOW_SCALE_BITS>(group + SCALES_AT, pair, part.low_scales);
        if constexpr (HIGH_SCALE > 0)
            take_bits<HIGH_SCALE_BITS>(group + HIGH_SCALES_AT, pair, &part.high_scales);
        take<HEAD_WORDS>(group + HEADS_AT + lane / 4 * HEAD_WORDS * 4, part.head);
        return part;
    }

    /* Pair j of a lane's integers as bfloat16. 128 + u is u behind the bits of 128, for u below 128, and taking 128 + offset away, or 128 + the zero
     * point of the channel, of which the two of a lane take turns, is exact; a byte with a sign is its low seven bits less 128 where it is negative,
     * and 256 is that sign behind the bits of 128. Of F8, the number: as bits of a bfloat16 it is 2^-120 of what it is. */
    static __device__ __forceinline__ unsigned integers(const struct part &part, int j)
    {
        unsigned value = part.low[j * LOW / 16] >> j * LOW % 16 & 0x00010001u * ((1u << LOW) - 1), offset = OFFSET;

        if (IS_F8)
            return warp_times(bf16(), (value & 0x007f007fu) << 4 | (value & 0x00800080u) << 8, 0x7b807b80u);
        if (LOW == 8)
            return warp_subtract(bf16(), 0x43004300u | (value & 0x007f007fu), 0x43004300u | (value & 0x00800080u));
        if (HIGH == 2)
            value |= (part.high[0] >> 2 * j & 0x00030003u) << LOW;
        if (HIGH == 1) {
            unsigned own = own_bits<16 * HIGH>(part.high[0], (int)threadIdx.x % 2), apart = (own & 0xffu) | (own & 0xff00u) << 8;

            value |= (apart >> j & 0x00010001u) << LOW;
        }
        if (HAS_ZERO)
            offset = part.head[HEAD_WORDS - 1] >> 16 * (j % 2) & 0xffffu;
        return warp_subtract(bf16(), 0x43004300u | value, 0x43004300u + 0x00010001u * offset);
    }
    static __device__ __forceinline__ uint4 tile(const struct part &part, int half)
    {
        return {integers(part, 4 * half), integers(part, 4 * half + 1), integers(part, 4 * half + 2), integers(part, 4 * half + 3)};
    }

    /* Number i of channel l / 4 + 8 c */
    static __device__ __forceinline__ float scale_number(const struct part &part, int i, int c)
    {
        int at = 2 * i + c, pair = (int)threadIdx.x % 32 / 4;
        unsigned low = own_bits<LOW_SCALE_BITS>(part.low_scales[at * LOW_SCALE / 32], pair), high = own_bits<HIGH_SCALE_BITS>(part.high_scales, pair);
        unsigned value = low >> at * LOW_SCALE % 32 & ((1u << LOW_SCALE) - 1);

        if (HIGH_SCALE > 0)
            value |= (high >> at * HIGH_SCALE & ((1u << HIGH_SCALE) - 1)) << LOW_SCALE;
        return (float)((int)value - (i < HALVES ? BIAS : 0));
    }
    static __device__ __forceinline__ struct factors factors_of(const struct part &part)
    {
        float2 d = warp_unpack(f16(), part.head[0]), m = warp_unpack(f16(), part.head[HEAD_WORDS - 1]);
        struct factors factors = {};

#pragma unroll
        for (int h = 0; h < HALVES; h++)
#pragma unroll
            for (int c = 0; c < 2; c++) {
                factors.scale[h][c] = IS_F8 ? __uint_as_float(part.head[c * (HEAD_WORDS - 1)])
                                            : (c == 0 ? d.x : d.y) * (NUMBERS > 0 ? scale_number(part, h, c) : 1.0f);
                if (HAS_LEAST)
                    factors.least[h][c] = (c == 0 ? m.x : m.y) * (NUMBERS > 0 ? -scale_number(part, HALVES + h, c) : 1.0f);
            }
        return factors;
    }

    template <int ROW_TILES, int COUNT>
    static __device__ __forceinline__ void multiply(const uint2 *const rows[TILES], const struct part weights[COUNT], float sums[COUNT][ROW_TILES][4])
    {
        const uint4 ones = {0x3f803f80u, 0x3f803f80u, 0x3f803f80u, 0x3f803f80u};
        struct factors factors[COUNT];
        uint4 tiles[COUNT][TILES];

#pragma unroll
        for (int p = 0; p < COUNT; p++) {
            factors[p] = factors_of(weights[p]);
#pragma unroll
            for (int t = 0; t < TILES; t++)
                tiles[p][t] = tile(weights[p], t);
        }
#pragma unroll
        for (int n = 0; n < ROW_TILES; n++) {
            const uint2 tokens[TILES] = {rows[0][n * 32], rows[1][n * 32]};
            float totals[HALVES][4] = {};

#pragma unroll
            for (int t = 0; t < (HAS_LEAST ? TILES : 0); t++)
                warp_mma(bf16(), totals[t * HALVES / TILES], ones, tokens[t]);
#pragma unroll
            for (int p = 0; p < COUNT; p++) {
                float products[HALVES][4] = {};

#pragma unroll
                for (int t = 0; t < TILES; t++)
                    warp_mma(bf16(), products[t * HALVES / TILES], tiles[p][t], tokens[t]);
#pragma unroll
                for (int h = 0; h < HALVES; h++)
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        sums[p][n][i] = fmaf(products[h][i], factors[p].scale[h][i / 2], sums[p][n][i]);
                        if (HAS_LEAST)
                            sums[p][n][i] = fmaf(totals[h][i], factors[p].least[h][i / 2], sums[p][n][i]);
                    }
            }
        }
    }
};

#endif
