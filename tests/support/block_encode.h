/* Blocks of ggml's formats of 5 bits and of its k-quants, made of values: the tests' own way, each scale the least that reaches, not ggml's search
 * for the best one. Pure. */
#ifndef TANDEM_TESTS_SUPPORT_BLOCK_ENCODE_H
#define TANDEM_TESTS_SUPPORT_BLOCK_ENCODE_H

#include "common/backend/backend.h"

/* One block of Q5_0, Q5_1, or a k-quant. */
void block_encode(enum dtype dtype, const float *values /* [dtype_block(dtype)] */, unsigned char *block);

#endif
