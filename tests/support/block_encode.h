/* Blocks of ggml's formats of 5 bits and of its k-quants, made of values: the tests' own way, each scale the least that reaches, not ggml's search
 * for the best one. Pure. */
#ifndef TANDEM_TESTS_SUPPORT_BLOCK_ENCODE_H
#define TANDEM_TESTS_SUPPORT_BLOCK_ENCODE_H

#include "common/backend/backend.h"

/* Where the F16 of a block of a quantised dtype lie; returns how many there are. */
static inline int block_halves(enum dtype dtype, size_t *at /* [2] */)
{
    at[0] = dtype == DTYPE_Q2_K ? 80 : dtype == DTYPE_Q3_K ? 108 : dtype == DTYPE_Q6_K ? 208 : 0;
    at[1] = at[0] + 2;
    switch (dtype) {
    case DTYPE_Q4_1:
    case DTYPE_Q5_1:
    case DTYPE_Q2_K:
    case DTYPE_Q4_K:
    case DTYPE_Q5_K:
        return 2;
    default:
        return 1;
    }
}

/* One block of Q5_0, Q5_1, or a k-quant. */
void block_encode(enum dtype dtype, const float *values /* [dtype_block(dtype)] */, unsigned char *block);

#endif
