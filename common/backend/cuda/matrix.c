#include "common/backend/cuda/matrix.h"

#include "common/base/log.h"
#include "common/base/progress.h"
#include <string.h>

enum { TILE = 16, TILE_BYTES = 512 };

static int tile_count(int columns)
{
    return (columns + TILE - 1) / TILE;
}

size_t cuda_matrix_bytes(const struct matrix_source *source)
{
    size_t panels = ((size_t)source->outputs + TILE - 1) / TILE;

    return arena_round(panels * (size_t)tile_count(source->columns) * TILE_BYTES);
}

enum status cuda_matrix_init(struct matrix *matrix, const struct matrix_source *source)
{
    if (source->outputs < 1 || source->columns < 1 || source->column_first < 0) {
        log_error("internal: cannot pack %d outputs of %d columns from column %d", source->outputs, source->columns, source->column_first);
        return STATUS_INTERNAL;
    }
    *matrix = (struct matrix){.outputs = source->outputs,
                              .columns = source->columns,
                              .is_f16 = source->dtype == DTYPE_F16,
                              .panels = (source->outputs + TILE - 1) / TILE,
                              .panel_bytes = (size_t)tile_count(source->columns) * TILE_BYTES};
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

void cuda_matrix_fill(const struct matrix *matrix, const struct matrix_source *source, int first, int last, void *to)
{
    for (int p = first; p < last; p++) {
        char *panel = (char *)to + (size_t)(p - first) * matrix->panel_bytes;

        progress_made("packing the weights");
        memset(panel, 0, matrix->panel_bytes);
        for (int c = 0; c < TILE && p * TILE + c < source->outputs; c++)
            if (source->rows[p * TILE + c] != NULL)
                fill_channel(source, source->rows[p * TILE + c], c, panel);
    }
}
