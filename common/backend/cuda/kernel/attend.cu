/* Attention of the rows of a step over the cache, split by places (flash decoding).
 *
 * A block takes up to 16 queries over one chunk of 128 places: queries are the rows of one slot times the query heads that share a
 * key/value head, so that keys and values are read once for all of them. Where there are enough of them for all multiprocessors, as in a
 * long prompt, it takes four such tiles, one after the other. Each of its four warps has 32 of the places. Scores are
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
    JOINED = 8,          /* chunks on their way to a chain */
    TOGETHER = 4,        /* tiles of 16 queries for which keys and values are read once, at most */
};
const size_t SCRATCH_MOST = (size_t)128 << 20;
const size_t SCRATCH_ROWS = 16; /* have room at any context: those of one text and its drafts, of heads of 64 and more */

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

/* What the warps of a block know of 16 queries. */
struct known {
    float largest[ATTEND_WARPS][ATTEND_QUERIES], total[ATTEND_WARPS][ATTEND_QUERIES];
    int index[ATTEND_QUERIES]; /* of the query's row and head, -1 where there is none */
    int ends[ATTEND_QUERIES];  /* row_end */
};

/* What they share. */
struct shared {
    uint4 *staged;                          /* [steps][high, low][32] */
    float (*sum)[ATTEND_QUERIES][PASS_ROW]; /* [ATTEND_WARPS] */
    struct known *known;                    /* [tiles] */
};

/* Of 16 dimensions each, a whole number of times those of `passes`. */
__host__ __device__ int steps_of(int head_dim, int passes)
{
    return (head_dim + passes * PASS - 1) / (passes * PASS) * passes * (PASS / 16);
}

size_t shared_bytes(int steps, int together)
{
    return (size_t)steps * STEP_BYTES + sizeof(float) * ATTEND_WARPS * ATTEND_QUERIES * PASS_ROW + (size_t)together * sizeof(struct known);
}

__device__ struct shared lay_out(unsigned char *memory, int steps)
{
    struct shared shared;

    shared.staged = (uint4 *)(void *)memory;
    shared.sum = (float(*)[ATTEND_QUERIES][PASS_ROW])(void *)(memory + steps * STEP_BYTES);
    shared.known = (struct known *)(void *)(shared.sum + ATTEND_WARPS);
    return shared;
}

/* The largest score of the chunk, from the warps'. */
__device__ float largest_of_warps(const struct known &known, int query)
{
    float largest = known.largest[0][query];

    for (int w = 1; w < ATTEND_WARPS; w++)
        largest = fmaxf(largest, known.largest[w][query]);
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

/* The warps' sums of a pass together, four dimensions a thread: the outcome of a row that ends in the first chunk, else this chunk's part. */
__device__ void store_pass(const struct work &work, const struct shared &shared, const struct known &known, int first_d)
{
    int head_dim = work.launch.cache.head_dim;

    for (int i = (int)threadIdx.x; i < ATTEND_QUERIES * (PASS / 4); i += ATTEND_WARPS * 32) {
        int query = i / (PASS / 4), column = i % (PASS / 4) * 4, d = first_d + column, index = known.index[query];
        float total = (known.total[0][query] + known.total[1][query]) + (known.total[2][query] + known.total[3][query]), sum[4];
        float4 of[ATTEND_WARPS];

        if (index < 0)
            continue;
#pragma unroll
        for (int w = 0; w < ATTEND_WARPS; w++)
            of[w] = *(const float4 *)(const void *)&shared.sum[w][query][column];
        sum[0] = (of[0].x + of[1].x) + (of[2].x + of[3].x);
        sum[1] = (of[0].y + of[1].y) + (of[2].y + of[3].y);
        sum[2] = (of[0].z + of[1].z) + (of[2].z + of[3].z);
        sum[3] = (of[0].w + of[1].w) + (of[2].w + of[3].w);
        if (known.ends[query] <= ATTEND_CHUNK) {
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (blockIdx.x == 0 && d + k < head_dim)
                    warp_put(work.launch.to, work.launch.gives, (size_t)index * head_dim + d + k, sum[k] / total + 0.0f);
            continue;
        }
        size_t part = (size_t)index * work.chunks + blockIdx.x;
#pragma unroll
        for (int k = 0; k < 4; k += 2)
            if (d + k < head_dim)
                *(float2 *)(void *)(work.sums + part * head_dim + d + k) = {sum[k], sum[k + 1]};
        if (d == 0)
            work.weights[part] = {largest_of_warps(known, query), total};
    }
}

/* Blocks of the same tiles follow each other, so that those without one, where rows share a slot, come last. Several tiles are for keys that registers
 * hold whole, so that these and the first values are read once, and no others but the values of later passes. */
template <int passes, bool aligned, typename N, int together>
__global__ __launch_bounds__(ATTEND_WARPS * 32) void attend_kernel(const __grid_constant__ struct work work)
{
    SHARED(memory);
    overlap_allow();
    const struct kernel_cache &cache = work.launch.cache;
    int steps = steps_of(cache.head_dim, passes), group = cache.heads / cache.kv_heads;
    struct shared shared = lay_out(memory, steps);
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, first = (int)blockIdx.x * ATTEND_CHUNK + warp * ATTEND_STRETCH;
    struct tile tile = find_tile(work.launch.rows, group, together * ATTEND_QUERIES, (int)blockIdx.z, lane);

    if (tile.rows == 0) { /* the whole block */
        overlap_wait();
        return;
    }
    int tiles = min(together, (tile.rows * group - tile.query + ATTEND_QUERIES - 1) / ATTEND_QUERIES), end = 0;
    struct view view[2];
    struct weighed weighed[together];
    uint4 key[2 * passes][4], value[2][4];

#pragma unroll
    for (int i = together - 1; i >= 0; i--) /* the first one's views stay */
        for (int half = 0; half < 2; half++) {
            view[half] = find_view(work, tile, i * ATTEND_QUERIES + lane / 4 + 8 * half);
            end = max(end, row_end(view[half].base, view[half].ancestors, cache.context));
        }
    end = largest_of_eight(end);
    overlap_wait();                             /* up to here only what the host has sent, ahead of all kernels of the step */
    if ((int)blockIdx.x * ATTEND_CHUNK >= end) /* the whole block */
        return;
    size_t offset = ((size_t)warp_fresh(work.launch.rows.slot + tile.first) * cache.kv_heads + blockIdx.y) * cache.context * cache.head_dim;
    const N *keys = (const N *)cache.keys + offset, *values = (const N *)cache.values + offset;

    load_keys<passes, aligned>(keys, first, end, 0, cache.head_dim, lane, key);
    load_values<aligned>(values, first, end, 0, cache.head_dim, lane, value);
#pragma unroll
    for (int i = 0; i < together; i++) {
        if (i >= tiles) /* the whole block */
            break;
        struct known &known = shared.known[i];
        float score[4][4] = {}, largest[2], total[2];

        for (int half = 0; half < 2 && i > 0; half++)
            view[half] = find_view(work, tile, i * ATTEND_QUERIES + lane / 4 + 8 * half);
        unsigned seen[2] = {seen_places(view[0], first), seen_places(view[1], first)};

        stage_queries(work, view, steps, lane, shared.staged);
        for (int half = 0; half < 2 && threadIdx.x < 32 && lane % 4 == 0; half++) {
            known.index[lane / 4 + 8 * half] = view[half].row < 0 ? -1 : view[half].row * cache.heads + view[half].head;
            known.ends[lane / 4 + 8 * half] = row_end(view[half].base, view[half].ancestors, cache.context);
        }
        __syncthreads();
        take_scores<passes>(shared.staged, key, lane, score);
#pragma unroll 1
        for (int d = passes * PASS; together == 1 && d < cache.head_dim; d += passes * PASS) {
            load_keys<passes, aligned>(keys, first, end, d, cache.head_dim, lane, key);
            take_scores<passes>(shared.staged + d / 16 * 64, key, lane, score);
        }
        find_largest(score, seen, lane, largest);
        for (int half = 0; half < 2 && lane % 4 == 0; half++)
            known.largest[warp][lane / 4 + 8 * half] = largest[half];
        __syncthreads();
        for (int half = 0; half < 2; half++)
            largest[half] = largest_of_warps(known, lane / 4 + 8 * half);
        weighed[i] = weigh(score, seen, largest, lane, total);
        for (int half = 0; half < 2 && lane % 4 == 0; half++)
            known.total[warp][lane / 4 + 8 * half] = total[half];
    }
#pragma unroll 1
    for (int d = 0; d < cache.head_dim; d += PASS) {
#pragma unroll
        for (int i = 0; i < together; i++) {
            if (i >= tiles) /* the whole block */
                break;
            float sum[8][4] = {};
            bool mended = sum_values(weighed[i], value, lane, sum), last = i + 1 == tiles;

            if (last ? d + PASS < cache.head_dim : mended)
                load_values<aligned>(values, first, end, last ? d + PASS : d, cache.head_dim, lane, value);
            put_sums(sum, lane, shared.sum[warp]);
            __syncthreads();
            store_pass(work, shared, shared.known[i], d);
            __syncthreads();
        }
    }
}

/* The chunks of one query. A row that ends in the first has been done. A warp has a chain of them, so many on their way to it at once; a lane has
 * pairs of dimensions that lie 64 apart. */
template <int pairs> __global__ __launch_bounds__(CHAINS * 32) void join_kernel(const __grid_constant__ struct work work)
{
    SHARED(memory);
    overlap_allow();
    const struct kernel_cache &cache = work.launch.cache;
    int lane = (int)threadIdx.x % 32, chain = (int)threadIdx.x / 32, row = (int)blockIdx.x / cache.heads, dims = cache.head_dim;
    int end = row_end(warp_fresh(work.launch.rows.base + row), warp_fresh(work.launch.rows.ancestors + row), cache.context);
    int chunks = (end + ATTEND_CHUNK - 1) / ATTEND_CHUNK;
    const float2 *weights = work.weights + (size_t)blockIdx.x * work.chunks;
    const float *sums = work.sums + (size_t)blockIdx.x * work.chunks * dims;
    float *joined = (float *)(void *)memory, *totals = joined + CHAINS * dims; /* [CHAINS][dims], [CHAINS] */
    float largest = -INFINITY, total = 0.0f;
    float2 x[pairs] = {};

    overlap_wait();
    if (chunks <= 1)
        return;
    for (int c = lane; c < chunks; c += 32)
        largest = fmaxf(largest, weights[c].x);
    for (int by = 16; by > 0; by /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, by));
    for (int first = chain; first < chunks; first += JOINED * CHAINS) {
        float2 of[JOINED], sum[JOINED][pairs];

#pragma unroll
        for (int i = 0; i < JOINED; i++) {
            int c = min(first + i * CHAINS, chunks - 1);

            of[i] = weights[c];
#pragma unroll
            for (int k = 0; k < pairs; k++)
                sum[i][k] = *(const float2 *)(const void *)(sums + (size_t)c * dims + min(2 * lane + 64 * k, dims - 2));
        }
        warp_in_turn();
#pragma unroll
        for (int i = 0; i < JOINED; i++) {
            float weight = first + i * CHAINS < chunks ? expf(of[i].x - largest) : 0.0f;

            total = __fmaf_rn(weight, of[i].y, total);
#pragma unroll
            for (int k = 0; k < pairs; k++)
                x[k] = {__fmaf_rn(weight, sum[i][k].x, x[k].x), __fmaf_rn(weight, sum[i][k].y, x[k].y)};
        }
    }
#pragma unroll
    for (int k = 0; k < pairs; k++)
        if (2 * lane + 64 * k < dims)
            *(float2 *)(void *)(joined + chain * dims + 2 * lane + 64 * k) = x[k];
    if (lane == 0)
        totals[chain] = total;
    __syncthreads();
    total = (totals[0] + totals[1]) + (totals[2] + totals[3]);
    for (int d = (int)threadIdx.x; d < dims; d += CHAINS * 32) {
        float sum = (joined[d] + joined[dims + d]) + (joined[2 * dims + d] + joined[3 * dims + d]);

        warp_put(work.launch.to, work.launch.gives, (size_t)blockIdx.x * dims + d, sum / total + 0.0f);
    }
}

template <int passes, bool aligned, typename N, int together> void start(const struct work &work, dim3 grid, cudaStream_t stream)
{
    struct work copy = work;

    LAUNCH_AHEAD((attend_kernel<passes, aligned, N, together>), grid, ATTEND_WARPS * 32,
                 shared_bytes(steps_of(work.launch.cache.head_dim, passes), together), stream, work.launch.overlaps, copy);
}

/* Tiles for which keys and values are read once: several where rows of a slot have as many, and as many blocks are left as the device takes at once.
 */
int together_of(const struct work &work)
{
    const struct kernel_cache &cache = work.launch.cache;
    int queries = work.launch.rows.count * (cache.heads / cache.kv_heads), blocks = work.chunks * cache.kv_heads * (queries / (TOGETHER * ATTEND_QUERIES));

    return queries >= work.launch.runs * TOGETHER * ATTEND_QUERIES && cache.head_dim % 8 == 0 && cache.head_dim <= 2 * PASS && blocks >= 2 * work.launch.processors ? TOGETHER : 1;
}

/* N: what the cache's numbers lie in */
template <typename N> void start_of(const struct work &work, cudaStream_t stream)
{
    int head_dim = work.launch.cache.head_dim, group = work.launch.cache.heads / work.launch.cache.kv_heads, together = together_of(work);
    int tiles = work.launch.rows.count * ((group + together * ATTEND_QUERIES - 1) / (together * ATTEND_QUERIES));
    dim3 grid(work.chunks, work.launch.cache.kv_heads, tiles); /* as many tiles as rows of a slot each would have */

    if (head_dim % 8 != 0)
        start<1, false, N, 1>(work, grid, stream);
    else if (head_dim <= PASS && together > 1)
        start<1, true, N, TOGETHER>(work, grid, stream);
    else if (head_dim <= PASS)
        start<1, true, N, 1>(work, grid, stream);
    else if (together > 1)
        start<2, true, N, TOGETHER>(work, grid, stream);
    else
        start<2, true, N, 1>(work, grid, stream);
}

void start_any(const struct work &work, cudaStream_t stream)
{
    if (work.launch.cache.is_e4m3)
        start_of<uint8_t>(work, stream);
    else
        start_of<uint16_t>(work, stream);
}

template <typename N> int prepare_of()
{
    int error = SHARED_PREFER((attend_kernel<1, false, N, 1>)); /* no more than every kernel may have */

    error = error != 0 ? error : SHARED_PREFER((attend_kernel<1, true, N, 1>));
    error = error != 0 ? error : SHARED_PREFER((attend_kernel<1, true, N, TOGETHER>));
    error = error != 0 ? error : SHARED_PREFER((attend_kernel<2, true, N, 1>));
    return error != 0 ? error : SHARED_PREFER((attend_kernel<2, true, N, TOGETHER>));
}

template <int pairs> void join(const struct work &work, cudaStream_t stream)
{
    const struct kernel_cache &cache = work.launch.cache;

    LAUNCH_AHEAD(join_kernel<pairs>, work.launch.rows.count * cache.heads, CHAINS * 32, sizeof(float) * CHAINS * (cache.head_dim + 1), stream,
                 work.launch.overlaps, work);
}

void join_any(const struct work &work, cudaStream_t stream)
{
    if (work.launch.cache.head_dim <= 64)
        join<1>(work, stream);
    else if (work.launch.cache.head_dim <= 128)
        join<2>(work, stream);
    else
        join<4>(work, stream);
}

size_t row_bytes(int width, int heads, int chunks)
{
    return (size_t)chunks * ((size_t)width * sizeof(float) + (size_t)heads * sizeof(float2));
}
} // namespace

int attend_prepare(void)
{
    int error = prepare_of<uint16_t>();

    error = error != 0 ? error : prepare_of<uint8_t>();
    error = error != 0 ? error : SHARED_PREFER(join_kernel<1>);
    error = error != 0 ? error : SHARED_PREFER(join_kernel<2>);
    return error != 0 ? error : SHARED_PREFER(join_kernel<4>);
}

/* As heads have at least two dimensions. Never falls when one of the two rises. */
size_t attend_scratch_bytes(int width, int context)
{
    int chunks = (context + ATTEND_CHUNK - 1) / ATTEND_CHUNK;
    size_t most = row_bytes(width, width / 2, chunks) * KERNEL_ROWS, least = row_bytes(width, width / PASS, chunks) * SCRATCH_ROWS;

    return most < SCRATCH_MOST ? most : least > SCRATCH_MOST ? least : SCRATCH_MOST;
}

void attend_start(const struct attend_launch *launch, struct CUstream_st *stream)
{
    const struct kernel_cache *cache = &launch->cache;
    int width = cache->heads * cache->head_dim;
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
        start_any(work, stream);
        if (chunks > 1)
            join_any(work, stream);
    }
}
