/* The language of the kernels: CUDA's own, or its emulation on the CPU. What a kernel needs and plain C++ lacks is here, twice, with the same
 * meaning. For kernels alone: no host file includes it. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_CUDA_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_CUDA_H

#ifdef __CUDACC__
#include <cstdint>
#include <cuda_runtime.h>

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...) kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
/* The same for a kernel that calls overlap_wait: where `overlaps` it may begin before what is ahead of it in the stream has ended. */
#define LAUNCH_AHEAD(kernel, grid, block, shared_bytes, stream, overlaps, ...)                                                             \
    do {                                                                                                                                   \
        cudaLaunchAttribute attribute_ = {};                                                                                               \
        cudaLaunchConfig_t config_ = {};                                                                                                   \
        attribute_.id = cudaLaunchAttributeProgrammaticStreamSerialization;                                                                \
        attribute_.val.programmaticStreamSerializationAllowed = 1;                                                                         \
        config_.gridDim = grid;                                                                                                            \
        config_.blockDim = block;                                                                                                          \
        config_.dynamicSmemBytes = shared_bytes;                                                                                           \
        config_.stream = stream;                                                                                                           \
        config_.attrs = &attribute_;                                                                                                       \
        config_.numAttrs = (overlaps) ? 1 : 0;                                                                                             \
        (void)cudaLaunchKernelEx(&config_, kernel, __VA_ARGS__); /* a failure stays for device_launched */                                 \
    } while (0)
/* Lets a kernel use up to `bytes` of shared memory. 0, or CUDA's number of the error. */
#define SHARED_LIMIT(kernel, bytes) ((int)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes))
/* Asks for the largest split of a multiprocessor's memory for shared memory, and loads the kernel while there is memory for it: to be said of each
 * kernel at open. Kernels that follow each other and may overlap want the same split: where it changes, a multiprocessor has to be empty in
 * between. 0, or CUDA's number of the error. */
#define SHARED_PREFER(kernel)                                                                                                              \
    ((int)cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared))
/* The block's dynamic shared memory: all that a kernel may use. */
#define SHARED(name) extern __shared__ __align__(16) unsigned char name[]

/* What follows may begin once every block has said this. */
static __device__ __forceinline__ void overlap_allow()
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/* Waits until what is ahead has ended and its writes are seen. Before this, a kernel reads only what no kernel writes, and writes nothing.
 */
static __device__ __forceinline__ void overlap_wait()
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
#else
#include "common/backend/cuda/emulation.h"

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                                                             \
    ((void)(stream), emulation_launch(emulation_name(kernel), grid, block, shared_bytes, [=] { kernel(__VA_ARGS__); }))
#define LAUNCH_AHEAD(kernel, grid, block, shared_bytes, stream, overlaps, ...)                                                             \
    ((void)(overlaps), LAUNCH(kernel, grid, block, shared_bytes, stream, __VA_ARGS__))
#define SHARED_LIMIT(kernel, bytes) emulation_prepare(emulation_name(kernel), (size_t)(bytes))
#define SHARED_PREFER(kernel)       emulation_prepare(emulation_name(kernel), 0)
#define SHARED(name)                unsigned char *name = emulation_now.shared

static inline void overlap_allow()
{
}
static inline void overlap_wait()
{
}
#endif

#endif
