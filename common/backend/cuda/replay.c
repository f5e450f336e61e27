/* A shape is recorded when it is seen a second time: many steps of prompts have shapes that never come again. The inputs of a step (rows, embeddings,
 * which rows are output rows) are in the same places each time, and embed has written them. */
#include "common/backend/cuda/context.h"

#include "common/base/log.h"
#include "common/base/progress.h"

static int is_of(const struct replay *replay, const struct replay *shape)
{
    return replay->who == shape->who && replay->rows == shape->rows && replay->what == shape->what && replay->longest == shape->longest;
}

static void drop(struct replay *replay)
{
    if (replay->graph != NULL)
        device_graph_close(replay->graph);
    *replay = (struct replay){0};
}

void replay_forget(struct backend_context *context)
{
    for (int i = 0; i < REPLAY_SHAPES; i++)
        drop(&context->replays[i]);
}

int64_t replay_count(const struct backend_context *context)
{
    return context->replayed;
}

/* The entry of this shape, or else the entry that was not used for longest. */
static struct replay *find(struct backend_context *context, const struct replay *shape)
{
    struct replay *oldest = &context->replays[0];

    for (int i = 0; i < REPLAY_SHAPES; i++) {
        if (is_of(&context->replays[i], shape))
            return &context->replays[i];
        if (context->replays[i].used < oldest->used)
            oldest = &context->replays[i];
    }
    return oldest;
}

int cuda_replay(struct backend_context *context, const void *who, const struct rows *rows, uint64_t what)
{
    context->least_longest = cuda_longest(context, rows, 0, rows->count); /* all parts of a recorded step use the same value */

    if (context->switches.no_graph)
        return 0;
    const struct replay shape = {
        .who = who, .rows = rows->count, .what = what, .longest = context->least_longest, .used = ++context->steps};
    struct replay *replay = find(context, &shape);

    if (!is_of(replay, &shape)) {
        drop(replay);
        *replay = shape;
        return 0;
    }
    replay->used = shape.used;
    if (replay->refused)
        return 0;
    if (replay->graph == NULL) {
        context->recording = replay;
        device_record(context->device);
        return 0;
    }
    device_play(context->device, replay->graph);
    context->head = replay->head;
    context->replayed++;
    return 1;
}

int cuda_replayed(struct backend_context *context)
{
    struct replay *replay = context->recording;

    context->recording = NULL;
    if (replay == NULL)
        return 1;
    replay->graph = device_recorded(context->device);
    progress_made(NULL);
    if (replay->graph != NULL) {
        device_play(context->device, replay->graph);
        replay->head = context->head;
        return 1;
    }
    replay->refused = 1; /* usually for lack of memory: another try would fail, too */
    if (!context->told_refusal)
        log_warn("device %d (%s) cannot record a step, for want of memory as a rule: it is asked for operation by operation, which is slower; a "
                 "smaller --context or fewer --max-sequences leave memory",
                 device_index(context->device), device_name(context->device));
    context->told_refusal = 1;
    draft_rewind(context);
    return 0;
}
