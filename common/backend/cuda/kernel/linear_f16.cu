/* Linear maps of few rows by weights in half precision. */
#include "common/backend/cuda/kernel/linear_kernel.h"

struct linear_kind linear_kind_f16()
{
    return kind<plain_weights<f16>>();
}
