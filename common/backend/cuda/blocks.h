/* How quantised weights lie on the device: as many bits as in the file, in another order, which the table below tells to host and kernels alike.
 * A layout is a dtype, or BLOCKS_MIXED for rows of several k-quants, or BLOCKS_ZEROS for Q4_Z whose 128 columns share a scale and zero point. Pure;
 * for the files of this folder alone.
 *
 * A panel is 16 output channels. In it the file's blocks of all 16 (32 columns or, of k-quants, 256) lie together, one such group after the other;
 * a group is `parts` parts of DTYPE_BLOCK columns, which a warp multiplies at once. It has, one after the other,
 *   low      of each part, of each lane of a warp: `low` bits of each of its 16 integers q + offset
 *   high     the same: the `high` bits above them
 *   scales   of each part, of each pair of channels g and g + 8: the scales of its halves, where they have some, + bias, and then the minima, of both
 *            channels in turns: the low four bits, or all eight, of each; behind those of all parts, in the same order, bits 4 and 5
 *   heads    of each pair of channels: d of both as F16, then m of both where the layout has minima, or the zero points of both, 16 bits
 *            each; of F8 the scale of both as F32
 *
 * Lane l has of channels l / 4 and l / 4 + 8 the columns 4 (l % 4) .. + 3 of each half of a part: pairs of columns in the order c0 k0 k1, c8 k0 k1,
 * c0 k2 k3, c8 k2 k3 of the first half, then of the second. Pair j has n bits each: in word j n / 16, from bit j n % 16 on for the first, from 16
 * bits further on for the second; where n is 1 a word is 16 bits, and the second is 8 further on. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_BLOCKS_H
#define TANDEM_COMMON_BACKEND_CUDA_BLOCKS_H

#include "common/backend/backend.h"

enum {
    BLOCKS_MIXED = DTYPES, /* of whatever k-quant each row is */
    BLOCKS_ZEROS,          /* Q4_Z by 128 columns */
    LAYOUTS,
    BLOCKS_FIRST = DTYPE_F8,
    BLOCKS_PAIRS = 8, /* of channels of a panel, and of integers of a lane in a part */
};

struct block_layout {
    int parts;
    int low, high, offset; /* offset of Q8_0: none, its 8 bits are those of a number with a sign */
    int scale, bias;       /* bits of a scale, or 0: d alone scales; what is added to a scale to have it without a sign */
    int halves;            /* of a part that have scales of their own */
    int has_least;         /* minima, of as many bits, with the sign turned */
    int is_f8;             /* what stands for the integers are the bytes of floats, E4M3 */
    int has_zero;          /* each channel has a zero point in the place of the offset */
};

#ifdef __cplusplus
constexpr
#else
static const
#endif
    struct block_layout block_layouts[LAYOUTS - BLOCKS_FIRST] = {
        {4, 8, 0, 0, 0, 0, 1, 0, 1, 0},    /* F8 */
        {1, 8, 0, 0, 0, 0, 1, 0, 0, 0},    /* Q8_0 */
        {1, 4, 0, 8, 0, 0, 1, 0, 0, 0},    /* Q4_0 */
        {1, 4, 0, 0, 0, 0, 1, 1, 0, 0},    /* Q4_1 */
        {1, 4, 1, 16, 0, 0, 1, 0, 0, 0},   /* Q5_0 */
        {1, 4, 1, 0, 0, 0, 1, 1, 0, 0},    /* Q5_1 */
        {1, 4, 0, 0, 0, 0, 1, 0, 0, 1},    /* Q4_Z */
        {8, 2, 0, 0, 4, 0, 2, 1, 0, 0},    /* Q2_K */
        {8, 2, 1, 4, 6, 32, 2, 0, 0, 0},   /* Q3_K */
        {8, 4, 0, 0, 6, 0, 1, 1, 0, 0},    /* Q4_K */
        {8, 4, 1, 0, 6, 0, 1, 1, 0, 0},    /* Q5_K */
        {8, 4, 2, 32, 8, 128, 2, 0, 0, 0}, /* Q6_K */
        {8, 4, 2, 32, 8, 128, 2, 1, 0, 0}, /* BLOCKS_MIXED */
        {4, 4, 0, 0, 0, 0, 1, 0, 0, 1},    /* BLOCKS_ZEROS */
};

#ifdef __cplusplus
#define BLOCKS_FUNCTION static constexpr
#else
#define BLOCKS_FUNCTION static inline
#endif

/* Numbers of a part that a channel has for scales and minima; bits of those that lie first. */
BLOCKS_FUNCTION int blocks_numbers(const struct block_layout *layout)
{
    return layout->scale == 0 ? 0 : layout->halves * (1 + layout->has_least);
}
BLOCKS_FUNCTION int blocks_low_scale(const struct block_layout *layout)
{
    return layout->scale == 6 ? 4 : layout->scale;
}
/* Where things of a group begin, in bytes. */
BLOCKS_FUNCTION int blocks_high_at(const struct block_layout *layout)
{
    return 64 * layout->parts * layout->low;
}
BLOCKS_FUNCTION int blocks_scales_at(const struct block_layout *layout)
{
    return blocks_high_at(layout) + 64 * layout->parts * layout->high;
}
BLOCKS_FUNCTION int blocks_high_scales_at(const struct block_layout *layout)
{
    return blocks_scales_at(layout) + 2 * layout->parts * blocks_numbers(layout) * blocks_low_scale(layout);
}
BLOCKS_FUNCTION int blocks_heads_at(const struct block_layout *layout)
{
    return blocks_high_scales_at(layout) + 2 * layout->parts * blocks_numbers(layout) * (layout->scale - blocks_low_scale(layout));
}
/* Of 4 bytes each, for each pair of channels. */
BLOCKS_FUNCTION int blocks_head_words(const struct block_layout *layout)
{
    return 1 + layout->has_least + layout->is_f8 + layout->has_zero;
}
BLOCKS_FUNCTION int blocks_group_bytes(const struct block_layout *layout)
{
    return blocks_heads_at(layout) + 32 * blocks_head_words(layout);
}

#ifdef __cplusplus
extern "C" {
#endif
/* Sets a channel's bits of part `number` of a group that was zero.  group: [blocks_group_bytes] */
void blocks_put(const struct block_layout *layout, const struct dtype_part *part, int number, int channel, unsigned char *group);
#ifdef __cplusplus
}
#endif

#endif
