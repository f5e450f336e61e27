/* What becomes of the sums of a kernel of linear.cu: outputs, their SwiGLU, or what is to be known of logits. A row's bits depend on nothing but the
 * row. Device code, for linear_kernel.h alone; it reads no weights. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_KERNEL_LINEAR_GIVE_H
#define TANDEM_COMMON_BACKEND_CUDA_KERNEL_LINEAR_GIVE_H

#include "common/backend/cuda/kernel/evidence.h"
#include "common/backend/cuda/kernel/linear_stage.h"

/* The sum over the warps of one output of the group. */
template <int TILES, int PANELS> static __device__ __forceinline__ float sum_warps(const float *sums, int panel, int channel, int row)
{
    int lane = channel % 8 * 4 + row % 8 / 2, at = ((panel * TILES + row / 8) * 32 + lane) * 4 + channel / 8 * 2 + row % 2;
    float sum = sums[at];

#pragma unroll
    for (int w = 1; w < WARPS; w++)
        sum += sums[w * PANELS * TILES * 128 + at];
    return sum;
}

/* Writes the group's outputs: from the sums of all warps in shared memory to where they belong. */
template <int TILES, int PANELS, bool SWIGLU> static __device__ void give(const struct plan &plan, const struct shared_parts &shared, int group)
{
    const struct linear_launch &launch = plan.launch;
    int width = SWIGLU ? 16 : 16 * PANELS, channels = SWIGLU ? launch.ffn : launch.outputs;
    bool scales = launch.norm != NULL && !launch.is_f16;

    for (int i = own_member().thread; i < width * launch.rows; i += THREADS) {
        int row = i / width, within = i % width, channel = group * width + within;
        float scale = scales ? shared.scale[row] : 1.0f, value;

        if (channel >= channels)
            continue;
        value = scale * sum_warps<TILES, PANELS>(shared.sums, SWIGLU ? 0 : within / 16, within % 16, row);
        if (SWIGLU)
            value = value / (1.0f + expf(-value)) * (scale * sum_warps<TILES, PANELS>(shared.sums, PANELS - 1, within, row));
        size_t at = (size_t)row * (size_t)channels + (size_t)channel;

        if (!SWIGLU && launch.adds)
            value = warp_fresh(static_cast<const float *>(launch.to) + at) + value;
        warp_put(launch.to, SWIGLU ? launch.gives : KERNEL_F32, at, value);
    }
}

/* A channel's logit with its row's Gumbel noise. */
static __device__ __forceinline__ struct scored_token gumbel_score(const struct evidence_launch &evidence, int row, int channel, float logit)
{
    uint32_t id = (uint32_t)evidence.first_token + (uint32_t)channel, words[4];
    float score;

    if (!evidence_has_noise(evidence, row) || logit == -INFINITY)
        return {-INFINITY, -1};
    rng_words(&evidence.key[row], (enum rng_purpose)evidence.purpose[row], id / 4, words);
    score = logit + rng_gumbel_of(words[id % 4]);
    if (score == -INFINITY || (evidence.excludes[row] != 0 && evidence_listed(evidence, row, (int32_t)id) >= 0))
        return {-INFINITY, -1};
    return {score, channel};
}

/* The evidence of the group's channels, a part of each row: so many neighbours of a warp as a group has channels are one row's. */
template <int TILES, int PANELS> static __device__ void give_evidence(const struct plan &plan, const struct shared_parts &shared, int group)
{
    const struct linear_launch &launch = plan.launch;
    const struct evidence_launch &evidence = launch.evidence;
    constexpr int width = 16 * PANELS;
    bool scales = launch.norm != NULL && !launch.is_f16;

    for (int i = own_member().thread; i < (width * launch.rows + 31) / 32 * 32; i += THREADS) { /* warps as a whole */
        int row = i / width, within = i % width, channel = group * width + within;
        bool is_there = row < launch.rows && channel < launch.outputs;
        struct evidence_part part = {0.0, {-INFINITY, -1}, {-INFINITY, -1}, 0.0};
        float logit = -INFINITY;

        if (is_there) {
            logit = (scales ? shared.scale[row] : 1.0f) * sum_warps<TILES, PANELS>(shared.sums, within / 16, within % 16, row);
            logit *= evidence.from.scale[row];
            part.largest = {logit, channel};
        }
        part.largest = evidence_best(part.largest, width);
        if (is_there && part.largest.score > -INFINITY)
            part.sum = (double)math32_exp(logit - part.largest.score);
        part.sum = evidence_sum(part.sum, width);
        if (is_there) {
            int listed = evidence_listed(evidence, row, evidence.first_token + channel);

            part.winner = gumbel_score(evidence, row, channel, logit);
            if (listed >= 0)
                evidence.logit[listed] = logit;
        }
        part.winner = evidence_best(part.winner, width);
        if (within == 0 && row < launch.rows && group < plan.groups)
            static_cast<struct evidence_part *>(evidence.scratch)[(size_t)row * (size_t)plan.groups + (size_t)group] = part;
    }
}

#endif
