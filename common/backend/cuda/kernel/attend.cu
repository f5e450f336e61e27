/* Attention of the rows of a step over the cache, split by places (flash decoding).
 *
 * A block takes up to 16 queries over one chunk of 128 places: queries are the rows of one slot times the query heads that share a
 * key/value head, so that keys and values are read once for all of them. Each of its four warps has 32 of the places. Scores are
 * products of the matrix unit with the queries as A and 8 keys as B; the largest score of the chunk is agreed on; what comes of exp()
 * is, where it lies, the A of the products with the values. Both A are split into two bfloat16 numbers, which together have 16 bits of
 * the fraction: keys and values enter as they are, so nothing is lost that float32 would keep but the last 8 bits of each factor.
 * A second kernel puts the chunks of a row together; a row that ends in its first chunk is done before.
 *
 * What a row gets depends on the row alone. Chunks and the warps' places follow the absolute place. An output of the matrix unit depends
 * on its row of A and its column of B, and products with the zero of an unseen place change no sum but the sign of a zero, which the
 * last addition of +0 takes away. Chunks are put together up to the row's own last one, in four chains of every fourth chunk.
 * A value that is not finite would spoil the rows that do not see it (0 x NaN). So it is replaced by 0, and those that see it get NaN. */
#include "common/backend/cuda/kernel/attend_cache.h"
#include "common/backend/cuda/kernel/attend_queries.h"

namespace
{
enum {
    PASS = 64,           /* dimensions of the values that a warp sums at a time */
    PASS_ROW = PASS + 4, /* of shared memory: rows begin in other banks */
    STEP_BYTES = 1024,   /* of 16 dimensions of the queries */
    CHAINS = 4,          /* in which chunks are put together */
};
const size_t SCRATCH_MOST = (size_t)128 << 20;

/* The largest over the lanes that share lane / 4, and over the lanes that share lane % 4. */
__device__ float largest_of_four(float value)
{
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
    return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

__device__ int largest_of_eight(int value)
{
    for (int by = 4; by < 32; by *= 2) {
        int other = __shfl_xor_sync(0xffffffffu, value, by);

        value = other > value ? other : value;
    }
    return value;
}

/* exp(score - largest of the chunk), as A of the products with the values, and the warp's sums of it. */
__device__ struct weighed weigh(const float score[4][4], const unsigned seen[2], const float largest[2], int lane, float total[2])
{
    struct weighed weighed = {{}, {}, {seen[0], seen[1]}};
    unsigned high[4][2], low[4][2];

    total[0] = total[1] = 0.0f;
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            unsigned bits = seen[half] >> (8 * j + lane % 4 * 2);
            float p0 = (bits & 1) != 0 ? expf(score[j][2 * half] - largest[half]) : 0.0f;
            float p1 = (bits & 2) != 0 ? expf(score[j][2 * half + 1] - largest[half]) : 0.0f;

            total[half] += p0 + p1;
            split(p0, p1, &high[j][half], &low[j][half]);
        }
#pragma unroll
    for (int s = 0; s < 2; s++) {
        weighed.high[s] = {high[2 * s][0], high[2 * s][1], high[2 * s + 1][0], high[2 * s + 1][1]};
        weighed.low[s] = {low[2 * s][0], low[2 * s][1], low[2 * s + 1][0], low[2 * s + 1][1]};
    }
    for (int half = 0; half < 2; half++) {
        total[half] += __shfl_xor_sync(0xffffffffu, total[half], 1);
        total[half] += __shfl_xor_sync(0xffffffffu, total[half], 2);
    }
    return weighed;
}

/* The largest score of each of a lane's queries among the places that it sees. */
__device__ void find_largest(const float score[4][4], const unsigned seen[2], int lane, float largest[2])
{
    for (int half = 0; half < 2; half++) {
        largest[half] = -INFINITY;
#pragma unroll
        for (int i = 0; i < 8; i++)
            if ((seen[half] >> (i / 2 * 8 + lane % 4 * 2 + i % 2) & 1) != 0)
                largest[half] = fmaxf(largest[half], score[i / 2][2 * half + i % 2]);
        largest[half] = largest_of_four(largest[half]);
    }
}

/* What the warps of a block share. */
struct shared {
    uint4 *staged;                          /* [steps][high, low][32] */
    float (*sum)[ATTEND_QUERIES][PASS_ROW]; /* [ATTEND_WARPS] */
    float (*largest)[ATTEND_QUERIES];       /* [ATTEND_WARPS] */
    float (*total)[ATTEND_QUERIES];         /* [ATTEND_WARPS] */
    int *index;                             /* [ATTEND_QUERIES] of the query's row and head, -1 where there is none */
    int *ends;                              /* [ATTEND_QUERIES] row_end */
};

/* Of 16 dimensions each, a whole number of times those of `passes`. */
__host__ __device__ int steps_of(int head_dim, int passes)
{
    return (head_dim + passes * PASS - 1) / (passes * PASS) * passes * (PASS / 16);
}

size_t shared_bytes(int steps)
{
    return (size_t)steps * STEP_BYTES + sizeof(float) * ATTEND_WARPS * ATTEND_QUERIES * (PASS_ROW + 2) + sizeof(int) * ATTEND_QUERIES * 2;
}

__device__ struct shared lay_out(unsigned char *memory, int steps)
{
    struct shared shared;

    shared.staged = (uint4 *)(void *)memory;
    shared.sum = (float(*)[ATTEND_QUERIES][PASS_ROW])(void *)(memory + steps * STEP_BYTES);
    shared.largest = (float(*)[ATTEND_QUERIES])(void *)(shared.sum + ATTEND_WARPS);
    shared.total = shared.largest + ATTEND_WARPS;
    shared.index = (int *)(void *)(shared.total + ATTEND_WARPS);
    shared.ends = shared.index + ATTEND_QUERIES;
    return shared;
}

/* The largest score of the chunk, from the warps'. */
__device__ float largest_of_warps(const struct shared &shared, int query)
{
    float largest = shared.largest[0][query];

    for (int w = 1; w < ATTEND_WARPS; w++)
        largest = fmaxf(largest, shared.largest[w][query]);
    return largest;
}

/* A warp's sums of a pass into shared memory. */
__device__ void put_sums(const float sum[8][4], int lane, float to[ATTEND_QUERIES][PASS_ROW])
{
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int from = i % 2 * 4, column = i / 2;
        float4 *at = (float4 *)(void *)&to[lane / 4 + i / 4 * 8][lane % 4 * 16 + i % 4 / 2 * 8 + from];

        *at = {sum[from][column], sum[from + 1][column], sum[from + 2][column], sum[from + 3][column]};
    }
}

/* The warps' sums of a pass together: the outcome of a row that ends in the first chunk, else this chunk's part. */
__device__ void store_pass(const struct work &work, const struct shared &shared, int first_d)
{
    int head_dim = work.launch.cache.head_dim;

    for (int i = (int)threadIdx.x; i < ATTEND_QUERIES * PASS; i += (int)blockDim.x) {
        int query = i / PASS, column = i % PASS, d = first_d + column;
        size_t at = (size_t)shared.index[query];
        float sum =
            (shared.sum[0][query][column] + shared.sum[1][query][column]) + (shared.sum[2][query][column] + shared.sum[3][query][column]);
        float total = (shared.total[0][query] + shared.total[1][query]) + (shared.total[2][query] + shared.total[3][query]);

        if (shared.index[query] < 0 || d >= head_dim)
            continue;
        if (shared.ends[query] <= ATTEND_CHUNK) {
            if (blockIdx.z == 0)
                warp_put(work.launch.to, work.launch.gives, at * head_dim + d, sum / total + 0.0f);
            continue;
        }
        work.sums[(at * work.chunks + blockIdx.z) * head_dim + d] = sum;
        if (d == 0)
            work.weights[at * work.chunks + blockIdx.z] = {largest_of_warps(shared, query), total};
    }
}

template <int passes, bool aligned>
__global__ __launch_bounds__(ATTEND_WARPS * 32) void attend_kernel(const __grid_constant__ struct work work)
{
    SHARED(memory);
    overlap_allow();
    overlap_wait();
    const struct kernel_cache &cache = work.launch.cache;
    int steps = steps_of(cache.head_dim, passes);
    struct shared shared = lay_out(memory, steps);
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, first = (int)blockIdx.z * ATTEND_CHUNK + warp * ATTEND_STRETCH;
    struct tile tile = find_tile(work.launch.rows, cache.heads / cache.kv_heads, (int)blockIdx.x, lane);
    struct view view[2] = {find_view(work, tile, lane / 4), find_view(work, tile, lane / 4 + 8)};
    int end0 = row_end(view[0].base, view[0].ancestors, cache.context), end1 = row_end(view[1].base, view[1].ancestors, cache.context);
    int end = largest_of_eight(end0 > end1 ? end0 : end1);
    unsigned seen[2] = {seen_places(view[0], first), seen_places(view[1], first)};
    float score[4][4] = {}, largest[2], total[2];
    struct weighed weighed;
    uint4 key[2 * passes][4], value[2][4];

    if ((int)blockIdx.z * ATTEND_CHUNK >= end) /* the whole block; so too where there is no tile */
        return;
    size_t offset = ((size_t)work.launch.rows.slot[tile.first] * cache.kv_heads + blockIdx.y) * cache.context * cache.head_dim;
    const uint16_t *keys = cache.keys + offset, *values = cache.values + offset;

    load_keys<passes, aligned>(keys, first, end, 0, cache.head_dim, lane, key);
    load_values<aligned>(values, first, end, 0, cache.head_dim, lane, value);
    stage_queries(work, view, steps, lane, shared.staged);
    for (int half = 0; half < 2 && threadIdx.x < 32 && lane % 4 == 0; half++) {
        shared.index[lane / 4 + 8 * half] = view[half].row < 0 ? -1 : view[half].row * cache.heads + view[half].head;
        shared.ends[lane / 4 + 8 * half] = half == 0 ? end0 : end1;
    }
    __syncthreads();
    take_scores<passes>(shared.staged, key, lane, score);
#pragma unroll 1
    for (int d = passes * PASS; d < cache.head_dim; d += passes * PASS) {
        load_keys<passes, aligned>(keys, first, end, d, cache.head_dim, lane, key);
        take_scores<passes>(shared.staged + d / 16 * 64, key, lane, score);
    }
    find_largest(score, seen, lane, largest);
    for (int half = 0; half < 2 && lane % 4 == 0; half++)
        shared.largest[warp][lane / 4 + 8 * half] = largest[half];
    __syncthreads();
    for (int half = 0; half < 2; half++)
        largest[half] = largest_of_warps(shared, lane / 4 + 8 * half);
    weighed = weigh(score, seen, largest, lane, total);
    for (int half = 0; half < 2 && lane % 4 == 0; half++)
        shared.total[warp][lane / 4 + 8 * half] = total[half];
#pragma unroll 1
    for (int d = 0; d < cache.head_dim; d += PASS) {
        float sum[8][4] = {};

        sum_values(weighed, value, lane, sum);
        if (d + PASS < cache.head_dim)
            load_values<aligned>(values, first, end, d + PASS, cache.head_dim, lane, value);
        put_sums(sum, lane, shared.sum[warp]);
        __syncthreads();
        store_pass(work, shared, d);
        __syncthreads();
    }
}

/* One warp: the chunks of one query. A row that ends in the first has been done. */
__global__ __launch_bounds__(32) void join_kernel(const __grid_constant__ struct work work)
{
    overlap_allow();
    overlap_wait();
    const struct kernel_cache &cache = work.launch.cache;
    int lane = (int)threadIdx.x, row = (int)blockIdx.x / cache.heads;
    int end = row_end(work.launch.rows.base[row], work.launch.rows.ancestors[row], cache.context);
    int chunks = (end + ATTEND_CHUNK - 1) / ATTEND_CHUNK;
    const float2 *weights = work.weights + (size_t)blockIdx.x * work.chunks;
    const float *sums = work.sums + (size_t)blockIdx.x * work.chunks * cache.head_dim;
    float largest = -INFINITY;

    if (chunks <= 1)
        return;
    for (int c = lane; c < chunks; c += 32)
        largest = fmaxf(largest, weights[c].x);
    for (int by = 16; by > 0; by /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, by));
    for (int d = 2 * lane; d < cache.head_dim; d += 64) {
        float total[CHAINS] = {}, x[CHAINS] = {}, y[CHAINS] = {};
        size_t at = (size_t)blockIdx.x * cache.head_dim + d;

#pragma unroll 2
        for (int c = 0; c < chunks; c += CHAINS)
#pragma unroll
            for (int i = 0; i < CHAINS; i++) {
                int is_there = c + i < chunks;
                float2 of = is_there ? weights[c + i] : float2{-INFINITY, 0.0f};
                float2 sum = is_there ? *(const float2 *)(const void *)(sums + (size_t)(c + i) * cache.head_dim + d) : float2{0.0f, 0.0f};
                float weight = is_there ? expf(of.x - largest) : 0.0f;

                total[i] = __fmaf_rn(weight, of.y, total[i]);
                x[i] = __fmaf_rn(weight, sum.x, x[i]);
                y[i] = __fmaf_rn(weight, sum.y, y[i]);
            }
        warp_put(work.launch.to, work.launch.gives, at, ((x[0] + x[1]) + (x[2] + x[3])) / ((total[0] + total[1]) + (total[2] + total[3])) + 0.0f);
        warp_put(work.launch.to, work.launch.gives, at + 1, ((y[0] + y[1]) + (y[2] + y[3])) / ((total[0] + total[1]) + (total[2] + total[3])) + 0.0f);
    }
}

template <int passes, bool aligned> void start(const struct work &work, dim3 grid, cudaStream_t stream)
{
    struct work copy = work;

    LAUNCH_AHEAD((attend_kernel<passes, aligned>), grid, ATTEND_WARPS * 32, shared_bytes(steps_of(work.launch.cache.head_dim, passes)),
                 stream, work.launch.overlaps, copy);
}

void start_any(const struct work &work, dim3 grid, cudaStream_t stream)
{
    int head_dim = work.launch.cache.head_dim;

    if (head_dim % 8 != 0)
        start<1, false>(work, grid, stream);
    else if (head_dim <= PASS)
        start<1, true>(work, grid, stream);
    else
        start<2, true>(work, grid, stream);
}

size_t row_bytes(int width, int heads, int chunks)
{
    return (size_t)chunks * ((size_t)width * sizeof(float) + (size_t)heads * sizeof(float2));
}
} // namespace

int attend_prepare(void)
{
    int error = SHARED_PREFER((attend_kernel<1, false>)); /* no more than every kernel may have */

    error = error != 0 ? error : SHARED_PREFER((attend_kernel<1, true>));
    error = error != 0 ? error : SHARED_PREFER((attend_kernel<2, true>));
    return error != 0 ? error : SHARED_PREFER(join_kernel);
}

/* As heads have at least two dimensions. Never falls when one of the two rises. */
size_t attend_scratch_bytes(int width, int context)
{
    size_t row = row_bytes(width, width / 2, (context + ATTEND_CHUNK - 1) / ATTEND_CHUNK), most = row * KERNEL_ROWS;

    return most < SCRATCH_MOST ? most : row > SCRATCH_MOST ? row : SCRATCH_MOST;
}

void attend_start(const struct attend_launch *launch, struct CUstream_st *stream)
{
    const struct kernel_cache *cache = &launch->cache;
    int width = cache->heads * cache->head_dim, group = cache->heads / cache->kv_heads;
    int longest = launch->longest < cache->context ? launch->longest : cache->context, chunks = (longest + ATTEND_CHUNK - 1) / ATTEND_CHUNK;
    size_t at_once = launch->scratch_bytes / row_bytes(width, cache->heads, chunks);
    struct work work = {*launch, chunks, NULL, (float *)launch->scratch};

    /* More rows than the scratch holds go in several launches: it is no matter to a row which others are with it. */
    for (int first = 0; first < launch->rows.count; first += work.launch.rows.count) {
        int left = launch->rows.count - first, count = (size_t)left < at_once ? left : (int)at_once;

        work.launch.rows = {count,
                            launch->rows.position + first,
                            launch->rows.slot + first,
                            launch->rows.place + first,
                            launch->rows.base + first,
                            launch->rows.ancestors + first};
        work.launch.q = launch->q + (size_t)first * width;
        work.launch.to = (char *)launch->to + (size_t)first * width * kernel_numbers_bytes(launch->gives);
        work.weights = (float2 *)(void *)(work.sums + (size_t)count * width * chunks);
        start_any(work, dim3(count * ((group + ATTEND_QUERIES - 1) / ATTEND_QUERIES), cache->kv_heads, chunks), stream);
        if (chunks > 1)
            LAUNCH_AHEAD(join_kernel, count * cache->heads, 32, 0, stream, launch->overlaps, work);
    }
}
