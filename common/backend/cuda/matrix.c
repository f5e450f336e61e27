#include "common/backend/cuda/matrix.h"

#include "common/backend/cuda/blocks.h"
#include "common/base/log.h"
#include "common/base/progress.h"
#include <string.h>

enum { TILE = 16, TILE_BYTES = 512, ZEROS_COLUMNS = 128 /* of a group of BLOCKS_ZEROS */ };

static int tile_count(int columns)
{
    return (columns + TILE - 1) / TILE;
}

/* Rows of several k-quants have the one layout that all of them fit in. Of Q4_Z parts that have the same scale and zero point lie together. */
static int layout_of(const struct matrix_source *source)
{
    if (source->dtype == DTYPE_Q4_Z)
        return source->group > 0 && source->group % ZEROS_COLUMNS == 0 && source->column_first % ZEROS_COLUMNS == 0 &&
                       source->columns % ZEROS_COLUMNS == 0
                   ? BLOCKS_ZEROS
                   : DTYPE_Q4_Z;
    if (source->dtype != DTYPE_Q5_K || source->row_dtype == NULL)
        return source->dtype == DTYPE_F32 ? DTYPE_BF16 : (int)source->dtype;
    for (int o = 0; o < source->outputs; o++)
        if (source->rows[o] != NULL && source->row_dtype[o] != DTYPE_Q5_K)
            return BLOCKS_MIXED;
    return DTYPE_Q5_K;
}

static size_t panel_bytes(const struct matrix_source *source)
{
    int layout = layout_of(source);

    if (layout < BLOCKS_FIRST)
        return (size_t)tile_count(source->columns) * TILE_BYTES;
    const struct block_layout *blocks = &block_layouts[layout - BLOCKS_FIRST];

    return (size_t)source->columns / (size_t)(blocks->parts * DTYPE_BLOCK) * (size_t)blocks_group_bytes(blocks);
}

size_t cuda_matrix_bytes(const struct matrix_source *source)
{
    size_t panels = ((size_t)source->outputs + TILE - 1) / TILE;

    return arena_round(panels * panel_bytes(source));
}

enum status cuda_matrix_init(struct matrix *matrix, const struct matrix_source *source)
{
    int block = (int)dtype_block(source->dtype);

    if (source->outputs < 1 || source->columns < 1 || source->column_first < 0 || source->columns % block != 0 || source->column_first % block != 0) {
        log_error("internal: cannot pack %d outputs of %d columns from column %d", source->outputs, source->columns, source->column_first);
        return STATUS_INTERNAL;
    }
    *matrix = (struct matrix){.outputs = source->outputs,
                              .columns = source->columns,
                              .layout = layout_of(source),
                              .panels = (source->outputs + TILE - 1) / TILE,
                              .panel_bytes = panel_bytes(source)};
    return STATUS_OK;
}

/* To nearest, ties to even. */
static uint16_t rounded(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Columns [first, first + 4) of one channel, of which `count` are there. */
static void take_four(const struct matrix_source *source, const char *row, int first, uint16_t four[4])
{
    size_t bytes = dtype_bytes(source->dtype);
    int left = source->columns - first, count = left < 4 ? left : 4;
    const char *from = row + (size_t)(source->column_first + first) * bytes;
    float wide[4];

    if (source->dtype != DTYPE_F32) {
        memcpy(four, from, bytes * (size_t)count);
        return;
    }
    memcpy(wide, from, bytes * (size_t)count);
    for (int i = 0; i < count; i++)
        four[i] = rounded(wide[i]);
}

/* One channel of a panel: every fourth column begins 8 bytes of a lane, in two halves with those of channel 8 further between them. */
static void fill_channel(const struct matrix_source *source, const char *row, int channel, char *panel)
{
    for (int k = 0; k < source->columns; k += 4) {
        char *lane = panel + (size_t)(k / TILE) * TILE_BYTES + (channel % 8 * 4 + k % TILE / 4) * 16 + channel / 8 * 4;
        uint16_t four[4] = {0};

        take_four(source, row, k, four);
        memcpy(lane, four, 4);
        memcpy(lane + 8, four + 2, 4);
    }
}

/* The same of a row in blocks, of whatever dtype that its layout has room for. */
static void fill_blocks(const struct matrix *matrix, const struct matrix_source *source, int output, char *panel)
{
    const struct block_layout *layout = &block_layouts[matrix->layout - BLOCKS_FIRST];
    enum dtype dtype = source->row_dtype != NULL ? source->row_dtype[output] : source->dtype;
    int first = source->column_first / DTYPE_BLOCK;
    struct dtype_part part;

    for (int i = 0; i < matrix->columns / DTYPE_BLOCK; i++) {
        unsigned char *group = (unsigned char *)panel + (size_t)(i / layout->parts) * (size_t)blocks_group_bytes(layout);

        dtype_part_of(dtype, source->rows[output], (size_t)(first + i), &part);
        blocks_put(layout, &part, i % layout->parts, output % TILE, group);
    }
}

void cuda_matrix_fill(const struct matrix *matrix, const struct matrix_source *source, int first, int last, void *to)
{
    for (int p = first; p < last; p++) {
        char *panel = (char *)to + (size_t)(p - first) * matrix->panel_bytes;

        progress_made("packing the weights");
        memset(panel, 0, matrix->panel_bytes);
        for (int c = 0; c < TILE && p * TILE + c < source->outputs; c++) {
            int output = p * TILE + c;

            if (source->rows[output] != NULL && matrix->layout >= BLOCKS_FIRST)
                fill_blocks(matrix, source, output, panel);
            else if (source->rows[output] != NULL)
                fill_channel(source, source->rows[output], c, panel);
        }
    }
}
