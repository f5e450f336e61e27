#include "launch/dev/step/engine.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdlib.h>

enum status engine_open(struct engine *engine, const char *path, int threads, int context, enum cache_choice cache)
{
    const struct model_options options = {.threads = threads, .max_rows = BACKEND_MAX_ROWS, .context = context, .slots = 1, .cache = (int)cache};
    enum status status;

    *engine = (struct engine){0};
    group_open_self(&engine->self);
    TRY_TO(model_open(path, &engine->self, &options, &engine->model), close_engine);
    TRY_TO(kv_cache_open(&engine->cache, engine->model, 1), close_engine);
    TRY_TO(forward_open(&engine->forward, engine->model, &engine->cache), close_engine);
    engine->logits = malloc((size_t)BACKEND_MAX_ROWS * (size_t)engine->model->vocab * sizeof *engine->logits);
    if (engine->logits != NULL)
        return STATUS_OK;
    log_error("no memory for the logits of %d rows", BACKEND_MAX_ROWS);
    status = STATUS_INTERNAL;

close_engine:
    engine_close(engine);
    return status;
}

void engine_close(struct engine *engine)
{
    free(engine->logits);
    forward_close(&engine->forward);
    kv_cache_close(&engine->cache);
    model_close(engine->model);
    group_close(&engine->self);
    *engine = (struct engine){0};
}

enum status engine_step(struct engine *engine, const int32_t *tokens, int first, int count, int asked)
{
    int32_t token[BACKEND_MAX_ROWS], place[BACKEND_MAX_ROWS], slot[BACKEND_MAX_ROWS] = {0}, base[BACKEND_MAX_ROWS], list[BACKEND_MAX_ROWS];
    uint64_t ancestors[BACKEND_MAX_ROWS];
    const struct rows rows = {count, token, place, slot, place, base, ancestors};

    for (int i = 0; i < count; i++) {
        token[i] = tokens[i];
        place[i] = first + i;
        base[i] = first;
        ancestors[i] = UINT64_MAX >> (63 - i);
    }
    for (int i = 0; i < asked; i++)
        list[i] = count - asked + i;
    return forward_run(&engine->forward, &rows, list, asked, engine->logits);
}
