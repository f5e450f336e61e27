/* bench_step: how fast steps of a model are on the CPU of this machine, and how exact, as one JSON object a line.
 *
 *   bench_step peaks THREADS                              what the cores can do: memory, float32, bytes
 *   bench_step steps THREADS TIMES MODEL                  ns of steps of 1 .. 16 rows with the logits of all, and of a prompt of 512
 *                                                         tokens with the last's; what is multiplied for a row; peaks, read over as many
 *                                                         bytes as the weights have
 *   bench_step deep THREADS TIMES MODEL PLACES            ns, the least, of steps of 1, 4 and 8 rows behind so many others, with the cache in float32,
 *                                                         bf16 and E4M3, in turns
 *   bench_step attend THREADS [ISA]                       attention alone: GFLOP/s and the share of what the cores multiply at most
 *   bench_step quality THREADS FLOAT32 MODEL TEXT N [WHAT]    differences from the same weights in float32 over N positions of a text; WHAT: the
 *                                                         cache of MODEL is in f32 (the default), bf16 or fp8 */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "launch/dev/step/attend.h"
#include "launch/dev/step/engine.h"
#include "launch/dev/step/peaks.h"
#include "launch/dev/step/quality.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT = 512, DEPTH = 32, MOST_TIMES = 1000 };
#define WARM_NS 200000000 /* new threads may share one core until the scheduler spreads them */

static int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int64_t median(int64_t *ns, int count)
{
    qsort(ns, (size_t)count, sizeof *ns, compare_ns);
    return ns[count / 2];
}

/* Any tokens: what they are changes no time. */
static void fill(const struct model *model, int32_t *tokens, int count)
{
    for (int i = 0; i < count; i++)
        tokens[i] = (int32_t)((uint32_t)(i + 1) * UINT32_C(2654435761) % (uint32_t)model->vocab);
}

/* One step of `rows` rows behind 32 to 63 others, or a whole prompt in as few steps as there can be. */
static enum status take_once(struct engine *engine, const int32_t *tokens, int rows, int turn)
{
    if (rows <= 16)
        return engine_step(engine, tokens, DEPTH + turn % DEPTH, rows, rows);
    for (int at = 0; at < rows; at += BACKEND_MAX_ROWS)
        TRY(engine_step(engine, tokens + at, at, BACKEND_MAX_ROWS, at + BACKEND_MAX_ROWS == rows));
    return STATUS_OK;
}

static enum status measure_rows(struct engine *engine, const int32_t *tokens, int rows, int times, const char *before)
{
    int64_t ns[MOST_TIMES] = {0};

    for (int t = -1; t < times; t++) { /* the first one is not counted */
        int64_t start = clock_ns();

        TRY(take_once(engine, tokens, rows, t + 1));
        if (t >= 0)
            ns[t] = clock_ns() - start;
    }
    printf("%s\"%d\": %lld", before, rows, (long long)median(ns, times));
    return STATUS_OK;
}

/* Weights that each row of a step is multiplied with. */
static double weights_of(const struct config *config)
{
    double heads = (double)(config->heads + config->kv_heads) * config->head_dim;
    double layer = 2 * heads * config->hidden + 3 * (double)config->ffn * config->hidden;

    return config->layers * layer + (double)config->vocab * config->hidden;
}

static enum status measure_steps(const char *path, int threads, int times)
{
    static const int rows[] = {1, 2, 4, 8, 16, PROMPT};
    int32_t tokens[PROMPT];
    struct engine engine;
    struct peaks peaks = {0};
    enum status status = STATUS_OK;

    TRY(engine_open(&engine, path, threads, PROMPT, CACHE_AUTO));
    fill(engine.model, tokens, PROMPT);
    for (int64_t start = clock_ns(); clock_ns() - start < WARM_NS;)
        TRY_TO(engine_step(&engine, tokens, 0, 2 * DEPTH, 0), close_engine); /* what the steps see */
    printf("{\"threads\": %d, \"packed_bytes\": %zu, \"ns\": {", threads, model_bytes(engine.model));
    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == STATUS_OK; i++)
        status = measure_rows(&engine, tokens, rows[i], rows[i] == PROMPT ? (times + 7) / 8 : times, i > 0 ? ", " : "");
    if (status == STATUS_OK && !peaks_measure(threads, model_bytes(engine.model), &peaks))
        status = STATUS_INTERNAL;
    printf("}, \"weights\": %.0f, \"read\": %.4g, \"fma\": %.5g, \"fma_avx2\": %.5g, \"vnni\": %.5g}\n", weights_of(&engine.model->config), peaks.read, peaks.fma,
           peaks.fma_avx2, peaks.vnni);

close_engine:
    engine_close(&engine);
    return status;
}

enum { DEEP_ROWS = 3, DEEP_CACHES = 3 };
static const enum cache_choice deep_caches[DEEP_CACHES] = {CACHE_F32, CACHE_BF16, CACHE_E4M3};
static const int deep_rows[DEEP_ROWS] = {1, 4, 8};

static enum status open_deep(struct engine *engine, const char *path, int threads, int places, enum cache_choice cache)
{
    int32_t tokens[BACKEND_MAX_ROWS];

    TRY(engine_open(engine, path, threads, places + BACKEND_MAX_ROWS, cache));
    fill(engine->model, tokens, BACKEND_MAX_ROWS);
    for (int at = 0; at < places; at += BACKEND_MAX_ROWS)
        TRY(engine_step(engine, tokens, at, BACKEND_MAX_ROWS, 0));
    return STATUS_OK;
}

/* least: [DEEP_ROWS] */
static enum status measure_deep_rows(struct engine *engine, int places, int64_t *least)
{
    int32_t tokens[BACKEND_MAX_ROWS];

    fill(engine->model, tokens, BACKEND_MAX_ROWS);
    for (int i = 0; i < DEEP_ROWS; i++) {
        int64_t start = clock_ns(), ns;

        TRY(engine_step(engine, tokens, places, deep_rows[i], deep_rows[i]));
        ns = clock_ns() - start;
        least[i] = least[i] == 0 || ns < least[i] ? ns : least[i];
    }
    return STATUS_OK;
}

static void print_deep(const struct engine *engine, const int64_t *least)
{
    printf(", \"%s\": {\"cache_bytes\": %zu", dtype_name(engine->model->cache_dtype), kv_cache_bytes(&engine->cache));
    for (int i = 0; i < DEEP_ROWS; i++)
        printf(", \"%d\": %lld", deep_rows[i], (long long)least[i]);
    printf("}");
}

static enum status measure_deep(const char *path, int threads, int times, int places)
{
    struct engine engine[DEEP_CACHES] = {0};
    int64_t least[DEEP_CACHES][DEEP_ROWS] = {{0}};
    enum status status;

    for (int i = 0; i < DEEP_CACHES; i++)
        TRY_TO(open_deep(&engine[i], path, threads, places, deep_caches[i]), close_engines);
    for (int t = 0; t < times; t++)
        for (int i = 0; i < DEEP_CACHES; i++)
            TRY_TO(measure_deep_rows(&engine[i], places, least[i]), close_engines);
    printf("{\"threads\": %d, \"places\": %d", threads, places);
    for (int i = 0; i < DEEP_CACHES; i++)
        print_deep(&engine[i], least[i]);
    printf("}\n");

close_engines:
    for (int i = DEEP_CACHES - 1; i >= 0; i--)
        if (engine[i].model != NULL)
            engine_close(&engine[i]);
    return status;
}

static int is_cache(const char *name)
{
    return strcmp(name, "f32") == 0 || strcmp(name, "bf16") == 0 || strcmp(name, "fp8") == 0;
}

static enum status measure_quality(char **arguments, int threads, enum cache_choice cache)
{
    struct difference difference;

    TRY(quality_measure(arguments[3], arguments[4], cache, arguments[5], threads, atoi(arguments[6]), &difference));
    difference_print(&difference);
    return STATUS_OK;
}

static enum status measure_peaks(int threads)
{
    struct peaks peaks;

    if (!peaks_measure(threads, (size_t)1 << 30, &peaks))
        return STATUS_INTERNAL;
    printf("{\"threads\": %d, \"read\": %.4g, \"fma\": %.5g, \"vnni\": %.5g}\n", threads, peaks.read, peaks.fma, peaks.vnni);
    return STATUS_OK;
}

int main(int count, char **arguments)
{
    const char *what = count > 2 ? arguments[1] : "";
    int threads = count > 2 ? atoi(arguments[2]) : 0, times = count > 3 ? atoi(arguments[3]) : 0;

    log_init("bench_step", LOG_ERROR);
    if (threads >= 1 && threads <= PEAKS_MAX_THREADS) {
        if (strcmp(what, "peaks") == 0 && count == 3)
            return (int)measure_peaks(threads);
        if (strcmp(what, "attend") == 0 && (count == 3 || count == 4))
            return (int)attend_measure(threads, count == 4 ? arguments[3] : NULL);
        if (strcmp(what, "steps") == 0 && count == 5 && times >= 1 && times <= MOST_TIMES)
            return (int)measure_steps(arguments[4], threads, times);
        if (strcmp(what, "deep") == 0 && count == 6 && times >= 1 && atoi(arguments[5]) >= 1)
            return (int)measure_deep(arguments[4], threads, times, (atoi(arguments[5]) + BACKEND_MAX_ROWS - 1) / BACKEND_MAX_ROWS * BACKEND_MAX_ROWS);
        if (strcmp(what, "quality") == 0 && (count == 7 || (count == 8 && is_cache(arguments[7]))) && atoi(arguments[6]) > 0)
            return (int)measure_quality(arguments, threads, count < 8 || strcmp(arguments[7], "f32") == 0 ? CACHE_F32 : strcmp(arguments[7], "fp8") == 0 ? CACHE_E4M3 : CACHE_BF16);
    }
    fprintf(stderr, "usage: bench_step peaks THREADS | steps THREADS TIMES MODEL | deep THREADS TIMES MODEL PLACES | attend THREADS [ISA] | quality "
                    "THREADS FLOAT32 MODEL TEXT POSITIONS [f32|bf16|fp8]\n");
    return (int)STATUS_USAGE;
}
