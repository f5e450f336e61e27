#include "launch/bench/gpu/rig.h"

#include "common/base/check.h"
#include "common/base/log.h"
#include <stdlib.h>

enum status rig_open(struct rig *rig, const struct seeded_options *options, const struct backend *backend)
{
    enum status status;

    *rig = (struct rig){0};
    group_open_self(&rig->self);
    TRY_TO(seeded_model_open(options, backend, &rig->self, &rig->seeded), close_rig);
    TRY_TO(kv_cache_open(&rig->cache, &rig->seeded->model, 1), close_rig);
    TRY_TO(forward_open(&rig->forward, &rig->seeded->model, &rig->cache), close_rig);
    rig->logits = malloc((size_t)BACKEND_MAX_ROWS * (size_t)rig->seeded->model.vocab * sizeof *rig->logits);
    if (rig->logits == NULL) {
        log_error("no memory for the logits of %d rows", BACKEND_MAX_ROWS);
        TRY_TO(STATUS_INTERNAL, close_rig);
    }
    return STATUS_OK;

close_rig:
    rig_close(rig);
    return status;
}

void rig_close(struct rig *rig)
{
    free(rig->logits);
    if (rig->seeded != NULL) {
        forward_close(&rig->forward);
        kv_cache_close(&rig->cache);
        seeded_model_close(rig->seeded);
    }
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
    const struct model *model = &rig->seeded->model;
    struct row_stats stats;

    model->backend->row_scan(model->context, rig->logits + (size_t)i * (size_t)model->vocab, model->vocab, &stats);
    return stats.argmax;
}

int32_t rig_token(const struct rig *rig, int place)
{
    return (int32_t)((uint32_t)(place + 1) * UINT32_C(2654435761) % (uint32_t)rig->seeded->model.vocab);
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
