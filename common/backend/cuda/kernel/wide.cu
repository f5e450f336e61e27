/* Linear maps of more rows than a step of decoding has, as of a prompt: a block has 128 rows and eight panels of 16 output channels; eight warps
 * share them out, two panels and 64 rows each. The second warp of a panel finds its weights in the L1 cache. And how rows are rounded for these maps.
 */
#include "common/backend/cuda/kernel/wide_kernel.h"

namespace
{
typedef struct wide_shape<2, 8, 2, 4, 1> prompt_shape;

enum {
    SEGMENT = 128, /* columns whose squares a warp sums, as in linear.cu */
    SEGMENTS = KERNEL_MAX_HIDDEN / SEGMENT,
    ROUND_BYTES = 4 * (SEGMENTS + 1),
};

/* A block has a row. Squares are summed as linear.cu sums them. */
template <typename T> __global__ void __launch_bounds__(THREADS) round_kernel(const __grid_constant__ struct round_launch launch)
{
    SHARED(memory);
    float *squares = reinterpret_cast<float *>(memory), *found = squares + SEGMENTS;
    int thread = (int)threadIdx.x, lane = thread % 32;
    size_t row = (size_t)blockIdx.x * (size_t)launch.columns;
    float scale = 1.0f;

    overlap_allow();
    overlap_wait();
    if (launch.norm != NULL) {
        for (int segment = thread / 32; segment * SEGMENT < launch.columns; segment += WARPS) {
            int column = segment * SEGMENT + 4 * lane;
            float4 x = {0.0f, 0.0f, 0.0f, 0.0f};

            if (column < launch.columns)
                x = warp_fresh(reinterpret_cast<const float4 *>(launch.from + row + column));
            float sum = warp_sum(x.x * x.x + x.y * x.y + (x.z * x.z + x.w * x.w));
            if (lane == 0)
                squares[segment] = sum;
        }
        __syncthreads();
        if (thread == 0) {
            float sum = 0.0f;

            for (int i = 0; i * SEGMENT < launch.columns; i++)
                sum += squares[i];
            *found = 1.0f / sqrtf(sum / (float)launch.columns + launch.norm_eps);
            if (launch.scale != NULL)
                launch.scale[blockIdx.x] = *found;
        }
        __syncthreads();
        scale = launch.scale != NULL ? 1.0f : *found;
    }
    for (int column = 4 * thread; column < launch.columns; column += 4 * THREADS) {
        float4 x = warp_fresh(reinterpret_cast<const float4 *>(launch.from + row + column)), norm = {1.0f, 1.0f, 1.0f, 1.0f};

        if (launch.norm != NULL)
            norm = warp_kept(reinterpret_cast<const float4 *>(launch.norm + column));
        *reinterpret_cast<uint2 *>(launch.to + row + column) = linear_round_four<T>(x, norm, scale);
    }
}
} // namespace

extern "C" int wide_prepare(int layout)
{
    return wide_kind<prompt_shape>(layout).prepare();
}

extern "C" int round_prepare(void)
{
    int error = SHARED_PREFER((round_kernel<bf16>));

    return error != 0 ? error : SHARED_PREFER((round_kernel<f16>));
}

extern "C" void round_start(const struct round_launch *launch, struct CUstream_st *stream)
{
    const struct round_launch own = *launch; /* it may be recorded */

    if (launch->is_f16)
        LAUNCH_AHEAD(round_kernel<f16>, (unsigned)own.rows, THREADS, (size_t)ROUND_BYTES, stream, own.overlaps, own);
    else
        LAUNCH_AHEAD(round_kernel<bf16>, (unsigned)own.rows, THREADS, (size_t)ROUND_BYTES, stream, own.overlaps, own);
}

extern "C" void wide_start(const struct wide_launch *launch, struct CUstream_st *stream)
{
    wide_kind<prompt_shape>(launch->layout).start(launch, stream);
}
