#include "launch/bench/gpu/rig.h"

#include "common/base/check.h"
#include "common/base/log.h"
#include <stdlib.h>

/* What stands on the model. */
static enum status open_rest(struct rig *rig)
{
    TRY(kv_cache_open(&rig->cache, rig->model, 1));
    TRY(forward_open(&rig->forward, rig->model, &rig->cache));
    rig->logits = malloc((size_t)BACKEND_MAX_ROWS * (size_t)rig->model->vocab * sizeof *rig->logits);
    if (rig->logits != NULL)
        return STATUS_OK;
    log_error("no memory for the logits of %d rows", BACKEND_MAX_ROWS);
    return STATUS_INTERNAL;
}

enum status rig_open_seeded(struct rig *rig, const struct seeded_options *options, const struct backend *backend)
{
    enum status status;

    *rig = (struct rig){0};
    group_open_self(&rig->self);
    TRY_TO(seeded_model_open(options, backend, &rig->self, &rig->seeded), close_rig);
    rig->model = &rig->seeded->model;
    TRY_TO(open_rest(rig), close_rig);
    return STATUS_OK;

close_rig:
    rig_close(rig);
    return status;
}

enum status rig_open_files(struct rig *rig, const char *path, const struct model_options *options)
{
    enum status status;

    *rig = (struct rig){0};
    group_open_self(&rig->self);
    TRY_TO(model_open(path, &rig->self, options, &rig->model), close_rig);
    TRY_TO(open_rest(rig), close_rig);
    return STATUS_OK;

close_rig:
    rig_close(rig);
    return status;
}

void rig_close(struct rig *rig)
{
    free(rig->logits);
    forward_close(&rig->forward);
    kv_cache_close(&rig->cache);
    if (rig->seeded != NULL)
        seeded_model_close(rig->seeded);
    else
        model_close(rig->model);
    group_close(&rig->self);
    *rig = (struct rig){0};
}

enum status rig_step(struct rig *rig, const int32_t *tokens, int first, int count, int asked)
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
    return forward_run(&rig->forward, &rows, list, asked, rig->logits);
}

int32_t rig_best(const struct rig *rig, int i)
{
    const struct model *model = rig->model;
    struct row_stats stats;

    model->backend->row_scan(model->context, rig->logits + (size_t)i * (size_t)model->vocab, model->vocab, &stats);
    return stats.argmax;
}

int32_t rig_token(const struct rig *rig, int place)
{
    return (int32_t)((uint32_t)(place + 1) * UINT32_C(2654435761) % (uint32_t)rig->model->vocab);
}

enum status rig_fill(struct rig *rig, int first, int context)
{
    int32_t tokens[BACKEND_MAX_ROWS];

    while (first < context) {
        int count = context - first < BACKEND_MAX_ROWS ? context - first : BACKEND_MAX_ROWS;

        for (int i = 0; i < count; i++)
            tokens[i] = rig_token(rig, first + i);
        TRY(rig_step(rig, tokens, first, count, 0));
        first += count;
    }
    return STATUS_OK;
}
