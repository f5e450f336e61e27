/* A packed matrix: panels of 16 output channels, each panel one stream of memory that is read once, in order, for all rows. In a
 * panel the slices of the reduced dimension follow each other; a slice of n columns takes
 *   bf16  ceil(n / 2) x 64 bytes: 16 words, word c = (w[c][k + 1] << 16 | w[c][k]), so a shift and a mask widen two columns
 *   f16   ceil(n / 2) x 64 bytes: w[0 .. 15][k] and then w[0 .. 15][k + 1]
 *   f32   n x 64 bytes
 * with zeros for channels and columns that are not there (the column that pads an odd slice is never multiplied). */
#ifndef TANDEM_COMMON_BACKEND_CPU_MATRIX_H
#define TANDEM_COMMON_BACKEND_CPU_MATRIX_H

#include "common/backend/backend.h"

struct matrix {
    enum dtype dtype;
    int outputs;
    int columns;
    int panels; /* ceil(outputs / 16) */
    int slices;
    int bound[BACKEND_MAX_SLICES + 1]; /* slice i: columns [bound[i], bound[i + 1]) */
    size_t panel_bytes;
    unsigned char *data; /* [panels][panel_bytes] */
};

/* Bytes of one slice of a panel. */
size_t matrix_slice_bytes(enum dtype dtype, int columns);
size_t matrix_bytes(const struct matrix_source *source);
/* Takes the memory and fills in all but the data. */
enum status matrix_lay_out(const struct matrix_source *source, struct arena *arena, struct matrix **matrix);
/* Writes the panels [first, last). */
void matrix_fill(struct matrix *matrix, const struct matrix_source *source, int first, int last);

#endif
