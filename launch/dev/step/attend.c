#include "launch/dev/step/attend.h"

#include "common/backend/backend.h"
#include "common/base/clock.h"
#include "common/base/try.h"
#include "launch/dev/step/peaks.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LAYERS = 8, CACHED_PLACES = 8 * 8192, HEADS = 9, KV_HEADS = 3, HEAD_DIM = 64 };
enum { SIZES = 3, DEPTHS = 5, PEAK_TIMES = 6 };
static const int sizes[SIZES] = {1, 8, 64}, depths[DEPTHS] = {1024, 4096, 8192, 32768, 131072}; /* rows; places */
#define MEASURE_NS 300000000 /* per line, at least */

/* Layers in turns, so that a step finds little of its own in the caches; so many as come to CACHED_PLACES, of which one is larger than any cache. */
struct rig {
    struct backend_context *context;
    struct arena arena;
    int threads, places, layers;
    struct cache_layer layer[LAYERS];
    float *q, *to; /* [BACKEND_MAX_ROWS][HEADS][HEAD_DIM] */
};

static void fill(void *numbers, enum dtype dtype, size_t count)
{
    uint32_t state = 1;

    for (size_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;

        float number = (float)(state >> 8) * 0x1p-23f - 1.0f;
        uint32_t bits;

        memcpy(&bits, &number, sizeof bits);
        if (dtype == DTYPE_F32)
            ((float *)numbers)[i] = number;
        else
            ((uint16_t *)numbers)[i] = (uint16_t)(bits >> 16);
    }
}

static enum status rig_open(struct rig *rig, int threads, const char *isa, enum dtype dtype, int places)
{
    const struct backend_options options = {
        .threads = threads, .max_rows = BACKEND_MAX_ROWS, .max_qkv = (HEADS + 2 * KV_HEADS) * HEAD_DIM, .max_context = places, .isa = isa};
    size_t side = (size_t)KV_HEADS * (size_t)places * HEAD_DIM, rows = (size_t)BACKEND_MAX_ROWS * HEADS * HEAD_DIM, bytes;

    rig->threads = threads;
    rig->places = places;
    rig->layers = places >= CACHED_PLACES ? 1 : CACHED_PLACES / places > LAYERS ? LAYERS : CACHED_PLACES / places;
    bytes = 2 * (size_t)rig->layers * arena_round(side * dtype_bytes(dtype)) + 2 * arena_round(rows * sizeof(float));
    TRY(backend_cpu.open(&options, &rig->context));
    TRY(backend_cpu.memory.open(rig->context, bytes, "the cache", &rig->arena));
    for (int i = 0; i < rig->layers; i++) {
        rig->layer[i] =
            (struct cache_layer){dtype, arena_take(&rig->arena, side * dtype_bytes(dtype)), arena_take(&rig->arena, side * dtype_bytes(dtype))};
        fill(rig->layer[i].keys, dtype, side);
        fill(rig->layer[i].values, dtype, side);
    }
    rig->q = arena_take(&rig->arena, rows * sizeof(float));
    rig->to = arena_take(&rig->arena, rows * sizeof(float));
    fill(rig->q, DTYPE_F32, rows);
    return STATUS_OK;
}

static void rig_close(struct rig *rig)
{
    if (rig->context == NULL)
        return;
    backend_cpu.memory.close(rig->context, &rig->arena);
    backend_cpu.close(rig->context);
}

/* Of one thread the time that it had: a step behind many places takes longer than others leave a core alone. Of several that of the clock. */
static int64_t time_ns(int threads)
{
    struct timespec time;

    if (threads > 1 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0)
        return clock_ns();
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Nanoseconds of one layer, the least; the last of the rows sees all places. */
static double best_ns(struct rig *rig, int row_count)
{
    const struct layer_shape shape = {.heads = HEADS, .kv_heads = KV_HEADS, .head_dim = HEAD_DIM, .context = rig->places};
    int32_t slot[BACKEND_MAX_ROWS] = {0}, place[BACKEND_MAX_ROWS], base[BACKEND_MAX_ROWS];
    uint64_t ancestors[BACKEND_MAX_ROWS];
    struct rows rows = {.count = row_count, .slot = slot, .place = place, .base = base, .ancestors = ancestors};
    int64_t begun = clock_ns(), best = INT64_MAX;

    for (int r = 0; r < row_count; r++) {
        place[r] = rig->places - row_count + r;
        backend_see_chain(&rows, r, rig->places - row_count, r);
    }
    do {
        for (int i = 0; i < rig->layers; i++) {
            int64_t start = time_ns(rig->threads), took;

            backend_cpu.layer.attend(rig->context, &shape, NULL, &rows, rig->q, &rig->layer[i], rig->to);
            took = time_ns(rig->threads) - start;
            best = took < best ? took : best;
        }
    } while (clock_ns() - begun < MEASURE_NS);
    return (double)best;
}

static double peak_of(const struct peaks *peaks, const char *isa)
{
    return isa == NULL || strncmp(isa, "avx512", 6) == 0 ? peaks->fma : strncmp(isa, "avx", 3) == 0 ? peaks->fma_avx2 : 0;
}

/* The largest of all that were measured: what disturbs one would make a share larger. */
static double peak_again(int threads, const char *isa, double peak)
{
    for (int i = 0; i < PEAK_TIMES; i++) {
        struct peaks peaks;

        if (peaks_measure(threads, (size_t)1 << 24, &peaks) && peak_of(&peaks, isa) > peak)
            peak = peak_of(&peaks, isa);
    }
    return peak;
}

static enum status measure_places(int threads, const char *isa, enum dtype dtype, int places, double *peak)
{
    double ns[SIZES];
    struct rig rig = {0};
    enum status status;

    TRY_TO(rig_open(&rig, threads, isa, dtype, places), close_rig);
    for (int i = 0; i < SIZES; i++)
        ns[i] = best_ns(&rig, sizes[i]);
    *peak = peak_again(threads, isa, *peak);
    for (int i = 0; i < SIZES; i++) {
        double count = sizes[i], rate = 4 * HEAD_DIM * HEADS * (count * places - count * (count - 1) / 2) / ns[i];

        printf("{\"threads\": %d, \"isa\": \"%s\", \"cache\": \"%s\", \"rows\": %d, \"places\": %d, \"us\": %.1f, \"gflops\": %.1f, \"peak\": %.1f, "
               "\"share\": %.2f}\n",
               threads, isa != NULL ? isa : "best", dtype_name(dtype), sizes[i], places, ns[i] * 1e-3, rate, *peak, *peak > 0 ? rate / *peak : 0);
    }
    fflush(stdout);

close_rig:
    rig_close(&rig);
    return status;
}

enum status attend_measure(int threads, const char *isa)
{
    double peak = 0;

    for (int i = 0; i < DEPTHS; i++) {
        TRY(measure_places(threads, isa, DTYPE_F32, depths[i], &peak));
        TRY(measure_places(threads, isa, DTYPE_BF16, depths[i], &peak));
    }
    return STATUS_OK;
}
