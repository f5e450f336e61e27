/* Linear maps of few rows by weights in bfloat16. */
#include "common/backend/cuda/kernel/linear_kernel.h"

void linear_plan_start_bf16(const struct plan &plan, struct CUstream_st *stream)
{
    start_type<bf16>(plan, stream);
}

int linear_plan_prepare_bf16(int block_bytes)
{
    return prepare_type<bf16>(block_bytes);
}
