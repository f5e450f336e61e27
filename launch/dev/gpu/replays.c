#include "launch/dev/gpu/replays.h"

#include "common/backend/cuda/replay.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_S = 25, WIDTHS = 7, TEXTS = 8, VARIANTS = WIDTHS * TEXTS }; /* rows 1, 2, 4 .. 64, each of several texts */

/* What a step's rows are asked: bits that depend on every logit. */
struct answers {
    struct row_stats of[VARIANTS][BACKEND_MAX_ROWS];
};

static int rows_of(int variant)
{
    return 1 << variant % WIDTHS;
}

static enum status ask(struct rig *rig, int context, int variant)
{
    int32_t tokens[BACKEND_MAX_ROWS];

    for (int i = 0; i < rows_of(variant); i++)
        tokens[i] = rig_token(rig, context + i + BACKEND_MAX_ROWS * (variant / WIDTHS));
    return rig_ask(rig, tokens, context, rows_of(variant), rows_of(variant));
}

static struct row_stats answer_of(const struct rig *rig, int row)
{
    struct row_stats stats;

    memset(&stats, 0, sizeof stats); /* they are compared as bytes */
    stats.max = rig->query[row].query.stats.max;
    stats.argmax = rig->query[row].query.stats.argmax;
    stats.sum = rig->query[row].query.stats.sum;
    return stats;
}

static enum status learn(struct rig *rig, int context, struct answers *answers)
{
    for (int v = 0; v < VARIANTS; v++) {
        TRY(ask(rig, context, v));
        for (int r = 0; r < rows_of(v); r++)
            answers->of[v][r] = answer_of(rig, r);
    }
    return STATUS_OK;
}

static enum status compare(struct rig *rig, int context, int step, const struct answers *answers)
{
    int variant = step % VARIANTS;

    TRY(ask(rig, context, variant));
    for (int r = 0; r < rows_of(variant); r++) {
        const struct row_stats found = answer_of(rig, r), *expected = &answers->of[variant][r];

        if (memcmp(&found, expected, sizeof found) != 0) {
            log_error("step %d of %d rows, row %d: largest logit %.9g of token %d, sum %.17g; without recorded steps and overlap %.9g of %d, %.17g", step,
                      rows_of(variant), r, (double)found.max, found.argmax, found.sum, (double)expected->max, expected->argmax, expected->sum);
            return STATUS_DATA;
        }
    }
    return STATUS_OK;
}

/* Opens a rig in which TANDEM_CUDA is `switches`, and fills its cache. */
static enum status open_rig(const struct settings *settings, const struct backend *backend, const char *switches, struct rig *rig)
{
    const struct seeded_options options = {.shape = settings->shape,
                                           .max_rows = backend->step.prompt_rows,
                                           .max_outputs = BACKEND_MAX_ROWS,
                                           .threads = settings->threads,
                                           .context = settings->context[0] + BACKEND_MAX_ROWS};

    if (switches != NULL)
        setenv("TANDEM_CUDA", switches, 1);
    else
        unsetenv("TANDEM_CUDA");
    TRY(rig_open_seeded(rig, &options, backend));
    printf("# %s, %s\n", settings->shape->name, backend->describe(rig->model->context));
    return rig_fill(rig, 0, settings->context[0]);
}

enum status replays_run(const struct settings *settings, const struct backend *backend)
{
    struct answers *answers = malloc(sizeof *answers);
    const char *asked = getenv("TANDEM_CUDA");
    char *switches = asked != NULL ? strdup(asked) : NULL; /* what of the ways that are compared is to be left out, too */
    struct rig rig = {0};
    enum status status = STATUS_OK;

    if (answers == NULL || (asked != NULL && switches == NULL)) {
        log_error("no memory for the answers of %d steps", VARIANTS);
        status = STATUS_INTERNAL;
        goto free_answers;
    }
    TRY_TO(open_rig(settings, backend, "nooverlap,nograph", &rig), close_rig);
    TRY_TO(learn(&rig, settings->context[0], answers), close_rig);
    rig_close(&rig);
    TRY_TO(open_rig(settings, backend, switches, &rig), close_rig);
    int64_t end = clock_ns() + (int64_t)MOST_S * 1000000000;

    for (int step = 0; step < settings->repetitions && clock_ns() < end; step++)
        TRY_TO(compare(&rig, settings->context[0], step, answers), close_rig);
    if (replay_count(rig.model->context) == 0) {
        log_error("no step was recorded: what was to be compared is not there");
        status = STATUS_DATA;
        goto close_rig;
    }
    printf("replays,1..64,%d,%lld,steps\n", settings->context[0], (long long)replay_count(rig.model->context));

close_rig:
    rig_close(&rig);
free_answers:
    free(switches);
    free(answers);
    return status;
}
