/* Linear maps of few rows by weights in blocks of 256. */
#include "common/backend/cuda/kernel/linear_kernel.h"

struct linear_kind linear_kind_k_quants(int layout)
{
    switch (layout) {
    case DTYPE_Q2_K:
        return kind<block_weights<DTYPE_Q2_K>>();
    case DTYPE_Q3_K:
        return kind<block_weights<DTYPE_Q3_K>>();
    case DTYPE_Q4_K:
        return kind<block_weights<DTYPE_Q4_K>>();
    case DTYPE_Q5_K:
        return kind<block_weights<DTYPE_Q5_K>>();
    case DTYPE_Q6_K:
        return kind<block_weights<DTYPE_Q6_K>>();
    default:
        return kind<block_weights<BLOCKS_MIXED>>();
    }
}
