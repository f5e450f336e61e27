/* What linear_kernel.h and wide.cu do alike, so that a row has the same bits in both: how numbers are rounded, and the order in which a tile's
 * products are added. Device code, for these two alone; it loads nothing from the device's memory. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_LINEAR_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_LINEAR_H

#include "common/backend/cuda/kernel/warp.h"

/* sums += a tile's weights, of PANELS panels, x its rows, eight of each 32 of `rows`. */
template <typename T, int TILES, int PANELS>
static __device__ __forceinline__ void linear_multiply(const uint2 *rows, const uint4 weights[PANELS], float sums[PANELS][TILES][4])
{
#pragma unroll
    for (int n = 0; n < TILES; n++) {
        uint2 tokens = rows[n * 32];

#pragma unroll
        for (int p = 0; p < PANELS; p++)
            warp_mma(T(), sums[p][n], weights[p], tokens);
    }
}

/* Four columns of a row, as they enter a product. */
template <typename T> static __device__ __forceinline__ uint2 linear_round_four(const float4 &x, const float4 &norm, float scale)
{
    return {warp_pack(T(), x.x * norm.x * scale, x.y * norm.y * scale), warp_pack(T(), x.z * norm.z * scale, x.w * norm.w * scale)};
}

#endif
