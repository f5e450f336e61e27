/* A drafted token for each entry: common/sample compiled for the device, one thread a draw, its lists in shared memory. Then the block brings
 * the token's embedding. */
#define DEVICE_CODE __device__ inline
#include "common/backend/cuda/kernel/warp.h"
#include "common/backend/cuda/kernels.h"

#include "common/base/math32.c"
#include "common/base/rng.c"
#include "common/sample/choice.c"
#include "common/sample/distribution.c"
#include "common/sample/sparse_q.c"

namespace
{
enum { THREADS = 128 };

struct room {
    double p[BACKEND_MAX_ASKED];
    struct sparse_q q;
    int32_t token;
};

__device__ int32_t draw(const struct choose_launch &launch, int entry, struct room *room)
{
    int first = launch.best_first[entry];
    struct sparse_q *q = &room->q;
    struct row_query query = {};
    int32_t token;

    choice_ask(&launch.sampling[entry], launch.support, &query);
    query.key = launch.key[entry];
    query.stats = launch.stats[entry];
    query.winner = launch.winner[entry];
    query.best = launch.best + first;
    query.best_count = min(query.top, launch.vocab);
    token = choice_draw(&launch.sampling[entry], launch.support, launch.vocab, &query, room->p, q);
    launch.token[entry] = token;
    launch.count[entry] = q->count;
    for (int i = 0; i < q->count; i++) {
        launch.id[first + i] = q->id[i];
        launch.weight[first + i] = q->weight[i];
    }
    return token;
}

__device__ float number_at(enum dtype dtype, const void *table, size_t at)
{
    if (dtype == DTYPE_F32)
        return ((const float *)table)[at];
    if (dtype == DTYPE_BF16)
        return __uint_as_float((unsigned)((const uint16_t *)table)[at] << 16);
    return warp_unpack(f16(), ((const uint16_t *)table)[at]).x;
}

__global__ __launch_bounds__(THREADS) void choose_kernel(const __grid_constant__ struct choose_launch launch)
{
    SHARED(memory);
    struct room *room = (struct room *)(void *)memory;
    int entry = (int)blockIdx.x, row = launch.next[entry];

    if (threadIdx.x == 0)
        room->token = draw(launch, entry, room);
    __syncthreads();
    /* A row that is damaged has no winner: any token will do, for the verifier's weights tell. */
    size_t from = (size_t)max(room->token, 0) * (size_t)launch.hidden;

    for (int i = (int)threadIdx.x; row >= 0 && i < launch.hidden; i += THREADS)
        launch.x[(size_t)row * launch.hidden + i] = number_at(launch.dtype, launch.table, from + i);
}
} // namespace

void choose_start(const struct choose_launch *launch, struct CUstream_st *stream)
{
    struct choose_launch now = *launch; /* the emulation may run it later */

    LAUNCH(choose_kernel, now.entries, THREADS, sizeof(struct room), stream, now);
}
