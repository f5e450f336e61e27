/* The language of the kernels: CUDA's own, or its emulation on the CPU. What a kernel needs and plain C++ lacks is here, twice, with the same
 * meaning. For kernels alone: no host file includes it. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_CUDA_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_CUDA_H

#ifdef __CUDACC__
#include <cstdint>
#include <cuda_runtime.h>

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...) kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
/* The same for a kernel that calls overlap_wait: where `overlaps` it may begin before what is ahead of it in the stream has ended. */
#define LAUNCH_AHEAD(kernel, grid, block, shared_bytes, stream, overlaps, ...)                                                                       \
    LAUNCH_TOGETHER(kernel, 1, grid, block, shared_bytes, stream, overlaps, __VA_ARGS__)
/* And `cluster` neighbours of its blocks, on a device that has clusters, run together: each may read the others' shared memory. */
#define LAUNCH_TOGETHER(kernel, cluster, grid, block, shared_bytes, stream, overlaps, ...)                                                           \
    do {                                                                                                                                             \
        cudaLaunchAttribute attributes_[2] = {};                                                                                                     \
        cudaLaunchConfig_t config_ = {};                                                                                                             \
        if (overlaps) {                                                                                                                              \
            attributes_[config_.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;                                                   \
            attributes_[config_.numAttrs++].val.programmaticStreamSerializationAllowed = 1;                                                          \
        }                                                                                                                                            \
        if ((cluster) > 1) {                                                                                                                         \
            attributes_[config_.numAttrs].id = cudaLaunchAttributeClusterDimension;                                                                  \
            attributes_[config_.numAttrs].val.clusterDim.x = (cluster);                                                                              \
            attributes_[config_.numAttrs].val.clusterDim.y = 1;                                                                                      \
            attributes_[config_.numAttrs++].val.clusterDim.z = 1;                                                                                    \
        }                                                                                                                                            \
        config_.gridDim = grid;                                                                                                                      \
        config_.blockDim = block;                                                                                                                    \
        config_.dynamicSmemBytes = shared_bytes;                                                                                                     \
        config_.stream = stream;                                                                                                                     \
        config_.attrs = attributes_;                                                                                                                 \
        (void)cudaLaunchKernelEx(&config_, kernel, __VA_ARGS__); /* a failure stays for device_launched */                                           \
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

/* All threads of the cluster's blocks meet: what each has written to its shared memory the others see. */
static __device__ __forceinline__ void cluster_meet()
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory"); /* lanes of a warp may come one by one */
#endif
}
/* Where what lies there in the caller's shared memory lies in that of block `number` of its cluster. */
template <typename T> static __device__ __forceinline__ const T *cluster_of(const T *shared, int number)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    const T *other;

    asm("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(shared), "r"(number));
    return other;
#else
    return number == 0 ? shared : NULL; /* without clusters */
#endif
}
#else
#include "common/backend/cuda/emulation.h"

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...) LAUNCH_TOGETHER(kernel, 1, grid, block, shared_bytes, stream, 0, __VA_ARGS__)
#define LAUNCH_AHEAD(kernel, grid, block, shared_bytes, stream, overlaps, ...)                                                                       \
    LAUNCH_TOGETHER(kernel, 1, grid, block, shared_bytes, stream, overlaps, __VA_ARGS__)
#define LAUNCH_TOGETHER(kernel, cluster, grid, block, shared_bytes, stream, overlaps, ...)                                                           \
    ((void)(stream), (void)(overlaps), emulation_launch(emulation_name(kernel), cluster, grid, block, shared_bytes, [=] { kernel(__VA_ARGS__); }))
#define SHARED_LIMIT(kernel, bytes) emulation_prepare(emulation_name(kernel), (size_t)(bytes))
#define SHARED_PREFER(kernel)       emulation_prepare(emulation_name(kernel), 0)
#define SHARED(name)                unsigned char *name = emulation_now.shared

static inline void overlap_allow()
{
}
static inline void overlap_wait()
{
}
static inline void cluster_meet()
{
    emulation_meet_cluster();
}
template <typename T> static inline const T *cluster_of(const T *shared, int number)
{
    return static_cast<const T *>(emulation_of_block(shared, number));
}
#endif

#endif
