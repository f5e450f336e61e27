/* Linear maps of few rows by weights in bfloat16. */
#include "common/backend/cuda/kernel/linear_kernel.h"

struct linear_kind linear_kind_bf16()
{
    return kind<plain_weights<bf16>>();
}
