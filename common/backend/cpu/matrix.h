/* A packed matrix: panels of 16 output channels, each panel one stream of memory that is read once, in order, for all rows. In a
 * panel the slices of the reduced dimension follow each other; a slice of n columns takes
 *   bf16  ceil(n / 2) x 64 bytes: 16 words, word c = (w[c][k + 1] << 16 | w[c][k]), so a shift and a mask widen two columns
 *   f16   ceil(n / 2) x 64 bytes: w[0 .. 15][k] and then w[0 .. 15][k + 1]
 *   f32   n x 64 bytes
 *   f8    for each block of 128 columns of the file that it touches: 16 float32, the scales times 2^8 (vec_widen_e4m3), and then
 *         ceil(n / 4) x 64 bytes for the n columns of it, 16 bytes each: w[0 .. 15][k]
 * with zeros for channels and columns that are not there (the column that pads an odd slice is never multiplied).
 *
 * A quantised slice holds the file's blocks of 32 columns that it touches, each whole, also where the slice begins or ends within one: what is
 * multiplied with columns of another slice is 0. A block is
 *   scales 16 f16, and for Q4_1 16 f16 of minima
 *   Q8_0   8 x 64 bytes: vector g has bytes q + 128 of columns 4 g .. 4 g + 3, channel by channel
 *   Q4_x   4 x 64 bytes: vector g has the q of columns 4 g .. in the low halves of bytes and those of 16 + 4 g .. in the high ones
 * so bytes are the unsigned factor of a product of bytes (vpdpbusd), and the activations the signed one. Q5_0 is packed as Q8_0, and Q5_1 as that
 * with minima.
 *
 * Of k-quants the panel begins with 16 d and 16 m, f16, of each 256 columns that it touches. A block is then
 *   Q4_K         16 scales and 16 minima of a byte each, then halves of bytes as above
 *   Q6_K, Q3_K   16 scales of the first 16 columns, 16 of the others; the lower halves of q + 32 as above; and 2 x 64 bytes: vector h has the upper
 *                pairs of bits of columns 16 h .. in the order of bits, four of each byte's group
 *   Q5_K, Q2_K   as Q6_K, with minima behind each 16 scales; also where rows are of several k-quants
 *
 * Of Q4_Z it begins with 16 d, f16, and 16 zero points, bytes with the sign turned, of each so many columns (`group`, or as many of it as are a power
 * of two times 32) that it touches, 64 bytes with what fills them. A block is halves of bytes alone. */
#ifndef TANDEM_COMMON_BACKEND_CPU_MATRIX_H
#define TANDEM_COMMON_BACKEND_CPU_MATRIX_H

#include "common/backend/backend.h"

enum { MATRIX_HEAD = 64 };

struct matrix {
    enum dtype dtype; /* as which it is packed */
    int outputs;
    int columns;
    int panels; /* ceil(outputs / 16) */
    int slices;
    int bound[BACKEND_MAX_SLICES + 1]; /* slice i: columns [bound[i], bound[i + 1]) */
    int phase;                         /* of a quantised one, or of f8: column 0 within its block */
    int blocks; /* of a quantised one, over all slices */
    int head_phase;    /* of k-quants and Q4_Z: the block of column 0 within its 256 columns or group, */
    int head_shift;    /* the logarithm of the blocks of these, */
    size_t head_bytes; /* and the bytes of a panel before its blocks */
    size_t panel_bytes;
    int streams;         /* it comes out of memory at each step, for what lies in its arena is more than a cache keeps */
    int row_goes_alone;  /* a single row of a quantised one takes panel after panel, not several side by side */
    unsigned char *data; /* [panels][panel_bytes] */
};

/* Bytes of the columns [first, last) of a panel that is not quantised, a slice of it, when column 0 is number `phase` of its block. */
size_t matrix_slice_bytes(enum dtype dtype, int phase, int first, int last);
/* Of f8, where the columns from `first` on that share a scale end; at most `last`. */
int matrix_f8_stop(int phase, int first, int last);
/* Of one quantised block of a panel, scales included; of the scales alone. */
size_t matrix_block_bytes(enum dtype dtype);
size_t matrix_scale_bytes(enum dtype dtype);
/* What is added to the integers of a quantised matrix to make its bytes. */
int matrix_offset(enum dtype dtype);
/* Blocks of 32 columns that the columns [first, last) touch, when column 0 is number `phase` of its block. */
int matrix_blocks(int phase, int first, int last);
/* Where in a panel the d and m, or zero points, of block `number` lie, counted from the block of column 0; k-quants and Q4_Z alone. */
static inline size_t matrix_head(const struct matrix *matrix, int number)
{
    return MATRIX_HEAD * (size_t)((matrix->head_phase + number) >> matrix->head_shift);
}
/* Most of them that `columns` columns in slices can have. */
int matrix_most_blocks(int columns);
size_t matrix_bytes(const struct matrix_source *source);
/* Takes the memory and fills in all but the data. */
enum status matrix_lay_out(const struct matrix_source *source, struct arena *arena, struct matrix **matrix);
/* Writes the panels [first, last). */
void matrix_fill(struct matrix *matrix, const struct matrix_source *source, int first, int last);

#endif
