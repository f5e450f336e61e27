#include "common/backend/cpu/matrix.h"

#include "common/base/log.h"
#include "common/base/progress.h"
#include <string.h>

size_t matrix_slice_bytes(enum dtype dtype, int columns)
{
    size_t vectors = dtype == DTYPE_F32 ? (size_t)columns : ((size_t)columns + 1) / 2;

    return vectors * 64;
}

/* As formats of blocks: bytes of the scales, of the integers, and what is added to the latter. */
static const struct packed_block {
    size_t scales, integers;
    int offset;
} packed_blocks[DTYPES] = {
    [DTYPE_Q8_0] = {32, 512, 128},
    [DTYPE_Q4_0] = {32, 256, 8},
    [DTYPE_Q4_1] = {64, 256, 0},
};

size_t matrix_block_bytes(enum dtype dtype)
{
    return packed_blocks[dtype].scales + packed_blocks[dtype].integers;
}

size_t matrix_scale_bytes(enum dtype dtype)
{
    return packed_blocks[dtype].scales;
}

int matrix_offset(enum dtype dtype)
{
    return packed_blocks[dtype].offset;
}

int matrix_blocks(int phase, int first, int last)
{
    return first == last ? 0 : (phase + last + DTYPE_BLOCK - 1) / DTYPE_BLOCK - (phase + first) / DTYPE_BLOCK;
}

int matrix_most_blocks(int columns)
{
    return columns / DTYPE_BLOCK + 1 + BACKEND_MAX_SLICES;
}

static int slice_bound(const struct matrix_source *source, int i)
{
    if (source->slice_bounds != NULL)
        return source->slice_bounds[i];
    return i == 0 ? 0 : source->columns;
}

static int phase_of(const struct matrix_source *source)
{
    return source->column_first % DTYPE_BLOCK;
}

static int block_count(const struct matrix_source *source)
{
    int blocks = 0;

    for (int i = 0; i < source->slices; i++)
        blocks += matrix_blocks(phase_of(source), slice_bound(source, i), slice_bound(source, i + 1));
    return blocks;
}

static size_t panel_bytes(const struct matrix_source *source)
{
    size_t bytes = 0;

    if (dtype_is_quantised(source->dtype))
        return (size_t)block_count(source) * matrix_block_bytes(source->dtype);

    for (int i = 0; i < source->slices; i++)
        bytes += matrix_slice_bytes(source->dtype, slice_bound(source, i + 1) - slice_bound(source, i));
    return bytes;
}

static size_t panel_count(const struct matrix_source *source)
{
    return ((size_t)source->outputs + BACKEND_PANEL - 1) / BACKEND_PANEL;
}

size_t matrix_bytes(const struct matrix_source *source)
{
    return arena_round(sizeof(struct matrix)) + arena_round(panel_count(source) * panel_bytes(source));
}

static int source_is_sound(const struct matrix_source *source)
{
    if (source->outputs < 1 || source->columns < 1 || source->slices < 1 || source->slices > BACKEND_MAX_SLICES)
        return 0;
    if (source->slices > 1 && source->slice_bounds == NULL)
        return 0;
    for (int i = 0; i < source->slices; i++)
        if (slice_bound(source, i + 1) < slice_bound(source, i))
            return 0;
    return slice_bound(source, 0) == 0 && slice_bound(source, source->slices) == source->columns;
}

enum status matrix_lay_out(const struct matrix_source *source, struct arena *arena, struct matrix **matrix)
{
    struct matrix *new;

    if (!source_is_sound(source)) {
        log_error("internal: cannot pack %d outputs of %d columns in %d slices", source->outputs, source->columns, source->slices);
        return STATUS_INTERNAL;
    }
    new = arena_take(arena, sizeof *new);
    *new = (struct matrix){
        .dtype = source->dtype,
        .outputs = source->outputs,
        .columns = source->columns,
        .panels = (int)panel_count(source),
        .slices = source->slices,
        .phase = phase_of(source),
        .blocks = dtype_is_quantised(source->dtype) ? block_count(source) : 0,
        .panel_bytes = panel_bytes(source),
    };
    for (int i = 0; i <= source->slices; i++)
        new->bound[i] = slice_bound(source, i);
    new->data = arena_take(arena, (size_t) new->panels *new->panel_bytes);
    *matrix = new;
    return STATUS_OK;
}

/* The address of weight k of a slice for channel 0, and the stride between channels. */
static size_t weight_offset(enum dtype dtype, size_t k)
{
    switch (dtype) {
    case DTYPE_BF16:
        return k / 2 * 64 + k % 2 * 2;
    case DTYPE_F16:
        return k * 32;
    default:
        return k * 64;
    }
}

static void fill_channel(const struct matrix *matrix, const char *from, unsigned char *to)
{
    enum dtype dtype = matrix->dtype;
    size_t bytes = dtype_bytes(dtype);

    for (int i = 0; i < matrix->slices; i++) {
        int columns = matrix->bound[i + 1] - matrix->bound[i];
        const char *slice = from + (size_t)matrix->bound[i] * bytes;

        if (bytes == 2)
            for (int k = 0; k < columns; k++)
                memcpy(to + weight_offset(dtype, (size_t)k), slice + 2 * (size_t)k, 2);
        else
            for (int k = 0; k < columns; k++)
                memcpy(to + 64 * (size_t)k, slice + 4 * (size_t)k, 4);
        to += matrix_slice_bytes(dtype, columns);
    }
}

/* One block of one channel.  to: the panel's block */
static void fill_block(enum dtype dtype, const unsigned char *from, int channel, unsigned char *to)
{
    unsigned char *bytes = to + matrix_scale_bytes(dtype) + 4 * channel;

    memcpy(to + 2 * channel, from, 2);
    if (dtype == DTYPE_Q8_0) {
        for (int k = 0; k < DTYPE_BLOCK; k++)
            bytes[k / 4 * 64 + k % 4] = from[2 + k] ^ 0x80; /* + 128 */
        return;
    }
    if (dtype == DTYPE_Q4_1)
        memcpy(to + 32 + 2 * channel, from + 2, 2);
    from += dtype_row_bytes(dtype, DTYPE_BLOCK) - DTYPE_BLOCK / 2;
    for (int k = 0; k < DTYPE_BLOCK / 2; k++) /* halves of bytes stay together */
        bytes[k / 4 * 64 + k % 4] = from[k];
}

/* Block `number` of the whole of row o: where it lies, or as it is made.  made: [dtype_row_bytes of a block] */
static const unsigned char *block_of(const struct matrix_source *source, int o, int number, unsigned char *made)
{
    enum dtype dtype = source->row_dtype != NULL ? source->row_dtype[o] : source->dtype;
    int first = number * DTYPE_BLOCK, left = source->row_columns - first;
    float values[DTYPE_BLOCK] = {0};

    if (dtype == source->dtype)
        return (const unsigned char *)source->rows[o] + (size_t)number * dtype_row_bytes(dtype, DTYPE_BLOCK);
    dtype_widen_columns(dtype, source->rows[o], (size_t)first, (size_t)(left < DTYPE_BLOCK ? left : DTYPE_BLOCK), values);
    dtype_round(source->dtype, values, made);
    return made;
}

static void fill_blocks(const struct matrix *matrix, const struct matrix_source *source, int o, int channel, unsigned char *to)
{
    unsigned char made[2 + DTYPE_BLOCK];

    for (int i = 0; i < matrix->slices; i++) {
        int first = (source->column_first + matrix->bound[i]) / DTYPE_BLOCK;
        int count = matrix_blocks(matrix->phase, matrix->bound[i], matrix->bound[i + 1]);

        for (int b = 0; b < count; b++, to += matrix_block_bytes(matrix->dtype))
            fill_block(matrix->dtype, block_of(source, o, first + b, made), channel, to);
    }
}

void matrix_fill(struct matrix *matrix, const struct matrix_source *source, int first, int last)
{
    size_t apart = matrix->dtype == DTYPE_F16 ? 2 : 4, skipped = (size_t)source->column_first * dtype_bytes(matrix->dtype);

    for (int p = first; p < last; p++) {
        unsigned char *panel = matrix->data + (size_t)p * matrix->panel_bytes;

        progress_made("packing the weights");
        memset(panel, 0, matrix->panel_bytes);
        for (int c = 0; c < BACKEND_PANEL && p * BACKEND_PANEL + c < source->outputs; c++) {
            int o = p * BACKEND_PANEL + c;

            if (source->rows[o] == NULL)
                continue;
            if (dtype_is_quantised(matrix->dtype))
                fill_blocks(matrix, source, o, c, panel);
            else
                fill_channel(matrix, (const char *)source->rows[o] + skipped, panel + (size_t)c * apart);
        }
    }
}
