#include "launch/dev/gpu/rig.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/sample/choice.h"
#include <stdlib.h>

/* What stands on the model. */
static enum status open_rest(struct rig *rig)
{
    TRY(kv_cache_open(&rig->cache, rig->model, 1));
    TRY(forward_open(&rig->forward, rig->model, &rig->cache));
    rig->logits = malloc((size_t)rig->model->max_outputs * (size_t)rig->model->vocab * sizeof *rig->logits);
    if (rig->logits != NULL)
        return STATUS_OK;
    log_error("no memory for the logits of %d rows", rig->model->max_outputs);
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

/* The rows of a step */
struct chain {
    int32_t token[RIG_MOST_ROWS], place[RIG_MOST_ROWS], slot[RIG_MOST_ROWS], base[RIG_MOST_ROWS], asked[RIG_MOST_ROWS];
    uint64_t ancestors[RIG_MOST_ROWS];
};

static struct rows lay_out(struct chain *chain, const int32_t *tokens, int first, int count, int asked)
{
    struct rows rows = {count, chain->token, chain->place, chain->slot, chain->place, chain->base, chain->ancestors};

    for (int i = 0; i < count; i++) {
        chain->token[i] = tokens[i];
        chain->place[i] = first + i;
        chain->slot[i] = 0;
        backend_see_chain(&rows, i, first, i);
    }
    for (int i = 0; i < asked; i++)
        chain->asked[i] = count - asked + i;
    return rows;
}

enum status rig_step(struct rig *rig, const int32_t *tokens, int first, int count, int asked)
{
    struct chain chain;
    const struct rows rows = lay_out(&chain, tokens, first, count, asked);

    rig->answered = 0;
    return forward_run(&rig->forward, &rows, chain.asked, asked, rig->logits);
}

enum status rig_ask(struct rig *rig, const int32_t *tokens, int first, int count, int asked)
{
    struct chain chain;
    const struct rows rows = lay_out(&chain, tokens, first, count, asked);
    const struct forward_questions questions = {.queries = rig->query, .count = asked};

    if (rig->model->backend->output.ask == NULL)
        return rig_step(rig, tokens, first, count, asked);
    for (int i = 0; i < asked; i++)
        rig->query[i] = (struct kept_query){.row = i, .scale = 1.0f, .query = {.scans = 1}};
    rig->answered = 1;
    TRY(forward_begin(&rig->forward, &rows, chain.asked, asked, rig->logits, &questions));
    return forward_end(&rig->forward);
}

static enum status draft_by_steps(struct rig *rig, const int32_t *tokens, int first, int count, int wanted, int32_t *to)
{
    for (int i = 0; i < wanted; i++) {
        TRY(rig_ask(rig, i == 0 ? tokens : &to[i - 1], i == 0 ? first : first + count + i - 1, i == 0 ? count : 1, 1));
        to[i] = rig_best(rig, 0);
    }
    return STATUS_OK;
}

enum status rig_draft(struct rig *rig, const int32_t *tokens, int first, int count, int wanted, int32_t *to)
{
    int32_t id;
    uint32_t weight;
    struct kept_choice choice[BACKEND_MAX_ROWS];
    struct kept_draft draft = {.sampling = sampling_default, .scale = 1.0f, .wanted = wanted, .choice = choice};
    struct chain chain;
    struct rows rows;

    if (!forward_drafts(&rig->forward))
        return draft_by_steps(rig, tokens, first, count, wanted, to);
    rows = lay_out(&chain, tokens, first, count, 1);
    for (; rows.count < count + wanted - 1; rows.count++) {
        int r = rows.count, place = first + r;

        chain.token[r] = chain.slot[r] = 0; /* drawn on the device */
        chain.place[r] = chain.base[r] = place;
        chain.ancestors[r] = 1;
    }
    for (int i = 0; i < wanted; i++)
        choice[i] = (struct kept_choice){.id = &id, .weight = &weight}; /* a greedy q has none */
    draft.sampling.temperature = 0.0;
    choice_ask(&draft.sampling, 0, 0, &draft.query);
    TRY(forward_draft(&rig->forward, &rows, count, chain.asked, &draft, 1, 0));
    for (int i = 0; i < wanted; i++)
        to[i] = choice[i].token;
    return STATUS_OK;
}

int32_t rig_best(const struct rig *rig, int i)
{
    const struct model *model = rig->model;
    struct row_stats stats;

    if (rig->answered)
        return rig->query[i].query.stats.argmax;
    model->backend->row.scan(model->context, rig->logits + (size_t)i * (size_t)model->vocab, model->vocab, ROW_SUMS_NONE, &stats);
    return stats.argmax;
}

int32_t rig_token(const struct rig *rig, int place)
{
    return (int32_t)((uint32_t)(place + 1) * UINT32_C(2654435761) % (uint32_t)rig->model->vocab);
}

int rig_prompt_rows(const struct rig *rig)
{
    int most = model_prompt_rows(rig->model);

    return most < RIG_MOST_ROWS ? most : RIG_MOST_ROWS;
}

enum status rig_fill(struct rig *rig, int first, int context)
{
    int32_t tokens[RIG_MOST_ROWS];
    int most = rig_prompt_rows(rig);

    while (first < context) {
        int count = context - first < most ? context - first : most;

        for (int i = 0; i < count; i++)
            tokens[i] = rig_token(rig, first + i);
        TRY(rig_step(rig, tokens, first, count, 0));
        first += count;
    }
    return STATUS_OK;
}
