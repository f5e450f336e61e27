/* A checkpoint is a model's tensors on disk: safetensors (one file, or shards with an index), GGUF, or a llama2.c .bin. It owns the mapped files and
 * the table of tensors. Reading a tensor's rows touches only their pages, so a rank reads its own shard and no more. Invariant: after open every
 * tensor lies within its file; everything in the file is untrusted: sizes are multiplied with overflow checks, offsets must tile the data exactly,
 * names and counts are bounded. Local; immutable after open. */
#ifndef TANDEM_COMMON_MODEL_CHECKPOINT_H
#define TANDEM_COMMON_MODEL_CHECKPOINT_H

#include "common/backend/backend.h"
#include "common/base/status.h"
#include "common/model/config.h"

struct checkpoint;

/* The other tensors of a linear map in few bits (checkpoint_quantised.h). */
struct quantised_parts {
    enum quantisation_kind kind;
    const unsigned char *zeros, *scales;
    int group; /* columns that share a scale; 0: all */
    int zero_added;
    enum dtype scale_dtype;                          /* FP8: of the scales, which so many rows and columns share; */
    int64_t scale_rows, scale_columns, scale_stride; /* and the next ones lie so far behind them */
};

/* A tensor as it lies in the file: row-major, any alignment, valid until the checkpoint is closed. A vector has rows = its length,
 * columns = 1. One in few bits has no rows there: checkpoint_quantised_rows makes them. */
struct tensor {
    const void *data;
    enum dtype dtype;
    int64_t rows;
    int64_t columns;
    struct quantised_parts parts; /* kind QUANTISATION_NONE: it has rows */
};

/* Opens the checkpoint that belongs to `config` at `path` (folder, .gguf or .bin). STATUS_NOINPUT, STATUS_DATA: the line names file and tensor. */
enum status checkpoint_open(const char *path, const struct config *config, struct checkpoint **checkpoint);
void checkpoint_close(struct checkpoint *checkpoint);

/* Finds a tensor by its Hugging Face name ("model.layers.0.self_attn.q_proj.weight"; the other formats answer to the same names) and
 * checks its shape; columns = 1 for a vector. STATUS_DATA, naming the tensor, when missing or of another shape or an unusable dtype. */
enum status checkpoint_find(const struct checkpoint *checkpoint, const char *name, int64_t rows, int64_t columns,
                            struct tensor *tensor);
int checkpoint_has(const struct checkpoint *checkpoint, const char *name);
/* Warns of tensors that a model of the config it was opened with does not take, though they would change its numbers: biases that the config does
 * not announce, layers above its number. */
void checkpoint_warn_unread(const struct checkpoint *checkpoint);

/* What was opened. */
const char *checkpoint_path(const struct checkpoint *checkpoint);
int checkpoint_files(const struct checkpoint *checkpoint);
/* In which of them, from 0, a tensor's data or row lies. */
int checkpoint_file_of(const struct checkpoint *checkpoint, const void *data);

/* Start of row `row`. */
const void *checkpoint_row(const struct tensor *tensor, int64_t row);

#endif
