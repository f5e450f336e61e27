/* What a step of the real forward pass costs on a device, with seeded weights (seeded.h).
 *
 * bench_gpu steps MODEL          the time of a step of M rows at several contexts, asked for the best token of all rows, and of none
 * bench_gpu decode MODEL         greedy decoding: tokens per second
 * bench_gpu speculation MODEL    the same with drafts of the model's first layers, in one process
 * bench_gpu replays MODEL        whether recorded steps and overlapping kernels have the bits of steps without (replays.h)
 *
 * MODEL is 1b, 8b or tiny; settings are NAME=VALUE (settings.h). Each figure is a line "figure,rows,context,value,unit". With turns=1 a
 * measurement is made for each line of stdin, so that two programs can take turns. Nothing is timed but what a user waits for: the wall
 * clock around a step as greedy verifiers and drafters ask for it, up to the answers on the host. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "launch/dev/gpu/replays.h"
#include "launch/dev/gpu/rig.h"
#include "launch/dev/gpu/settings.h"
#include "launch/dev/gpu/speculation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct backend backend_cuda;

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The middle of the times of a step of `count` rows after `context` places. */
static enum status time_step(struct rig *rig, int context, int count, int asked, int repetitions, int64_t *times, double *median_us)
{
    int32_t tokens[BACKEND_MAX_ROWS];

    for (int i = 0; i < count; i++)
        tokens[i] = rig_token(rig, context + i);
    for (int i = repetitions > 2 ? -2 : -repetitions; i < repetitions; i++) { /* some to warm up */
        int64_t start = clock_ns();

        TRY(rig_ask(rig, tokens, context, count, asked));
        if (i >= 0)
            times[i] = clock_ns() - start;
    }
    qsort(times, (size_t)repetitions, sizeof *times, compare_times);
    *median_us = (double)times[repetitions / 2] * 1e-3;
    return STATUS_OK;
}

static enum status run_steps(struct rig *rig, const struct settings *settings)
{
    int64_t *times = calloc((size_t)settings->repetitions, sizeof *times);
    enum status status = STATUS_OK;
    int filled = 0;

    if (times == NULL) {
        log_error("no memory for %d times", settings->repetitions);
        return STATUS_INTERNAL;
    }
    for (int c = 0; c < settings->contexts; c++) {
        int context = settings->context[c];

        TRY_TO(rig_fill(rig, filled, context), free_times);
        filled = context;
        printf("step_bytes,1,%d,%.0f,bytes\n", context, seeded_model_step_bytes(rig->seeded, context));
        for (int rows = 1; rows <= BACKEND_MAX_ROWS; rows *= 2) {
            double all, none;

            TRY_TO(time_step(rig, context, rows, rows, settings->repetitions, times, &all), free_times);
            TRY_TO(time_step(rig, context, rows, 0, settings->repetitions, times, &none), free_times);
            printf("step,%d,%d,%.2f,us\nstep_without_logits,%d,%d,%.2f,us\n", rows, context, all, rows, context, none);
            fflush(stdout);
        }
    }
    int64_t start = clock_ns();
    TRY_TO(rig_fill(rig, 0, filled), free_times);
    printf("prompt,%d,%d,%.2f,us\n", rig_prompt_rows(rig), filled, (double)(clock_ns() - start) * 1e-3);

free_times:
    free(times);
    return status;
}

static enum status decode_once(struct rig *rig, int context, int tokens, int32_t *said, double *seconds)
{
    int64_t start = clock_ns();

    said[0] = rig_token(rig, context);
    for (int i = 0; i < tokens; i++) {
        TRY(rig_ask(rig, &said[i], context + i, 1, 1));
        said[i + 1] = rig_best(rig, 0);
    }
    *seconds = (double)(clock_ns() - start) * 1e-9;
    return STATUS_OK;
}

static enum status run_decode(struct rig *rig, const struct settings *settings)
{
    int context = settings->context[0], few = settings->tokens < 16 ? settings->tokens : 16;
    int32_t *said = calloc((size_t)settings->tokens + 1, sizeof *said); /* the first is the prompt's last */
    enum status status = STATUS_OK;
    double seconds;

    if (said == NULL) {
        log_error("no memory for %d tokens", settings->tokens);
        return STATUS_INTERNAL;
    }
    TRY_TO(rig_fill(rig, 0, context), free_said);
    TRY_TO(decode_once(rig, context, few, said, &seconds), free_said); /* to warm up */
    for (int turn = 0; settings_next_turn(settings, turn); turn++) {
        TRY_TO(decode_once(rig, context, settings->tokens, said, &seconds), free_said);
        printf("# tokens:");
        for (int i = 1; i <= few; i++)
            printf(" %d", said[i]);
        printf("\n");
        printf("step_bytes,1,%d,%.0f,bytes\n", context, seeded_model_step_bytes(rig->seeded, context + settings->tokens / 2));
        printf("decode,1,%d,%.2f,tokens/s\n", context, settings->tokens / seconds);
    }

free_said:
    free(said);
    return status;
}

static enum status run(const struct settings *settings)
{
    const struct backend *backend = strcmp(settings->backend, "cpu") == 0 ? &backend_cpu : &backend_cuda;
    int longest = settings->context[settings->contexts - 1];
    struct seeded_options options = {
        .shape = settings->shape, .max_rows = backend->step.prompt_rows, .max_outputs = BACKEND_MAX_ROWS, .threads = settings->threads};
    struct rig rig;
    enum status status;

    if (strcmp(settings->mode, "speculation") == 0)
        return speculation_run(settings, backend);
    if (strcmp(settings->mode, "replays") == 0 && backend->step.replay == NULL) {
        log_error("the %s backend records no steps: expected backend=cuda for replays", backend->name);
        return STATUS_USAGE;
    }
    if (strcmp(settings->mode, "replays") == 0)
        return replays_run(settings, backend);
    options.context = longest + (strcmp(settings->mode, "decode") == 0 ? settings->tokens : BACKEND_MAX_ROWS);
    TRY(rig_open_seeded(&rig, &options, backend));
    printf("# %s, %s\n", settings->shape->name, backend->describe(rig.model->context));
    if (strcmp(settings->mode, "steps") == 0)
        status = run_steps(&rig, settings);
    else
        status = run_decode(&rig, settings);
    rig_close(&rig);
    return status;
}

int main(int count, char **words)
{
    struct settings settings;
    enum status status;

    log_init("bench_gpu", LOG_INFO);
    status = settings_read(count, words, &settings);
    if (status == STATUS_OK)
        status = run(&settings);
    return (int)status;
}
