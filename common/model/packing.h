/* One matrix on its way from the rows of a file to the device. Owns the list of rows, and the memory of one matrix that has to be widened or made.
 * Two passes go over a model with the same calls: the first, while `measuring`, reads no weight and adds up what the second will take. Rows that the
 * backend does not take (of some several dtypes in one matrix, of others parts of blocks) are widened to float32, one matrix at a time. Where the
 * model is to be quantised, rows of more bits are rounded by the backend as it packs them; a matrix with rows that have no more bits, in other
 * blocks, stays as it is in the file. weights.c alone calls; it says which rows, and this file never does. */
#ifndef TANDEM_COMMON_MODEL_PACKING_H
#define TANDEM_COMMON_MODEL_PACKING_H

#include "common/model/model.h"

struct packing {
    struct model *model;
    int measuring; /* first pass: only `bytes` grows */
    size_t bytes;
    const void **rows;  /* the list, long enough for the largest matrix; NULL: a row of zeros */
    enum dtype *dtypes; /* of each row that is not NULL */
    int64_t columns;    /* of each whole row */
    int group;          /* columns of these that share a scale, of maps in 4 bits */
    const void *first;  /* of the list: where it lies in the files */
    unsigned char *made;         /* the list's rows that had to be made of a map in few bits */
    size_t made_used, made_room; /* bytes: of this list, of the longest */
    unsigned char *together;     /* rows that were made together, */
    size_t together_room;        /* of so many bytes at most, */
    const void *together_of;     /* of the map whose tensor lies there, */
    int64_t together_first;      /* from this row on */
    float *vector;      /* one on its way to the device, as long as the list */
    float *wide;        /* one matrix whose rows had to be widened */
    size_t wide_room;   /* values of the largest of these */
    int widened;        /* matrices of that kind */
    int layer;          /* whose tensors are looked for */
    const struct model_options *options; /* NULL: there is only the first pass */
    struct model_reading reading;
};

/* Begins the first pass. longest: rows of the largest matrix. What it took, packing_release gives back, also after a failure. */
enum status packing_open(struct packing *packing, struct model *model, const struct model_options *options, int longest);
/* Begins the second pass, into model->weights, which has `bytes`. */
enum status packing_begin(struct packing *packing);
void packing_release(struct packing *packing);

/* The tensor of this part of the layer, by the family's name for it. STATUS_DATA where it is missing, or of another shape. */
enum status packing_find(struct packing *packing, enum family_part part, int64_t rows, int64_t columns, struct tensor *tensor);
/* The list's row `at` is this one of the tensor. */
void packing_list_row(struct packing *packing, int at, const struct tensor *tensor, int64_t row);
/* Packs the listed rows. */
enum status packing_matrix(struct packing *packing, struct matrix_source *source, struct matrix **matrix);

/* Takes a part of a vector to where the next packing_give finds it. into: within packing->vector */
enum status packing_widen(struct packing *packing, enum family_part part, int64_t count, int64_t first, int64_t taken, float *into);
/* Gives the device the vector that was widened. */
void packing_give(struct packing *packing, int64_t count, const float **vector);
/* Both, for a vector that each rank has whole. */
enum status packing_vector(struct packing *packing, enum family_part part, int64_t count, const float **vector);

#endif
