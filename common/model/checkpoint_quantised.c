#include "common/model/checkpoint_quantised.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    NIBBLES = CHECKPOINT_QUANTISED_ROWS, /* in a word */
    SHAPE_TEXT = 200,
};

const char *const checkpoint_quantised_endings[CHECKPOINT_QUANTISED_PARTS + 1] = {
    [CHECKPOINT_QUANTISED_WORDS] = ".qweight",
    [CHECKPOINT_QUANTISED_ZEROS] = ".qzeros",
    [CHECKPOINT_QUANTISED_SCALES] = ".scales",
    [CHECKPOINT_QUANTISED_GROUPS] = ".g_idx",
    [CHECKPOINT_QUANTISED_INVERSE_SCALE] = ".weight_scale_inv",
    [CHECKPOINT_QUANTISED_SCALE] = ".weight_scale",
    [CHECKPOINT_QUANTISED_SHAPE] = ".weight_shape",
};

/* Where AWQ keeps the columns of a word. */
static const int awq_place[NIBBLES] = {0, 4, 1, 5, 2, 6, 3, 7};

static uint32_t word_at(const unsigned char *words, int64_t at)
{
    const unsigned char *bytes = words + 4 * at;

    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Of [..][outputs / 8] words: the nibble of this output. */
static int nibble_of_output(const struct quantised_parts *parts, const unsigned char *words, int64_t line, int64_t outputs, int64_t output)
{
    int within = (int)(output % NIBBLES), place = parts->kind == QUANTISATION_AWQ ? awq_place[within] : within;

    return (int)(word_at(words, line * (outputs / NIBBLES) + output / NIBBLES) >> 4 * place & 15);
}

/* GPTQ's first version stores 0 as -1, of which 15 is left. */
static int zero_of(const struct tensor *tensor, int64_t group, int64_t row)
{
    return (nibble_of_output(&tensor->parts, tensor->parts.zeros, group, tensor->rows, row) + tensor->parts.zero_added) & 15;
}

/* The numbers of DTYPE_BLOCK columns of the rows that share a word, as they are stored.  q: [NIBBLES][DTYPE_BLOCK] */
static void read_numbers(const struct tensor *tensor, int64_t first_row, int64_t first, int (*q)[DTYPE_BLOCK])
{
    if (tensor->parts.kind == QUANTISATION_AWQ) {
        for (int k = 0; k < DTYPE_BLOCK; k++) {
            uint32_t word = word_at(tensor->data, ((first + k) * tensor->rows + first_row) / NIBBLES);

            for (int r = 0; r < NIBBLES; r++)
                q[r][k] = (int)(word >> 4 * awq_place[r] & 15);
        }
        return;
    }
    for (int k = 0; k < DTYPE_BLOCK; k += NIBBLES)
        for (int r = 0; r < NIBBLES; r++) {
            uint32_t word = word_at(tensor->data, (first + k) / NIBBLES * tensor->rows + first_row + r);

            for (int i = 0; i < NIBBLES; i++)
                q[r][k + i] = (int)(word >> 4 * i & 15);
        }
}

/* One block of DTYPE_Q4_Z. */
static void make_block(const struct tensor *tensor, int64_t row, int64_t first, const int *numbers, unsigned char *block)
{
    int64_t group = tensor->parts.group > 0 ? first / tensor->parts.group : 0;

    memcpy(block, tensor->parts.scales + 2 * (group * tensor->rows + row), 2);
    block[2] = (unsigned char)zero_of(tensor, group, row);
    for (int k = 0; k < DTYPE_BLOCK / 2; k++)
        block[3 + k] = (unsigned char)(numbers[k] | numbers[k + DTYPE_BLOCK / 2] << 4);
}

static void make_4_bits(const struct tensor *tensor, int64_t first_row, unsigned char *to)
{
    size_t row_bytes = dtype_row_bytes(tensor->dtype, (size_t)tensor->columns);
    int q[NIBBLES][DTYPE_BLOCK];

    for (int64_t first = 0; first < tensor->columns; first += DTYPE_BLOCK) {
        read_numbers(tensor, first_row, first, q);
        for (int r = 0; r < NIBBLES; r++)
            make_block(tensor, first_row + r, first, q[r], to + (size_t)r * row_bytes + dtype_row_bytes(tensor->dtype, (size_t)first));
    }
}

/* E4M3: no infinities, NaN is all ones. Its bits are those of a float32 of another bias. */
static float widen_fp8(unsigned char byte)
{
    uint32_t bits = (uint32_t)(byte & 0x7f) << 20;
    float size;

    if ((byte & 0x7f) == 0x7f)
        return NAN;
    memcpy(&size, &bits, sizeof size);
    size *= 0x1p120f;
    return byte & 0x80 ? -size : size;
}

/* To the nearest, ties to even. */
static uint16_t narrow_bf16(float value)
{
    uint32_t bits;

    if (value != value)
        return 0x7fc0;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float scale_of(const struct quantised_parts *parts, int64_t row, int64_t column)
{
    int64_t at = row / parts->scale_rows * parts->scale_stride + column / parts->scale_columns;
    float scale;

    dtype_widen(parts->scale_dtype, parts->scales + (size_t)at * dtype_bytes(parts->scale_dtype), &scale, 1);
    return scale;
}

/* As the file has it, with the scale of each block in front of it. */
static void make_f8_row(const struct tensor *tensor, int64_t row, unsigned char *to)
{
    const unsigned char *from = (const unsigned char *)tensor->data + row * tensor->columns;

    for (int64_t i = 0; i < tensor->columns; i += DTYPE_BLOCK_F8) {
        float scale = scale_of(&tensor->parts, row, i);

        memcpy(to, &scale, sizeof scale);
        memcpy(to + sizeof scale, from + i, DTYPE_BLOCK_F8);
        to += dtype_row_bytes(DTYPE_F8, DTYPE_BLOCK_F8);
    }
}

static void make_rounded_row(const struct tensor *tensor, int64_t row, unsigned char *to)
{
    const unsigned char *from = (const unsigned char *)tensor->data + row * tensor->columns;
    float scale = 0;

    for (int64_t i = 0; i < tensor->columns; i++) {
        uint16_t half;

        if (i % tensor->parts.scale_columns == 0)
            scale = scale_of(&tensor->parts, row, i);
        half = narrow_bf16(widen_fp8(from[i]) * scale);
        memcpy(to + 2 * i, &half, sizeof half);
    }
}

void checkpoint_quantised_rows(const struct tensor *tensor, int64_t first, void *to)
{
    if (tensor->parts.kind != QUANTISATION_FP8) {
        make_4_bits(tensor, first, to);
        return;
    }
    for (int64_t row = first; row < first + CHECKPOINT_QUANTISED_ROWS && row < tensor->rows; row++) {
        unsigned char *at = (unsigned char *)to + (size_t)(row - first) * dtype_row_bytes(tensor->dtype, (size_t)tensor->columns);

        if (tensor->dtype == DTYPE_F8)
            make_f8_row(tensor, row, at);
        else
            make_rounded_row(tensor, row, at);
    }
}

/* A tensor of the map of this plain name; NULL: there is none. */
static const struct checkpoint_entry *part_of(const struct checkpoint_table *table, const char *name, enum checkpoint_quantised_part part)
{
    static const char plain[] = ".weight";
    size_t length = strlen(name), tail = sizeof plain - 1;
    char other[CHECKPOINT_NAME_MAX + 32];

    if (length < tail || strcmp(name + length - tail, plain) != 0)
        return NULL;
    snprintf(other, sizeof other, "%.*s%s", (int)(length - tail), name, checkpoint_quantised_endings[part]);
    return checkpoint_table_find(table, other);
}

/* [8, 64], as a line shows what was found. */
static const char *shape_of(const struct checkpoint_entry *entry, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");

    for (int i = 0; i < entry->dims && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, i == 0 ? "%lld" : ", %lld", (long long)entry->shape[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
    return text;
}

/* Refuses a part that is missing (NULL), or not of this dtype and shape. `beside`: another part of the map, in whose file it is missed. */
static enum status part_check(const struct checkpoint_entry *entry, const struct checkpoint_entry *beside, enum checkpoint_quantised_part part,
                              const char *dtype, int64_t rows, int64_t columns)
{
    char shape[SHAPE_TEXT];

    if (entry == NULL) {
        log_error("%s: tensor %s has no %s beside it", beside->file, beside->name, checkpoint_quantised_endings[part]);
        return STATUS_DATA;
    }
    if (strcmp(entry->dtype, dtype) == 0 && entry->dims == 2 && entry->shape[0] == rows && entry->shape[1] == columns)
        return STATUS_OK;
    log_error("%s: tensor %s is %s %s, expected %s [%lld, %lld]", entry->file, entry->name, entry->dtype, shape_of(entry, shape, sizeof shape), dtype,
              (long long)rows, (long long)columns);
    return STATUS_DATA;
}

/* In which group each column is (GPTQ): those that were sorted by their weight for the result (desc_act) are not next to each other. */
static enum status order_check(const struct checkpoint_entry *entry, const struct checkpoint_entry *words, int is_sorted, int64_t columns,
                               int64_t group)
{
    if (entry == NULL && is_sorted) {
        log_error("%s: tensor %s has no .g_idx beside it, which desc_act promises", words->file, words->name);
        return STATUS_DATA;
    }
    if (entry == NULL)
        return STATUS_OK;
    if (strcmp(entry->dtype, "I32") != 0 || entry->dims != 1 || entry->shape[0] != columns) {
        log_error("%s: tensor %s is no list of %lld numbers of I32", entry->file, entry->name, (long long)columns);
        return STATUS_DATA;
    }
    for (int64_t i = 0; i < columns; i++)
        if (word_at(entry->data, i) != (uint32_t)(i / group)) {
            log_error("%s: tensor %s has column %lld in group %u, expected %lld: desc_act is not supported", entry->file, entry->name, (long long)i,
                      word_at(entry->data, i), (long long)(i / group));
            return STATUS_DATA;
        }
    return STATUS_OK;
}

static enum status find_4_bits(const struct checkpoint_table *table, const struct quantisation *quantisation, const char *name, struct tensor *tensor)
{
    const struct checkpoint_entry *words = part_of(table, name, CHECKPOINT_QUANTISED_WORDS);
    const struct checkpoint_entry *zeros = part_of(table, name, CHECKPOINT_QUANTISED_ZEROS);
    const struct checkpoint_entry *scales = part_of(table, name, CHECKPOINT_QUANTISED_SCALES);
    int64_t rows = tensor->rows, columns = tensor->columns, group = quantisation->group > 0 ? quantisation->group : columns, groups = columns / group;
    int is_awq = quantisation->kind == QUANTISATION_AWQ;

    if (columns % group != 0 || columns % DTYPE_BLOCK != 0 || rows % NIBBLES != 0) {
        log_error("%s: tensor %s of a map of %lld x %lld does not divide into groups of %lld columns, whole blocks of %d, and words of %d rows",
                  words->file, words->name, (long long)rows, (long long)columns, (long long)group, DTYPE_BLOCK, NIBBLES);
        return STATUS_DATA;
    }
    TRY(part_check(words, words, CHECKPOINT_QUANTISED_WORDS, "I32", is_awq ? columns : columns / NIBBLES, is_awq ? rows / NIBBLES : rows));
    TRY(part_check(zeros, words, CHECKPOINT_QUANTISED_ZEROS, "I32", groups, rows / NIBBLES));
    TRY(part_check(scales, words, CHECKPOINT_QUANTISED_SCALES, "F16", groups, rows));
    if (!is_awq)
        TRY(order_check(part_of(table, name, CHECKPOINT_QUANTISED_GROUPS), words, quantisation->is_sorted, columns, group));
    tensor->data = words->data;
    tensor->parts = (struct quantised_parts){.kind = quantisation->kind,
                                             .zeros = zeros->data,
                                             .scales = scales->data,
                                             .group = (int)(quantisation->group > 0 ? group : 0),
                                             .zero_added = quantisation->zero_added};
    tensor->dtype = DTYPE_Q4_Z;
    return STATUS_OK;
}

static int scale_dtype_of(const struct checkpoint_entry *scale, enum dtype *dtype)
{
    for (enum dtype known = DTYPE_F32; known <= DTYPE_BF16; known++)
        if (strcmp(dtype_name(known), scale->dtype) == 0) {
            *dtype = known;
            return 1;
        }
    return 0;
}

static int64_t parts_in(int64_t count, int each)
{
    return each > 0 ? (count + each - 1) / each : -1;
}

/* How the scale's own shape says that it is shared: by all, by a row, by a block. */
static int scale_is_shared(const struct checkpoint_entry *scale, const struct quantisation *quantisation, const struct tensor *tensor,
                           struct quantised_parts *parts)
{
    int64_t first = scale->dims > 0 ? scale->shape[0] : 1, second = scale->dims > 1 ? scale->shape[1] : 1;

    if (scale->dims > 2)
        return 0;
    parts->scale_columns = tensor->columns;
    parts->scale_rows = first == 1 && second == 1 ? tensor->rows : 1;
    parts->scale_stride = 1;
    if (second == 1 && (first == 1 || first == tensor->rows))
        return 1;
    parts->scale_rows = quantisation->block[0];
    parts->scale_columns = quantisation->block[1];
    parts->scale_stride = second;
    return quantisation->block[0] > 0 && first == parts_in(tensor->rows, quantisation->block[0]) &&
           second == parts_in(tensor->columns, quantisation->block[1]);
}

/* Whether rows are blocks of which each has one scale. */
static int has_f8_blocks(const struct tensor *tensor)
{
    int64_t shared = tensor->parts.scale_columns;

    return tensor->columns % DTYPE_BLOCK_F8 == 0 && (shared >= tensor->columns || shared % DTYPE_BLOCK_F8 == 0);
}

static enum status find_fp8(const struct checkpoint_table *table, const struct quantisation *quantisation, const struct checkpoint_entry *entry,
                            struct tensor *tensor)
{
    const struct checkpoint_entry *scale = part_of(table, entry->name, CHECKPOINT_QUANTISED_INVERSE_SCALE);
    char shape[SHAPE_TEXT], blocks[64] = "";

    scale = scale != NULL ? scale : part_of(table, entry->name, CHECKPOINT_QUANTISED_SCALE);
    if (scale == NULL) {
        log_error("%s: tensor %s is %s, and there is no .weight_scale_inv or .weight_scale for it", entry->file, entry->name, entry->dtype);
        return STATUS_DATA;
    }
    if (entry->dims != 2 || entry->shape[0] != tensor->rows || entry->shape[1] != tensor->columns)
        return part_check(entry, entry, CHECKPOINT_QUANTISED_PARTS, entry->dtype, tensor->rows, tensor->columns);
    tensor->data = entry->data;
    tensor->parts = (struct quantised_parts){.kind = QUANTISATION_FP8, .scales = scale->data};
    if (scale_dtype_of(scale, &tensor->parts.scale_dtype) && scale_is_shared(scale, quantisation, tensor, &tensor->parts)) {
        tensor->dtype = has_f8_blocks(tensor) ? DTYPE_F8 : DTYPE_BF16;
        return STATUS_OK;
    }
    if (quantisation->block[0] > 0)
        snprintf(blocks, sizeof blocks, ", or one for each block of %d x %d", quantisation->block[0], quantisation->block[1]);
    log_error("%s: tensor %s is %s %s, expected F32, F16 or BF16, of one number or one for each of %lld rows%s", scale->file, scale->name,
              scale->dtype, shape_of(scale, shape, sizeof shape), (long long)tensor->rows, blocks);
    return STATUS_DATA;
}

static enum status kind_refuse(const struct checkpoint_entry *entry, const struct quantisation *quantisation)
{
    log_error("%s: tensor %s is %s, and the quantization_config of config.json says %s", entry->file, entry->name, entry->dtype,
              quantisation_name(quantisation->kind));
    return STATUS_DATA;
}

enum status checkpoint_quantised_find(const struct checkpoint_table *table, const struct quantisation *quantisation, const char *name, int64_t rows,
                                      int64_t columns, struct tensor *tensor, int *found)
{
    const struct checkpoint_entry *plain = checkpoint_table_find(table, name), *words = part_of(table, name, CHECKPOINT_QUANTISED_WORDS);
    struct tensor map = {.rows = rows, .columns = columns};
    int is_fp8 = plain != NULL && strcmp(plain->dtype, "F8_E4M3") == 0;

    *found = columns > 1 && (is_fp8 || words != NULL);
    if (!*found)
        return STATUS_OK;
    if (plain != NULL && words != NULL) {
        log_error("%s: both %s and %s are there, expected one of them", words->file, plain->name, words->name);
        return STATUS_DATA;
    }
    if (is_fp8 && quantisation->kind == QUANTISATION_FP8)
        TRY(find_fp8(table, quantisation, plain, &map));
    else if (!is_fp8 && (quantisation->kind == QUANTISATION_AWQ || quantisation->kind == QUANTISATION_GPTQ))
        TRY(find_4_bits(table, quantisation, name, &map));
    else
        return kind_refuse(is_fp8 ? plain : words, quantisation);
    *tensor = map;
    return STATUS_OK;
}
