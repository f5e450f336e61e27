/* Linear maps of few rows by weights in blocks of 32, or in those of F8. */
#include "common/backend/cuda/kernel/linear_kernel.h"

struct linear_kind linear_kind_blocks(int layout)
{
    switch (layout) {
    case DTYPE_F8:
        return kind<block_weights<DTYPE_F8>>();
    case DTYPE_Q8_0:
        return kind<block_weights<DTYPE_Q8_0>>();
    case DTYPE_Q4_0:
        return kind<block_weights<DTYPE_Q4_0>>();
    case DTYPE_Q4_1:
        return kind<block_weights<DTYPE_Q4_1>>();
    case DTYPE_Q5_0:
        return kind<block_weights<DTYPE_Q5_0>>();
    case DTYPE_Q4_Z:
        return kind<block_weights<DTYPE_Q4_Z>>();
    case BLOCKS_ZEROS:
        return kind<block_weights<BLOCKS_ZEROS>>();
    default:
        return kind<block_weights<DTYPE_Q5_1>>();
    }
}
