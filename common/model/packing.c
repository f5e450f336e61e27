#include "common/model/packing.h"

#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "common/model/checkpoint_quantised.h"
#include <stdlib.h>
#include <string.h>

enum status packing_open(struct packing *packing, struct model *model, const struct model_options *options, int longest)
{
    *packing = (struct packing){.model = model, .options = options, .measuring = 1};
    packing->rows = calloc((size_t)longest, sizeof *packing->rows);
    packing->dtypes = calloc((size_t)longest, sizeof *packing->dtypes);
    packing->vector = calloc((size_t)longest, sizeof *packing->vector);
    if (packing->rows == NULL || packing->dtypes == NULL || packing->vector == NULL) {
        log_error("no memory for the list of rows of a matrix");
        return STATUS_INTERNAL;
    }
    return STATUS_OK;
}

enum status packing_begin(struct packing *packing)
{
    packing->wide = malloc(packing->wide_room * sizeof *packing->wide + 1);
    packing->made = malloc(packing->made_room + 1);
    packing->together = malloc(packing->together_room + 1);
    if (packing->wide == NULL || packing->made == NULL || packing->together == NULL) {
        log_error("no memory to widen a matrix of %zu weights, or to make one of %zu bytes", packing->wide_room, packing->made_room);
        return STATUS_INTERNAL;
    }
    if (packing->widened > 0)
        log_debug(
            "%d matrices have rows of several dtypes, or of one that the backend does not take, or their columns cut blocks: they are widened to "
            "float32",
            packing->widened);
    packing->measuring = 0;
    return STATUS_OK;
}

void packing_release(struct packing *packing)
{
    free(packing->rows);
    free(packing->dtypes);
    free(packing->vector);
    free(packing->wide);
    free(packing->made);
    free(packing->together);
}

enum status packing_find(struct packing *packing, enum family_part part, int64_t rows, int64_t columns, struct tensor *tensor)
{
    char name[FAMILY_NAME_MAX];

    family_tensor(packing->model->config.family, part, packing->layer, name);
    TRY(checkpoint_find(packing->model->checkpoint, name, rows, columns, tensor));
    if (part != FAMILY_EMBEDDING || tensor->parts.kind == QUANTISATION_NONE)
        return STATUS_OK;
    log_error("%s: tensor %s is kept as %s, expected an embedding in F32, F16 or BF16", checkpoint_path(packing->model->checkpoint), name,
              quantisation_name(tensor->parts.kind));
    return STATUS_DATA;
}

/* A row of a map in few bits, which has to be made, with its neighbours, that are mostly listed next; while measuring it is enough that there is
 * one. */
static const void *make_row(struct packing *packing, const struct tensor *tensor, int64_t row)
{
    size_t bytes = dtype_row_bytes(tensor->dtype, (size_t)tensor->columns), all = CHECKPOINT_QUANTISED_ROWS * bytes, at = packing->made_used;
    int64_t within = row % CHECKPOINT_QUANTISED_ROWS;

    packing->made_used += bytes;
    packing->together_room = all > packing->together_room ? all : packing->together_room;
    if (packing->measuring)
        return tensor->data;
    if (packing->together_of != tensor->data || packing->together_first != row - within) {
        progress_made("unpacking the weights");
        checkpoint_quantised_rows(tensor, row - within, packing->together);
        packing->together_of = tensor->data;
        packing->together_first = row - within;
    }
    return memcpy(packing->made + at, packing->together + (size_t)within * bytes, bytes);
}

void packing_list_row(struct packing *packing, int at, const struct tensor *tensor, int64_t row)
{
    packing->first = at == 0 ? tensor->data : packing->first;
    packing->rows[at] = tensor->parts.kind == QUANTISATION_NONE ? checkpoint_row(tensor, row) : make_row(packing, tensor, row);
    packing->dtypes[at] = tensor->dtype;
    packing->columns = tensor->columns;
    packing->group = tensor->parts.group > 0 ? tensor->parts.group : (int)tensor->columns;
}

/* Whether each row is in the blocks that the model is to have, or can be rounded to them. */
static int can_be_quantised(const struct packing *packing, int outputs)
{
    enum dtype to = packing->model->quantise;

    for (int i = 0; i < outputs; i++)
        if (packing->rows[i] != NULL && packing->dtypes[i] != to && dtype_bits(packing->dtypes[i]) <= dtype_bits(to))
            return 0;
    return dtype_is_quantised(to);
}

/* Whether the backend packs the source's columns of rows in this dtype. */
static int is_packed(const struct packing *packing, const struct matrix_source *source, enum dtype dtype)
{
    const struct backend_linear *linear = &packing->model->backend->linear;
    int block = (int)dtype_block(dtype), cuts = source->column_first % block != 0 || source->columns % block != 0;

    return (linear->packs >> dtype & 1) != 0 && (!cuts || linear->cuts_blocks);
}

/* The dtype that the matrix is packed in: the one that keeps all rows as they are, or float32 where there is none or the backend does not take it. */
static enum dtype packed_dtype(const struct packing *packing, const struct matrix_source *source)
{
    enum dtype common = packing->dtypes[0];

    for (int i = 1; i < source->outputs; i++)
        if (packing->rows[i] != NULL)
            common = dtype_common(common, packing->dtypes[i]);
    return is_packed(packing, source, common) ? common : DTYPE_F32;
}

/* Whether some row is not of this dtype. */
static int has_others(const struct packing *packing, int outputs, enum dtype dtype)
{
    for (int i = 0; i < outputs; i++)
        if (packing->rows[i] != NULL && packing->dtypes[i] != dtype)
            return 1;
    return 0;
}

/* Replaces the list by rows of float32 that have the matrix's own columns alone. One matrix at a time is held so. */
static void widen_rows(struct packing *packing, struct matrix_source *source)
{
    size_t columns = (size_t)source->columns;

    for (int i = 0; i < source->outputs; i++) {
        float *to = packing->wide + (size_t)i * columns;

        if (packing->rows[i] == NULL)
            continue;
        progress_made("widening the weights");
        dtype_widen_columns(packing->dtypes[i], packing->rows[i], (size_t)source->column_first, columns, to);
        packing->rows[i] = to;
    }
    source->column_first = 0;
}

/* Each row has the dtype that it is listed with. */
static void keep_dtypes(const struct packing *packing, struct matrix_source *source)
{
    source->row_dtype = packing->dtypes;
    source->row_columns = (int)packing->columns;
}

/* What the listed rows are packed in, and what has to be done to them. */
static void choose_dtype(struct packing *packing, struct matrix_source *source)
{
    size_t values = (size_t)source->outputs * (size_t)source->columns;

    if (can_be_quantised(packing, source->outputs)) {
        source->dtype = packing->model->quantise;
        keep_dtypes(packing, source);
        if (packing->measuring)
            packing->model->rounded += has_others(packing, source->outputs, source->dtype);
        return;
    }
    source->dtype = packed_dtype(packing, source);
    if (!has_others(packing, source->outputs, source->dtype))
        return;
    if (dtype_is_quantised(source->dtype)) {
        keep_dtypes(packing, source);
        return;
    }
    packing->widened++;
    packing->wide_room = values > packing->wide_room ? values : packing->wide_room;
    if (!packing->measuring)
        widen_rows(packing, source);
}

/* What is read of the files for the listed rows, which are not widened yet. */
static size_t read_bytes(const struct packing *packing, const struct matrix_source *source)
{
    size_t bits = 0;

    for (int i = 0; i < source->outputs; i++)
        bits += packing->rows[i] != NULL ? (size_t)source->columns * (size_t)dtype_bits(packing->dtypes[i]) : 0;
    return bits / 8;
}

static void tell(struct packing *packing, size_t bytes, int file)
{
    struct model_reading *reading = &packing->reading;

    reading->files = checkpoint_files(packing->model->checkpoint);
    reading->file = file + 1;
    reading->bytes += bytes;
    if (packing->options->tell != NULL)
        packing->options->tell(packing->options->tell_state, reading);
}

enum status packing_matrix(struct packing *packing, struct matrix_source *source, struct matrix **matrix)
{
    const struct backend *backend = packing->model->backend;
    size_t bytes = read_bytes(packing, source);
    int file = checkpoint_file_of(packing->model->checkpoint, packing->first);

    packing->made_room = packing->made_used > packing->made_room ? packing->made_used : packing->made_room;
    packing->made_used = 0;
    source->rows = packing->rows;
    source->group = packing->group;
    choose_dtype(packing, source);
    if (packing->measuring) {
        packing->bytes += arena_round(backend->linear.matrix_bytes(source)) + ARENA_ALIGN;
        packing->reading.total += bytes;
        return STATUS_OK;
    }
    TRY(backend->linear.matrix_pack(packing->model->context, source, &packing->model->weights, matrix));
    tell(packing, bytes, file);
    return STATUS_OK;
}

enum status packing_widen(struct packing *packing, enum family_part part, int64_t count, int64_t first, int64_t taken, float *into)
{
    struct tensor tensor;

    TRY(packing_find(packing, part, count, 1, &tensor));
    if (!packing->measuring)
        dtype_widen(tensor.dtype, checkpoint_row(&tensor, first), into, (size_t)taken);
    return STATUS_OK;
}

void packing_give(struct packing *packing, int64_t count, const float **vector)
{
    struct model *model = packing->model;
    size_t bytes = (size_t)count * sizeof(float);
    float *into;

    if (packing->measuring) {
        packing->bytes += arena_round(bytes);
        return;
    }
    into = arena_take(&model->weights, bytes);
    model->backend->memory.write(model->context, into, packing->vector, bytes);
    *vector = into;
}

enum status packing_vector(struct packing *packing, enum family_part part, int64_t count, const float **vector)
{
    TRY(packing_widen(packing, part, count, 0, count, packing->vector));
    packing_give(packing, count, vector);
    return STATUS_OK;
}
