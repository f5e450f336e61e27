/* The language of the kernels: CUDA's own, or its emulation on the CPU. What a kernel needs and plain C++ lacks is here, twice. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_CUDA_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_CUDA_H

#ifdef __CUDACC__
#include <cstdint>
#include <cuda_runtime.h>

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...) kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
/* The block's dynamic shared memory: all that a kernel may use. */
#define SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#else
#include "common/backend/cuda/emulation.h"

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                                                             \
    ((void)(stream), emulation_launch(grid, block, shared_bytes, [=] { kernel(__VA_ARGS__); }))
#define SHARED(name) unsigned char *name = emulation_now.shared
#endif

#endif
