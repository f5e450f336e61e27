#include "common/model/forward.h"

#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/progress.h"
#include "common/base/try.h"

enum status forward_open(struct forward *forward, struct model *model, struct kv_cache *cache)
{
    struct model_activations bytes = model_activations(model);
    size_t hidden = bytes.hidden, heads = bytes.heads;

    *forward = (struct forward){.model = model, .cache = cache};
    TRY(model->backend->memory.open(model->context, bytes.all, "the activations", &forward->arena));
    forward->x = arena_take(&forward->arena, hidden);
    forward->partial = group_buffer(model->group, hidden); /* sums are fastest in the group's own memory, where it has some */
    if (forward->partial == NULL)
        forward->partial = arena_take(&forward->arena, hidden);
    forward->asked = arena_take(&forward->arena, hidden);
    forward->q = arena_take(&forward->arena, heads);
    forward->attended = arena_take(&forward->arena, heads);
    forward->ffn = arena_take(&forward->arena, bytes.ffn);
    return STATUS_OK;
}

void forward_close(struct forward *forward)
{
    if (forward->model != NULL)
        forward->model->backend->memory.close(forward->model->context, &forward->arena);
}

static size_t numbers_of(const struct forward *forward, int rows)
{
    return (size_t)rows * (size_t)forward->model->shape.hidden;
}

/* x += the sum of the group's partials. */
static enum status reduce(struct forward *forward, int rows, float *x)
{
    struct model *model = forward->model;
    size_t count = numbers_of(forward, rows);
    int64_t start = clock_ns();

    if (group_sums_alone(model->group, count))
        return group_add(model->group, x, forward->partial, count);
    TRY(group_sum(model->group, forward->partial, count));
    forward->group_ns += clock_ns() - start;
    model->backend->linear.add(model->context, x, forward->partial, count);
    return STATUS_OK;
}

/* x += the residual that a block of the layer gives: W from, summed over the group.  from: [rows][columns of W] */
static enum status add_residual(struct forward *forward, const struct rows *rows, const struct layer_weights *layer,
                                void (*out)(struct backend_context *, const struct layer_shape *, const struct layer_weights *, int,
                                            const float *, float *),
                                const struct matrix *matrix, const float *from, float *x)
{
    struct model *model = forward->model;

    if (model->group->size == 1 && model->backend->linear.matmul_add != NULL) {
        model->backend->linear.matmul_add(model->context, matrix, rows->count, from, x);
        return STATUS_OK;
    }
    out(model->context, &model->shape, layer, rows->count, from, forward->partial);
    return reduce(forward, rows->count, x);
}

/* x += W_out softmax(q K^T) V */
static enum status run_self(struct forward *forward, const struct rows *rows, int i, float *x)
{
    struct model *model = forward->model;
    const struct backend *backend = model->backend;
    const struct layer_weights *layer = &model->layer[i];
    const struct cache_layer *cache = &forward->cache->layer[i];

    backend->layer.attend_in(model->context, &model->shape, layer, rows, x, model->cosine, model->sine, cache, forward->q);
    progress_made(NULL);
    backend->layer.attend(model->context, &model->shape, layer, rows, forward->q, cache, forward->attended);
    progress_made(NULL);
    return add_residual(forward, rows, layer, backend->layer.attend_out, layer->out, forward->attended, x);
}

/* x += W_down (silu(W_gate norm(x)) * (W_up norm(x))) */
static enum status run_mlp(struct forward *forward, const struct rows *rows, int i, float *x)
{
    struct model *model = forward->model;
    const struct layer_weights *layer = &model->layer[i];

    model->backend->layer.mlp_in(model->context, &model->shape, layer, rows->count, x, forward->ffn);
    progress_made(NULL);
    return add_residual(forward, rows, layer, model->backend->layer.mlp_out, layer->down, forward->ffn, x);
}

static enum status run_layer(struct forward *forward, const struct rows *rows, int i, float *x)
{
    for (const enum family_block *block = forward->model->config.family->block; *block != FAMILY_END; block++) {
        TRY(*block == FAMILY_SELF ? run_self(forward, rows, i, x) : run_mlp(forward, rows, i, x));
        progress_made(NULL);
    }
    return STATUS_OK;
}

/* All that a device does of a step between its input and what is asked of its logits.  asked: NULL for all rows */
static enum status run(struct forward *forward, const struct rows *rows, const int32_t *asked, int output_count, float *x, float *logits)
{
    struct model *model = forward->model;
    const struct backend *backend = model->backend;
    int hidden = model->shape.hidden;

    for (int i = 0; i < model->config.layers; i++)
        TRY(run_layer(forward, rows, i, x));
    if (output_count > 0 && asked != NULL) {
        backend->step.pick(model->context, hidden, asked, output_count, x, forward->asked);
        x = forward->asked;
    }
    if (output_count > 0)
        backend->output.head(model->context, hidden, model->shape.norm_eps, model->final_norm, model->head, output_count, x, logits);
    return STATUS_OK;
}

static void embed(struct forward *forward, const struct rows *rows, const int32_t *asked, int output_count)
{
    struct model *model = forward->model;
    enum dtype dtype = model->embedding.dtype;
    size_t hidden = (size_t)model->shape.hidden;

    model->backend->step.embed(model->context, rows, asked, output_count, dtype, model->embedding.data, model->shape.hidden, forward->x);
    if (dtype_is_quantised(model->quantise) && dtype_bits(dtype) > dtype_bits(model->quantise)) /* by the CPU, whose memory is the host's */
        for (int r = 0; r < rows->count; r++)
            dtype_round_trip(model->quantise, forward->x + (size_t)r * hidden, hidden);
}

/* May the device do the step by itself from its rows on, as recorded? */
static int is_alone(const struct forward *forward, int rows)
{
    const struct model *model = forward->model;

    return model->backend->step.replay != NULL && rows <= BACKEND_MAX_ROWS &&
           (model->group->size == 1 || group_sums_alone(model->group, numbers_of(forward, rows)));
}

/* Rows with copies of one of them, which compute the same numbers and write them to the same places: so steps of few shapes are recorded. */
struct padded {
    struct rows rows;
    int32_t token[BACKEND_MAX_ROWS], position[BACKEND_MAX_ROWS], slot[BACKEND_MAX_ROWS], place[BACKEND_MAX_ROWS], base[BACKEND_MAX_ROWS];
    uint64_t ancestors[BACKEND_MAX_ROWS];
    int32_t asked[BACKEND_MAX_ROWS];
};

/* Behind the first ones, of which the last is copied until there are `padded`, come the others.  outputs: of so many of `asked` the last is copied,
 * too */
static void pad(const struct rows *rows, int first, int padded, const int32_t *asked, int output_count, int outputs, struct padded *to)
{
    to->rows = (struct rows){.count = rows->count - first + padded,
                             .token = to->token,
                             .position = to->position,
                             .slot = to->slot,
                             .place = to->place,
                             .base = to->base,
                             .ancestors = to->ancestors};
    for (int r = 0; r < to->rows.count; r++) {
        int from = r < first ? r : r < padded ? first - 1 : r - padded + first;

        to->token[r] = rows->token[from];
        to->position[r] = rows->position[from];
        to->slot[r] = rows->slot[from];
        to->place[r] = rows->place[from];
        to->base[r] = rows->base[from];
        to->ancestors[r] = rows->ancestors[from];
    }
    for (int i = 0; i < outputs; i++)
        to->asked[i] = asked[i < output_count ? i : output_count - 1];
}

static enum status run_and_ask(struct forward *forward, const struct rows *rows, const int32_t *asked, int output_count, float *logits, int asks)
{
    TRY(run(forward, rows, asked, output_count, forward->x, logits));
    if (asks)
        forward->model->backend->output.ask_run(forward->model->context);
    return STATUS_OK;
}

enum status forward_begin(struct forward *forward, const struct rows *rows, const int32_t *asked, int output_count, float *logits,
                          const struct forward_questions *questions)
{
    struct model *model = forward->model;
    const struct backend *backend = model->backend;
    int stays = questions != NULL && backend->output.fetch != NULL, asks = questions != NULL && questions->count > 0;
    int replays = is_alone(forward, rows->count) && (logits == NULL || stays || output_count == 0), outputs = output_count;
    int wide = backend_padded(rows->count, model->max_rows);
    struct padded padded;
    enum status status = STATUS_OK;
    uint64_t what;

    if (replays && is_alone(forward, wide)) {
        outputs = backend_padded(output_count, model->max_outputs);
        pad(rows, rows->count, wide, asked, output_count, outputs, &padded);
        rows = &padded.rows;
        asked = padded.asked;
    }
    what = (uint64_t)outputs;
    if (stays)
        logits = NULL;
    embed(forward, rows, asked, outputs);
    if (asks)
        what = digest_bytes(&what, sizeof what,
                            backend->output.ask_begin(model->context, questions->first, questions->queries, questions->count,
                                                      questions->count == output_count ? outputs : questions->count));
    if (!replays || !backend->step.replay(model->context, forward, rows, what)) {
        status = run_and_ask(forward, rows, asked, outputs, logits, asks);
        if (replays && !backend->step.replayed(model->context) && status == STATUS_OK)
            status = run_and_ask(forward, rows, asked, outputs, logits, asks);
    }
    if (asks)
        backend->output.ask_end(model->context);
    return status;
}

int forward_drafts(const struct forward *forward)
{
    return forward->model->backend->draft.begin != NULL && forward->model->group->size == 1 && forward->model->table != NULL;
}

static struct rows rows_from(const struct rows *all, int first, int count)
{
    return (struct rows){.count = count,
                         .token = all->token + first,
                         .position = all->position + first,
                         .slot = all->slot + first,
                         .place = all->place + first,
                         .base = all->base + first,
                         .ancestors = all->ancestors + first};
}

static enum status run_steps(struct forward *forward, const struct rows *rows, int first_rows, const int32_t *asked,
                             const struct kept_draft *drafts, int count)
{
    struct model *model = forward->model;
    size_t hidden = (size_t)model->shape.hidden;
    int first = 0, here = first_rows;

    for (int step = 0; first < rows->count; step++) {
        struct rows now = rows_from(rows, first, here);

        TRY(run(forward, &now, step == 0 ? asked : NULL, backend_drafts_at(drafts, count, step), forward->x + (size_t)first * hidden, NULL));
        model->backend->draft.step(model->context, step);
        first += here;
        here = backend_drafts_at(drafts, count, step + 1);
    }
    return STATUS_OK;
}

enum status forward_draft(struct forward *forward, const struct rows *rows, int first_rows, const int32_t *asked, struct kept_draft *drafts,
                          int count, int support)
{
    struct model *model = forward->model;
    const struct backend *backend = model->backend;
    int later = rows->count - first_rows, most = model->max_rows < BACKEND_MAX_ROWS ? model->max_rows : BACKEND_MAX_ROWS;
    int wide = backend_padded(first_rows, most - later);
    const struct draft_terms terms = {.drafts = drafts,
                                      .count = count,
                                      .support = support,
                                      .first_rows = wide,
                                      .hidden = model->shape.hidden,
                                      .dtype = model->table_dtype,
                                      .table = model->table,
                                      .x = forward->x};
    struct padded padded;
    uint64_t what;

    pad(rows, first_rows, wide, asked, count, count, &padded);
    rows = &padded.rows;
    embed(forward, rows, asked, count);
    what = backend->draft.begin(model->context, &terms);
    if (!backend->step.replay(model->context, forward, rows, what)) {
        TRY(run_steps(forward, rows, wide, asked, drafts, count));
        if (!backend->step.replayed(model->context))
            TRY(run_steps(forward, rows, wide, asked, drafts, count));
    }
    backend->draft.end(model->context);
    return backend->step.finish(model->context);
}

enum status forward_end(struct forward *forward)
{
    TRY(group_settle(forward->model->group));
    return forward->model->backend->step.finish(forward->model->context);
}

enum status forward_run(struct forward *forward, const struct rows *rows, const int32_t *asked, int output_count, float *logits)
{
    TRY(forward_begin(forward, rows, asked, output_count, logits, NULL));
    return forward_end(forward);
}
