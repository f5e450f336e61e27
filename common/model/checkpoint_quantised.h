/* Linear maps as AWQ, GPTQ and FP8 keep them: several tensors for each, packed across rows. A row is made of them as it is asked for: 4 bits become
 * Q4_Z, with the same values (q - z) s and no rounding; FP8 becomes F8, whose blocks of 128 columns have the scale beside them, or, where that is
 * not one scale, BF16: value times scale, rounded once. Owns nothing; the tensors are the checkpoint's.
 * Invariant: what was found has the sizes that its rows are made with. For the checkpoint and packing.c. */
#ifndef TANDEM_COMMON_MODEL_CHECKPOINT_QUANTISED_H
#define TANDEM_COMMON_MODEL_CHECKPOINT_QUANTISED_H

#include "common/model/checkpoint.h"
#include "common/model/checkpoint_table.h"

enum { CHECKPOINT_QUANTISED_ROWS = 8 };

/* The tensors of a map: what their names have in the place of ".weight". */
enum checkpoint_quantised_part {
    CHECKPOINT_QUANTISED_WORDS,
    CHECKPOINT_QUANTISED_ZEROS,
    CHECKPOINT_QUANTISED_SCALES,
    CHECKPOINT_QUANTISED_GROUPS,
    CHECKPOINT_QUANTISED_INVERSE_SCALE,
    CHECKPOINT_QUANTISED_SCALE,
    CHECKPOINT_QUANTISED_SHAPE, /* which nothing reads: the other parts have it */
    CHECKPOINT_QUANTISED_PARTS, /* how many, or the map itself */
};
extern const char *const checkpoint_quantised_endings[CHECKPOINT_QUANTISED_PARTS + 1]; /* NULL behind the last */

/* Looks for the tensors of the linear map whose plain name is NAME.weight. *found: they are there, and *tensor is the map; its data are no rows.
 * STATUS_DATA where they are there and do not fit each other or the quantisation, with a line that names the tensor. */
enum status checkpoint_quantised_find(const struct checkpoint_table *table, const struct quantisation *quantisation, const char *name, int64_t rows,
                                      int64_t columns, struct tensor *tensor, int *found);
/* Rows [first, first + CHECKPOINT_QUANTISED_ROWS), as far as there are so many; first is a multiple of that, because such rows share words.
 * to: [CHECKPOINT_QUANTISED_ROWS][dtype_row_bytes], in the tensor's dtype */
void checkpoint_quantised_rows(const struct tensor *tensor, int64_t first, void *to);

#endif
