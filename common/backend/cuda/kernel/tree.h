/* backend_tree_sum for the device: neighbours level by level, an odd last one carried up. Invariant: the same order as on the CPU, so the same bits
 * from the same terms. Indices are constants for the compiler, so that terms stay in registers; `term` is overwritten. MOST: a power of two, at least
 * `count`. Device code, for kernels alone. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_TREE_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_TREE_H

#include "common/backend/cuda/kernel/cuda.h"

template <int MOST> static __device__ __forceinline__ float tree_sum(float term[MOST], int count)
{
#pragma unroll
    for (int level = MOST; level > 1; level /= 2) {
        int pairs = count / 2;

#pragma unroll
        for (int t = 0; t < level / 2; t++)
            term[t] = t < pairs ? term[2 * t] + term[2 * t + 1] : term[2 * t];
        count -= pairs;
    }
    return term[0];
}

#endif
