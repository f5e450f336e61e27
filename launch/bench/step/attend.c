#include "launch/bench/step/attend.h"

#include "common/backend/backend.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "launch/bench/step/peaks.h"
#include <stdio.h>
#include <string.h>

enum { LAYERS = 8, HEADS = 9, KV_HEADS = 3, HEAD_DIM = 64, MOST_PLACES = 8192 };
#define MEASURE_NS 300000000 /* per line, at least */

struct rig {
    struct backend_context *context;
    struct arena arena;
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

static enum status rig_open(struct rig *rig, int threads, const char *isa, enum dtype dtype)
{
    const struct backend_options options = {
        .threads = threads, .max_rows = BACKEND_MAX_ROWS, .max_qkv = (HEADS + 2 * KV_HEADS) * HEAD_DIM, .max_context = MOST_PLACES, .isa = isa};
    size_t side = (size_t)KV_HEADS * MOST_PLACES * HEAD_DIM, rows = (size_t)BACKEND_MAX_ROWS * HEADS * HEAD_DIM;
    size_t bytes = 2 * LAYERS * arena_round(side * dtype_bytes(dtype)) + 2 * arena_round(rows * sizeof(float));

    TRY(backend_cpu.open(&options, &rig->context));
    TRY(backend_cpu.memory_open(rig->context, bytes, "the cache", &rig->arena));
    for (int i = 0; i < LAYERS; i++) {
        rig->layer[i] = (struct cache_layer){dtype, arena_take(&rig->arena, side * dtype_bytes(dtype)), arena_take(&rig->arena, side * dtype_bytes(dtype))};
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
    backend_cpu.memory_close(rig->context, &rig->arena);
    backend_cpu.close(rig->context);
}

/* Nanoseconds of one layer, the least; the last of the rows sees `places`. */
static double best_ns(struct rig *rig, int row_count, int places)
{
    const struct layer_shape shape = {.heads = HEADS, .kv_heads = KV_HEADS, .head_dim = HEAD_DIM, .context = MOST_PLACES};
    int32_t slot[BACKEND_MAX_ROWS] = {0}, place[BACKEND_MAX_ROWS], base[BACKEND_MAX_ROWS];
    uint64_t ancestors[BACKEND_MAX_ROWS];
    struct rows rows = {.count = row_count, .slot = slot, .place = place, .base = base, .ancestors = ancestors};
    int64_t begun = clock_ns(), best = INT64_MAX;

    for (int r = 0; r < row_count; r++) {
        place[r] = places - row_count + r;
        backend_see_chain(&rows, r, places - row_count, r);
    }
    do {
        for (int i = 0; i < LAYERS; i++) {
            int64_t start = clock_ns(), took;

            backend_cpu.attend(rig->context, &shape, NULL, &rows, rig->q, &rig->layer[i], rig->to);
            took = clock_ns() - start;
            best = took < best ? took : best;
        }
    } while (clock_ns() - begun < MEASURE_NS);
    return (double)best;
}

static double peak_of(const struct peaks *peaks, const char *isa)
{
    return isa == NULL || strncmp(isa, "avx512", 6) == 0 ? peaks->fma : strncmp(isa, "avx", 3) == 0 ? peaks->fma_avx2 : 0;
}

static enum status measure_dtype(int threads, const char *isa, enum dtype dtype)
{
    static const int rows[] = {1, 8, 64}, places[] = {1024, 4096, 8192};
    double ns[9], peak = 0; /* the largest of nine: what disturbs it would make the share larger */
    struct rig rig = {0};
    enum status status;

    TRY_TO(rig_open(&rig, threads, isa, dtype), close_rig);
    for (int i = 0; i < 9; i++) {
        struct peaks peaks;

        ns[i] = best_ns(&rig, rows[i / 3], places[i % 3]);
        if (peaks_measure(threads, (size_t)1 << 24, &peaks) && peak_of(&peaks, isa) > peak)
            peak = peak_of(&peaks, isa);
    }
    for (int i = 0; i < 9; i++) {
        double count = rows[i / 3], rate = 4 * HEAD_DIM * HEADS * (count * places[i % 3] - count * (count - 1) / 2) / ns[i];

        printf("{\"threads\": %d, \"isa\": \"%s\", \"cache\": \"%s\", \"rows\": %d, \"places\": %d, \"us\": %.1f, \"gflops\": %.1f, \"peak\": %.1f, \"share\": %.2f}\n",
               threads, isa != NULL ? isa : "best", dtype_name(dtype), rows[i / 3], places[i % 3], ns[i] * 1e-3, rate, peak, peak > 0 ? rate / peak : 0);
    }

close_rig:
    rig_close(&rig);
    return status;
}

enum status attend_measure(int threads, const char *isa)
{
    TRY(measure_dtype(threads, isa, DTYPE_F32));
    return measure_dtype(threads, isa, DTYPE_BF16);
}
