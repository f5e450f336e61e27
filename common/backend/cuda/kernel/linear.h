/* What linear_kernel.h and wide.cu do alike, so that a row has the same bits in both: how numbers are rounded, and the order in which a tile's
 * products are added (weights.h). Device code, for these two alone; it loads nothing from the device's memory. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_LINEAR_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_LINEAR_H

#include "common/backend/cuda/kernel/weights.h"

/* Four columns of a row, as they enter a product. */
template <typename T> static __device__ __forceinline__ uint2 linear_round_four(const float4 &x, const float4 &norm, float scale)
{
    return {warp_pack(T(), x.x * norm.x * scale, x.y * norm.y * scale), warp_pack(T(), x.z * norm.z * scale, x.w * norm.w * scale)};
}

#endif
