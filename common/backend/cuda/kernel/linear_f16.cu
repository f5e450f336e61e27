/* Linear maps of few rows by weights in half precision. */
#include "common/backend/cuda/kernel/linear_kernel.h"

void linear_plan_start_f16(const struct plan &plan, struct CUstream_st *stream)
{
    start_type<f16>(plan, stream);
}

int linear_plan_prepare_f16(int block_bytes)
{
    return prepare_type<f16>(block_bytes);
}
