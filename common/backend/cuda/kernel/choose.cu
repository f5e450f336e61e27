/* A drafted token for each entry: common/sample compiled for the device, its lists in shared memory. Then the block brings the token's
 * embedding. One thread makes a draw, but for the plain q of rejection: there the whole block does, whose sums are of whole numbers, the same as
 * common/sample has them one after the other. */
#define DEVICE_CODE __device__ inline
#include "common/backend/cuda/kernel/warp.h"
#include "common/backend/cuda/kernels.h"

#include "common/base/math32.c"
#include "common/base/rng.c"
#include "common/sample/choice.c"
#include "common/sample/distribution.c"
#include "common/sample/rule_draw.c"
#include "common/sample/sparse_q.c"

namespace
{
enum { THREADS = 128, WARPS = THREADS / 32, EACH = SPARSE_Q_MAX / THREADS }; /* a thread's neighbours in a sum */

static_assert(EACH * THREADS == SPARSE_Q_MAX, "each thread has as many");

struct room {
    double p[ROW_MAX_ASKED];
    uint64_t part[SPARSE_Q_MAX], upto[SPARSE_Q_MAX], of_warp[WARPS];
    uint32_t weight[SPARSE_Q_MAX];
    struct sparse_q q;
    int32_t token;
};

__device__ struct row_query query_of(const struct choose_launch &launch, int entry)
{
    struct row_query query = {};

    choice_ask(&launch.sampling[entry], launch.support, 0, &query);
    query.key = launch.key[entry];
    query.coin = rule_coin(&launch.sampling[entry], launch.step);
    query.stats = launch.stats[entry];
    query.winner = launch.winner[entry];
    query.best = launch.best + launch.best_first[entry];
    query.best_count = min(query.top, launch.vocab);
    return query;
}

/* room->upto: the sum of the first `count` values up to each. All threads. */
template <typename T> __device__ void sum_up(const T *value, int count, struct room *room)
{
    int thread = (int)threadIdx.x, lane = thread % 32, first = thread * EACH;
    uint64_t sum[EACH], all = 0, before;

    for (int i = 0; i < EACH; i++)
        sum[i] = all += first + i < count ? value[first + i] : 0;
    before = all;
    for (int by = 1; by < 32; by *= 2) {
        uint64_t lower = __shfl_up_sync(0xffffffffu, before, by);

        before += lane >= by ? lower : 0;
    }
    if (lane == 31)
        room->of_warp[thread / 32] = before;
    before -= all;
    __syncthreads();
    for (int warp = 0; warp < thread / 32; warp++)
        before += room->of_warp[warp];
    for (int i = 0; i < EACH; i++)
        room->upto[first + i] = before + sum[i];
    __syncthreads();
}

/* How many tokens sparse_q_fill keeps of the first `most`: those before which it is not covered. */
__device__ void keep_together(int most, struct room *room)
{
    for (int i = (int)threadIdx.x; i < most; i += THREADS)
        if (i + 1 == most || room->upto[i] >= SPARSE_Q_COVERED)
            if (i == 0 || room->upto[i - 1] < SPARSE_Q_COVERED)
                room->q.count = i + 1;
    __syncthreads();
}

/* sparse_q_fill over the whole block, and choice_draw's p where nothing truncates. */
__device__ void fill_together(const struct choose_launch &launch, const struct row_query &query, struct room *room)
{
    struct sparse_q *q = &room->q;
    int thread = (int)threadIdx.x, most = min(min(query.best_count, launch.support), (int)SPARSE_Q_MAX);

    for (int i = thread; i < most; i += THREADS)
        room->part[i] = sparse_q_part(choice_plain(&query, i));
    __syncthreads();
    sum_up(room->part, most, room);
    keep_together(most, room);
    for (int i = thread; i < q->count; i += THREADS)
        room->weight[i] = sparse_q_share(room->part[i], room->upto[q->count - 1]);
    __syncthreads();
    sum_up(room->weight, q->count, room);
    if (thread == 0)
        sparse_q_settle(room->weight, SPARSE_Q_SUM - (int64_t)room->upto[q->count - 1]);
    __syncthreads();
    for (int i = thread; i < q->count; i += THREADS) {
        int at = 0;

        for (int other = 0; other < q->count; other++)
            at += query.best[other].token < query.best[i].token;
        q->id[at] = query.best[i].token;
        q->weight[at] = room->weight[i];
    }
    __syncthreads();
}

/* sparse_q_draw over the whole block. */
__device__ void draw_together(uint32_t u, struct room *room)
{
    const struct sparse_q *q = &room->q;

    sum_up(q->weight, q->count, room);
    for (int i = (int)threadIdx.x; i < q->count; i += THREADS)
        if (u < room->upto[i] && (i == 0 || u >= room->upto[i - 1]))
            room->token = q->id[i];
}

__device__ void draw(const struct choose_launch &launch, int entry, struct room *room)
{
    const struct sampling &sampling = launch.sampling[entry];
    struct row_query query = query_of(launch, entry);
    struct sparse_q *q = &room->q;
    bool together = choice_is_plain(&sampling);

    if (together) {
        fill_together(launch, query, room);
        draw_together(rng_coin16(&query.key, RNG_DRAFT, query.coin), room);
    } else if (threadIdx.x == 0) {
        room->token = choice_draw(&sampling, launch.support, launch.vocab, &query, room->p, q);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        launch.token[entry] = room->token;
        launch.count[entry] = q->count;
    }
    for (int i = (int)threadIdx.x; i < q->count; i += THREADS) {
        launch.id[launch.best_first[entry] + i] = q->id[i];
        launch.weight[launch.best_first[entry] + i] = q->weight[i];
    }
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

    draw(launch, entry, room);
    /* A row that is damaged has no winner: any token will do, for the verifier's weights tell. */
    size_t from = (size_t)max(room->token, 0) * (size_t)launch.hidden;

    for (int i = (int)threadIdx.x; row >= 0 && i < launch.hidden; i += THREADS)
        launch.x[(size_t)row * launch.hidden + i] = number_at(launch.dtype, launch.table, from + i);
}
} // namespace

int choose_prepare(void)
{
    return SHARED_PREFER(choose_kernel);
}

void choose_start(const struct choose_launch *launch, struct CUstream_st *stream)
{
    struct choose_launch now = *launch; /* the emulation may run it later */

    LAUNCH(choose_kernel, now.entries, THREADS, sizeof(struct room), stream, now);
}
