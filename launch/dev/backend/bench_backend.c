/* What one core of this machine reads and multiplies: the bandwidth of a plain sum over memory, and the packed matrix product at
 * the row counts of decoding. Minimum over repetitions, since neighbours only ever slow things down.
 *
 * usage: bench_backend [isa] [threads] */
#include "common/backend/backend.h"
#include "common/base/arena.h"
#include "common/base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { MEGABYTE = 1 << 20, GROUP = 128 /* of Q4_Z */ };

typedef float float16_lanes __attribute__((vector_size(64), aligned(64)));

static volatile float sink;

#if defined(__x86_64__)
#define WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WIDEST
#endif

/* Four sums side by side, each a whole cache line per step. */
WIDEST static float sum_memory(const float *from, size_t count)
{
    const float16_lanes *lanes = (const float16_lanes *)(const void *)from;
    float16_lanes sum[4] = {{0}};
    float total = 0;

    for (size_t i = 0; i < count / 16; i += 4)
        for (int j = 0; j < 4; j++)
            sum[j] += lanes[i + (size_t)j];
    for (int j = 0; j < 4; j++)
        for (int lane = 0; lane < 16; lane++)
            total += sum[j][lane];
    return total;
}

static double stream_rate(size_t bytes, int times)
{
    struct arena arena;
    int64_t best = INT64_MAX;
    float *memory;

    if (arena_open(&arena, bytes, "the stream") != STATUS_OK)
        exit(STATUS_INTERNAL);
    memory = arena_take(&arena, bytes);
    for (size_t i = 0; i < bytes / sizeof *memory; i++)
        memory[i] = 1.0f;
    for (int i = 0; i < times; i++) {
        int64_t start = clock_ns(), took;

        sink = sum_memory(memory, bytes / sizeof *memory);
        took = clock_ns() - start;
        best = took < best ? took : best;
    }
    arena_close(&arena);
    return (double)bytes / (double)best;
}

/* Halves of bf16 around +-0.01, even ones: bytes of F8 are numbers then; of a dtype of blocks they are scales and integers alike, which is as good. */
static struct matrix *pack_random(struct backend_context *context, enum dtype dtype, int columns, int outputs, struct arena *arena)
{
    const void **rows = malloc((size_t)outputs * sizeof *rows);
    size_t row_bytes = dtype_row_bytes(dtype, (size_t)columns), halves = row_bytes / 2 * (size_t)outputs;
    uint16_t *weights = malloc(halves * sizeof *weights);
    struct matrix_source source = {.rows = rows, .outputs = outputs, .columns = columns, .dtype = dtype, .slices = 1, .group = GROUP};
    struct matrix *matrix;
    uint32_t state = 1;

    if (rows == NULL || weights == NULL)
        exit(STATUS_INTERNAL);
    for (size_t i = 0; i < halves; i++) {
        state = state * 1664525 + 1013904223;
        weights[i] = (uint16_t)(0x3c00 + (state >> 16 & 0x81fe));
    }
    for (int o = 0; o < outputs; o++)
        rows[o] = weights + (size_t)o * (row_bytes / 2);
    if (arena_open(arena, backend_cpu.linear.matrix_bytes(&source), "the matrix") != STATUS_OK ||
        backend_cpu.linear.matrix_pack(context, &source, arena, &matrix) != STATUS_OK)
        exit(STATUS_INTERNAL);
    free(rows);
    free(weights);
    return matrix;
}

static double best_ns(struct backend_context *context, const struct matrix *matrix, int rows, const float *from, float *to, int times)
{
    int64_t best = INT64_MAX;

    for (int i = 0; i < times; i++) {
        int64_t start = clock_ns(), took;

        backend_cpu.linear.matmul(context, matrix, rows, from, to);
        took = clock_ns() - start;
        best = took < best ? took : best;
    }
    return (double)best;
}

static void bench_shape(struct backend_context *context, enum dtype dtype, int columns, int outputs, double stream)
{
    static const int rows[] = {1, 2, 4, 5, 6, 8, 12, 16, 64};
    double weights = (double)columns * outputs, bytes;
    int times = weights > 4e6 ? 60 : 2000;
    struct arena arena;
    struct matrix *matrix = pack_random(context, dtype, columns, outputs, &arena);
    float *from = calloc(64 * (size_t)columns, sizeof *from), *to = calloc(64 * (size_t)outputs, sizeof *to);

    if (from == NULL || to == NULL)
        exit(STATUS_INTERNAL);
    for (int i = 0; i < 64 * columns; i++)
        from[i] = 0.001f * (float)(i % 2003 - 1001);
    bytes = (double)arena.size; /* as they are packed */
    printf("%dx%d %s, %.1f MB\n", columns, outputs, dtype_name(dtype), 1e-6 * bytes);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double ns = best_ns(context, matrix, rows[i], from, to, times);

        printf("  rows %2d  %9.1f us  %6.1f GB/s (%3.0f %% of the 16 MB stream)  %6.1f GOP/s\n", rows[i], ns * 1e-3, bytes / ns,
               100 * bytes / ns / stream, 2 * rows[i] * weights / ns);
    }
    free(from);
    free(to);
    arena_close(&arena);
}

int main(int count, char **arguments)
{
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F8, DTYPE_Q8_0, DTYPE_Q4_0, DTYPE_Q4_1, DTYPE_Q4_Z, DTYPE_Q4_K, DTYPE_Q6_K};
    struct backend_options options = {.threads = count > 2 ? atoi(arguments[2]) : 1, .isa = count > 1 ? arguments[1] : NULL, .max_columns = 576};
    struct backend_context *context;
    double near = stream_rate(16 * MEGABYTE, 50), far = stream_rate((size_t)256 * MEGABYTE, 8);
    enum status status = backend_cpu.open(&options, &context);

    if (status != STATUS_OK)
        return (int)status;
    printf("%s\nstream of one core: %.1f GB/s over 16 MB, %.1f GB/s over 256 MB, %.1f GB/s over 1 MB\n", backend_cpu.describe(context),
           near, far, stream_rate(MEGABYTE, 500));
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        int wide = 576 % dtype_block(dtypes[i]) == 0 ? 576 : 512; /* whole blocks */

        bench_shape(context, dtypes[i], 256, 704, near);
        bench_shape(context, dtypes[i], wide, 1536, near);
        bench_shape(context, dtypes[i], wide, 49152, near);
    }
    backend_cpu.close(context);
    return 0;
}
