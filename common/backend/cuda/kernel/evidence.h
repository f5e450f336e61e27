/* What evidence.cu and the head of linear.cu share: the evidence of a part of a row, and how parts become one. Invariant: a part follows its place in
 * the row, never the rows beside it, so that sums have one order. Device code, for these two alone. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_EVIDENCE_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_EVIDENCE_H

#ifndef DEVICE_CODE
#define DEVICE_CODE __device__ inline
#endif
#include "common/backend/cuda/kernel/warp.h"
#include "common/backend/cuda/kernels.h"

#include "common/base/math32.c"
#include "common/base/rng.c"

struct evidence_part {
    double sum; /* of exp(logit - largest); 0 when that is minus infinity */
    struct scored_token largest, winner; /* index in the shard, or -1 */
    double below;                        /* of (largest - logit) exp(logit - largest), where it is asked for; 0 likewise */
};

/* Larger scores first, then lower tokens; token -1 is none. */
static __device__ __forceinline__ struct scored_token evidence_better(const struct scored_token &a, const struct scored_token &b)
{
    bool is_a = b.token < 0 || (a.token >= 0 && (a.score > b.score || (a.score == b.score && a.token < b.token)));

    return is_a ? a : b;
}

/* The best of `lanes` neighbours of a warp, and their sum; a power of two. */
static __device__ __forceinline__ struct scored_token evidence_best(struct scored_token mine, int lanes = 32)
{
    for (int by = lanes / 2; by > 0; by /= 2) {
        struct scored_token other = {__shfl_xor_sync(0xffffffffu, mine.score, by), __shfl_xor_sync(0xffffffffu, mine.token, by)};

        mine = evidence_better(mine, other);
    }
    return mine;
}
static __device__ __forceinline__ double evidence_sum(double mine, int lanes = 32)
{
    for (int by = lanes / 2; by > 0; by /= 2)
        mine += __shfl_xor_sync(0xffffffffu, mine, by);
    return mine;
}

/* Where the id stands among the row's tokens, or -1. */
static __device__ __forceinline__ int evidence_listed(const struct evidence_launch &launch, int row, int32_t id)
{
    int low = launch.token_first[row], high = launch.token_first[row + 1];

    while (low < high) {
        int middle = (low + high) / 2;

        if (launch.token[middle] == id)
            return middle;
        if (launch.token[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static __device__ __forceinline__ bool evidence_has_noise(const struct evidence_launch &launch, int row)
{
    return launch.key != NULL && launch.purpose[row] >= 0;
}

#endif
