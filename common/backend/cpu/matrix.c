#include "common/backend/cpu/matrix.h"

#include "common/base/log.h"
#include "common/base/progress.h"
#include <string.h>

int matrix_f8_stop(int phase, int first, int last)
{
    int stop = first + DTYPE_BLOCK_F8 - (phase + first) % DTYPE_BLOCK_F8;

    return stop < last ? stop : last;
}

/* The scales are a vector, too. */
static size_t f8_vectors(int phase, int first, int last)
{
    size_t vectors = 0;

    for (int stop; first < last; first = stop) {
        stop = matrix_f8_stop(phase, first, last);
        vectors += 1 + ((size_t)(stop - first) + 3) / 4;
    }
    return vectors;
}

size_t matrix_slice_bytes(enum dtype dtype, int phase, int first, int last)
{
    size_t columns = (size_t)(last - first);
    size_t vectors = dtype == DTYPE_F8 ? f8_vectors(phase, first, last) : dtype == DTYPE_F32 ? columns : (columns + 1) / 2;

    return vectors * 64;
}

/* As formats of blocks: bytes of the scales, of the integers, and what is added to the latter. */
static const struct packed_block {
    size_t scales, integers;
    int offset;
} packed_blocks[DTYPES] = {
    [DTYPE_Q8_0] = {32, 512, 128}, [DTYPE_Q4_0] = {32, 256, 8}, [DTYPE_Q4_1] = {64, 256, 0},  [DTYPE_Q5_1] = {64, 512, 128},
    [DTYPE_Q4_Z] = {0, 256, 0},    [DTYPE_Q4_K] = {32, 256, 0}, [DTYPE_Q5_K] = {64, 384, 32}, [DTYPE_Q6_K] = {32, 384, 32},
};

static enum dtype packed_as(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_Q5_0:
        return DTYPE_Q8_0;
    case DTYPE_Q2_K:
        return DTYPE_Q5_K;
    case DTYPE_Q3_K:
        return DTYPE_Q6_K;
    default:
        return dtype;
    }
}

static int is_k_quant(enum dtype dtype)
{
    return dtype_block(dtype) == DTYPE_BLOCK_MOST;
}

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
    return source->column_first % (source->dtype == DTYPE_F8 ? DTYPE_BLOCK_F8 : DTYPE_BLOCK);
}

static int block_count(const struct matrix_source *source)
{
    int blocks = 0;

    for (int i = 0; i < source->slices; i++)
        blocks += matrix_blocks(phase_of(source), slice_bound(source, i), slice_bound(source, i + 1));
    return blocks;
}

static int has_heads(enum dtype dtype)
{
    return is_k_quant(dtype) || dtype == DTYPE_Q4_Z;
}

/* Of the blocks whose scales lie together. */
static int head_shift(const struct matrix_source *source)
{
    int blocks = is_k_quant(source->dtype) ? DTYPE_BLOCK_MOST / DTYPE_BLOCK : source->group / DTYPE_BLOCK, shift = 0;

    while (blocks > 0 && blocks % 2 == 0) {
        blocks /= 2;
        shift++;
    }
    return shift;
}

/* Of the scales of all columns that share them with one of the source's. */
static size_t head_bytes(const struct matrix_source *source)
{
    int columns = DTYPE_BLOCK << head_shift(source), first = source->column_first / columns,
        last = (source->column_first + source->columns - 1) / columns;

    return has_heads(source->dtype) ? MATRIX_HEAD * (size_t)(last - first + 1) : 0;
}

static size_t panel_bytes(const struct matrix_source *source)
{
    size_t bytes = 0;

    if (dtype_is_quantised(source->dtype))
        return head_bytes(source) + (size_t)block_count(source) * matrix_block_bytes(packed_as(source->dtype));

    for (int i = 0; i < source->slices; i++)
        bytes += matrix_slice_bytes(source->dtype, phase_of(source), slice_bound(source, i), slice_bound(source, i + 1));
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

/* Weights of more bytes hardly stay in a cache. What a processor says of its last one is no measure: a guest of a machine is told of 320 MB, of which
 * it has what others leave. */
enum { CACHED = 64 << 20 };

/* Does a core read one stream of memory faster than several? AMD's do; others have only been measured with several (MEASURED.md). */
static int reads_one_stream(void)
{
#ifdef TANDEM_X86
    return __builtin_cpu_is("amd");
#else
    return 0;
#endif
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
        .dtype = packed_as(source->dtype),
        .outputs = source->outputs,
        .columns = source->columns,
        .panels = (int)panel_count(source),
        .slices = source->slices,
        .phase = phase_of(source),
        .blocks = dtype_is_quantised(source->dtype) ? block_count(source) : 0,
        .head_phase = source->column_first / DTYPE_BLOCK & ((1 << head_shift(source)) - 1),
        .head_shift = head_shift(source),
        .head_bytes = head_bytes(source),
        .panel_bytes = panel_bytes(source),
        .streams = arena->size > CACHED,
        .row_goes_alone = reads_one_stream(),
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
        to += matrix_slice_bytes(dtype, matrix->phase, matrix->bound[i], matrix->bound[i + 1]);
    }
}

/* `count` columns of a block from its column `within` on; returns where the next ones go.  block: [132] */
static unsigned char *fill_f8_block(const unsigned char *block, int within, int count, int channel, unsigned char *to)
{
    struct dtype_part part;
    float scale;

    dtype_part_of(DTYPE_F8, block, 0, &part);
    scale = part.f8_scale * 0x1p8f;
    memcpy(to + sizeof scale * (size_t)channel, &scale, sizeof scale);
    to += 64;
    for (int k = 0; k < count; k++)
        to[16 * k + channel] = block[sizeof scale + (size_t)(within + k)];
    return to + (size_t)(count + 3) / 4 * 64;
}

static void fill_f8(const struct matrix *matrix, const struct matrix_source *source, const unsigned char *row, int channel, unsigned char *to)
{
    for (int i = 0; i < matrix->slices; i++)
        for (int k = matrix->bound[i], stop; k < matrix->bound[i + 1]; k = stop) {
            int column = source->column_first + k, within = column % DTYPE_BLOCK_F8;

            stop = matrix_f8_stop(matrix->phase, k, matrix->bound[i + 1]);
            to = fill_f8_block(row + dtype_row_bytes(DTYPE_F8, (size_t)(column - within)), within, stop - k, channel, to);
        }
}

/* The integers of one channel of a block; the bytes of the others stay.  to: the first vector's byte of it */
static void put_bytes(const int8_t *q, int offset, unsigned char *to)
{
    for (int k = 0; k < DTYPE_BLOCK; k++)
        to[k / 4 * 64 + k % 4] = (unsigned char)(q[k] + offset);
}

static void put_halves(const int8_t *q, int offset, unsigned char *to)
{
    for (int k = 0; k < DTYPE_BLOCK / 2; k++)
        to[k / 4 * 64 + k % 4] = (unsigned char)(((q[k] + offset) & 15) | (q[k + DTYPE_BLOCK / 2] + offset) << 4);
}

/* Bits 2 g and 2 g + 1 of byte k of a vector are those above the halves of column 4 g + k. */
static void put_pairs(const int8_t *q, int offset, unsigned char *to)
{
    for (int k = 0; k < DTYPE_BLOCK; k++)
        to[k / 16 * 64 + k % 4] |= (unsigned char)((q[k] + offset) >> 4 << 2 * (k % 16 / 4));
}

/* Scales, and minima where the packed form has them.  to: the panel's block; head: where its d and m are */
static void put_scales(enum dtype dtype, const struct dtype_part *part, int channel, unsigned char *head, unsigned char *to)
{
    int has_least = dtype == DTYPE_Q4_K || dtype == DTYPE_Q5_K, halves = dtype == DTYPE_Q4_K ? 1 : 2;

    memcpy(head + 2 * channel, &part->d, 2);
    if (dtype == DTYPE_Q4_Z) {
        head[32 + channel] = (unsigned char)-part->zero;
        return;
    }
    if (!is_k_quant(dtype)) {
        if (part->has_least)
            memcpy(head + 32 + 2 * channel, &part->m, 2);
        return;
    }
    memcpy(head + 32 + 2 * channel, &part->m, 2);
    for (int h = 0; h < halves; h++) {
        unsigned char *half = to + h * (has_least ? 32 : 16) + channel;

        half[0] = (unsigned char)part->scale[h];
        if (has_least)
            half[16] = (unsigned char)part->least[h];
    }
}

/* One block of one channel. */
static void fill_block(enum dtype dtype, const struct dtype_part *part, int channel, unsigned char *head, unsigned char *to)
{
    unsigned char *integers = to + matrix_scale_bytes(dtype) + 4 * channel;
    int offset = matrix_offset(dtype) + part->zero;

    put_scales(dtype, part, channel, has_heads(dtype) ? head : to, to);
    if (packed_blocks[dtype].integers == 512) {
        put_bytes(part->q, offset, integers);
        return;
    }
    put_halves(part->q, offset, integers);
    if (packed_blocks[dtype].integers == 384)
        put_pairs(part->q, offset, integers + 256);
}

/* Block `number` of the whole of row o: as it is, or as it is made. */
static void part_of(const struct matrix_source *source, int o, int number, struct dtype_part *part)
{
    enum dtype dtype = source->row_dtype != NULL ? source->row_dtype[o] : source->dtype;
    int first = number * DTYPE_BLOCK, left = source->row_columns - first;
    unsigned char made[2 + DTYPE_BLOCK];
    float values[DTYPE_BLOCK] = {0};

    if (dtype_common(dtype, source->dtype) == source->dtype) {
        dtype_part_of(dtype, source->rows[o], (size_t)number, part);
        return;
    }
    dtype_widen_columns(dtype, source->rows[o], (size_t)first, (size_t)(left < DTYPE_BLOCK ? left : DTYPE_BLOCK), values);
    dtype_round(source->dtype, values, made);
    dtype_part_of(source->dtype, made, 0, part);
}

static void fill_blocks(const struct matrix *matrix, const struct matrix_source *source, int o, int channel, unsigned char *panel)
{
    unsigned char *to = panel + matrix->head_bytes;
    int column = source->column_first / DTYPE_BLOCK;
    struct dtype_part part;

    for (int i = 0; i < matrix->slices; i++) {
        int first = (source->column_first + matrix->bound[i]) / DTYPE_BLOCK;
        int count = matrix_blocks(matrix->phase, matrix->bound[i], matrix->bound[i + 1]);

        for (int b = first; b < first + count; b++, to += matrix_block_bytes(matrix->dtype)) {
            part_of(source, o, b, &part);
            fill_block(matrix->dtype, &part, channel, panel + matrix_head(matrix, b - column), to);
        }
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
            else if (matrix->dtype == DTYPE_F8)
                fill_f8(matrix, source, source->rows[o], c, panel);
            else
                fill_channel(matrix, (const char *)source->rows[o] + skipped, panel + (size_t)c * apart);
        }
    }
}
