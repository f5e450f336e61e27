/* What the backend tests share: every configuration (instruction set x threads) that this machine has, and random numbers. */
#ifndef TANDEM_TESTS_BACKEND_RIG_H
#define TANDEM_TESTS_BACKEND_RIG_H

#include "common/backend/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* after the four that it needs */

enum { RIGS = 15, RIG_HIDDEN = 256, RIG_QKV = 1024, RIG_COLUMNS = 1024, RIG_CONTEXT = 512, RIG_VOCAB = 2048 };

/* Opens configuration i of RIGS: scalar, avx2, avxvnni, avx512, avx512vnni with 1, 2, 3 threads each, scalar with one thread first. NULL, with a line
 * that says why, when this CPU lacks it. */
struct backend_context *rig_open(int i);

struct random {
    uint32_t state;
};
uint32_t random_word(struct random *random);
/* In [-1, 1). */
float random_float(struct random *random);
void random_floats(struct random *random, float *to /* [count] */, size_t count);
/* Weights of about that size, in memory of malloc; whole blocks of a quantised dtype. [count] */
void *random_weights(struct random *random, enum dtype dtype, size_t count);

/* Weights of a test: outputs x columns, row-major; the matrix takes some columns of them, in slices. */
struct weights {
    enum dtype dtype;
    void *data;  /* [outputs][columns], owned */
    float *wide; /* the same in float32, owned */
    int outputs, columns;
    int group; /* of Q4_Z: columns with one scale and zero point, as matrix_source has it; weights_share makes them so */
};
void weights_init(struct weights *weights, struct random *random, enum dtype dtype, int outputs, int columns);
void weights_share(struct weights *weights, int group);
void weights_release(struct weights *weights);
/* Packs the columns [bounds[0], bounds[slices]) (of the whole) into a new arena. */
struct matrix *weights_pack(const struct weights *weights, struct backend_context *context, const int *bounds, int slices,
                            struct arena *arena);

/* The bf16 that is nearest to a number, of two as near the even one: the upper half of a float. */
uint16_t nearest_bf16(float value);

void *zeroed(size_t count, size_t size);
void assert_same_bits(const float *a, const float *b, size_t count);
void assert_close(const float *a, const double *b, size_t count, double relative, double absolute);

#endif
