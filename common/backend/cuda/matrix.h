/* A packed matrix of the device: what the host knows of it, and its data in the device's memory, laid out as kernels.h says for struct linear_launch.
 * The context owns it until it is closed; immutable once packed. Sums over the columns are cut by the kernel, for all matrices alike, so slices of
 * the source change nothing. For the files of this folder alone; filling may run on all threads of the pool, each with its own panels. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_MATRIX_H
#define TANDEM_COMMON_BACKEND_CUDA_MATRIX_H

#include "common/backend/backend.h"

/* Of the backend's row, for which memory is planned also where it is not built (sizes.c). */
enum { CUDA_PACKS = (1 << DTYPES) - 1, CUDA_PROMPT_ROWS = 512 };
#define CUDA_CACHE  DTYPE_BF16 /* where none is asked for, */
#define CUDA_CACHES (1u << DTYPE_BF16 | 1u << DTYPE_E4M3)

struct matrix {
    int outputs;
    int columns;
    int layout; /* as in struct linear_launch */
    int panels; /* of 16 outputs */
    size_t panel_bytes;
    void *data;          /* [panels][panel_bytes] */
    struct matrix *next; /* of those of one context, which frees them */
};

/* Those of the file, where weights in blocks are whole. */
size_t cuda_matrix_bytes(const struct matrix_source *source);
/* Fills in all but data and next. STATUS_INTERNAL for a source that is not sound, or that cuts a block. */
enum status cuda_matrix_init(struct matrix *matrix, const struct matrix_source *source);
/* Packs the panels [first, last) into the host's memory. Weights of f32 are rounded to bfloat16, those in blocks stay as they are.
 * to: [last - first][panel_bytes] */
void cuda_matrix_fill(const struct matrix *matrix, const struct matrix_source *source, int first, int last, void *to);

#endif
