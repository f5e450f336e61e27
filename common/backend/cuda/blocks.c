#include "common/backend/cuda/blocks.h"

#include <string.h>

/* Sets the bits of a pair's first or second number, among a lane's. */
static void put_integer(int bits, int pair, int member, int value, unsigned char *lane)
{
    int at = bits == 1 ? pair + 8 * member : pair * bits / 16 * 32 + pair * bits % 16 + 16 * member;

    lane[at / 8] |= (unsigned char)(value << at % 8);
}

/* Sets number i of a pair of channels. */
static void put_number(int bits, int i, int value, unsigned char *pair)
{
    pair[i * bits / 8] |= (unsigned char)(value << i * bits % 8);
}

static void put_integers(const struct block_layout *layout, const struct dtype_part *part, int number, int channel, unsigned char *group)
{
    unsigned char *low = group + 64 * number * layout->low, *high = group + blocks_high_at(layout) + 64 * number * layout->high;

    for (int k = 0; k < DTYPE_BLOCK; k++) {
        int lane = channel % 8 * 4 + k % 16 / 4, pair = k / 16 * 4 + k % 4 / 2 * 2 + channel / 8;
        int value = (part->q[k] + (layout->has_zero ? part->zero : layout->offset)) & 0xff;

        put_integer(layout->low, pair, k % 2, value & ((1 << layout->low) - 1), low + 2 * lane * layout->low);
        if (layout->high > 0)
            put_integer(layout->high, pair, k % 2, value >> layout->low, high + 2 * lane * layout->high);
    }
}

static void put_scales(const struct block_layout *layout, const struct dtype_part *part, int number, int channel, unsigned char *group)
{
    int numbers = blocks_numbers(layout), low = blocks_low_scale(layout), high = layout->scale - low, pair = channel % 8, of_pair = numbers * 2;
    unsigned char *lows = group + blocks_scales_at(layout) + (number * BLOCKS_PAIRS + pair) * of_pair * low / 8;
    unsigned char *highs = group + blocks_high_scales_at(layout) + (number * BLOCKS_PAIRS + pair) * of_pair * high / 8;

    for (int i = 0; i < numbers; i++) {
        int value = i < layout->halves ? part->scale[i] + layout->bias : -part->least[i - layout->halves];

        put_number(low, 2 * i + channel / 8, value & ((1 << low) - 1), lows);
        if (high > 0)
            put_number(high, 2 * i + channel / 8, value >> low, highs);
    }
}

void blocks_put(const struct block_layout *layout, const struct dtype_part *part, int number, int channel, unsigned char *group)
{
    unsigned char *heads = group + blocks_heads_at(layout) + channel % 8 * 4 * blocks_head_words(layout), *head = heads + channel / 8 * 2;

    put_integers(layout, part, number, channel, group);
    put_scales(layout, part, number, channel, group);
    if (layout->is_f8) {
        memcpy(heads + channel / 8 * 4, &part->f8_scale, 4);
        return;
    }
    memcpy(head, &part->d, 2); /* the same for all parts of a block */
    if (layout->has_least)
        memcpy(head + 4, &part->m, 2);
    if (layout->has_zero)
        head[4] = (unsigned char)part->zero;
}
