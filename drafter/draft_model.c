/* The draft model. A batch first feeds what each mirror's cache lacks of the committed tokens (always at least the newest one; after full
 * acceptance also d_K, which was drawn and never fed), then one row per sequence and step.
 *
 * q. The request's own sampling parameters are applied to the draft's logits; the result is cut to a small support, quantised to integer weights,
 * and the token is drawn from those integers: what is sent is what was sampled. In coupled mode the draft takes the argmax with the
 * target's own noise, and at temperature 0 the argmax: point masses. */
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/model/forward.h"
#include "common/sample/distribution.h"
#include "common/sample/logits.h"
#include "common/sample/sparse_q.h"
#include "drafter/draft.h"
#include "drafter/draft_broken.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct model_draft {
    struct model *model;
    struct kv_cache cache;
    struct forward forward;
    struct arena arena;
    struct rows rows;
    int32_t *asked;            /* [slots] */
    float *logits;             /* [slots][vocab] */
    int32_t *tally;            /* [vocab] */
    struct kept_query *queries; /* [slots] */
    struct scored_token *best; /* [slots][support] */
    double *p;                 /* [support] */
    struct sparse_q *q;        /* [slots][MESSAGE_MAX_DRAFT] */
    int support;
    enum breakage breakage;
};

static void add_row(struct rows *rows, const struct mirror *mirror, int place, int base)
{
    int r = rows->count++;

    rows->token[r] = mirror->tokens[place];
    rows->position[r] = place;
    rows->slot[r] = mirror->slot;
    rows->place[r] = place;
    rows->base[r] = base;
    rows->ancestors[r] = place - base == 63 ? UINT64_MAX : (UINT64_C(1) << (place - base + 1)) - 1;
}

/* Adds the rows of [mirror->cached, upto), at most as many as a step and the mask have room for. */
static void add_chain(struct rows *rows, struct mirror *mirror, int upto, int room)
{
    int base = mirror->cached;

    while (mirror->cached < upto && mirror->cached - base < BACKEND_MAX_ROWS && room-- > 0)
        add_row(rows, mirror, mirror->cached++, base);
}

/* Feeds all but the newest committed token of a long sequence. */
static enum status prefill(struct model_draft *state, struct mirror *mirror)
{
    while (mirror->cached < mirror->length - 1) {
        state->rows.count = 0;
        add_chain(&state->rows, mirror, mirror->length - 1, state->model->max_rows);
        TRY(forward_run(&state->forward, &state->rows, state->asked, 0, state->logits));
    }
    return STATUS_OK;
}

static int is_greedy(const struct sampling *sampling)
{
    return sampling->temperature == 0.0;
}

static struct rng_key key_of(const struct mirror *mirror)
{
    return (struct rng_key){
        .seed = mirror->sampling.seed, .request = mirror->request, .position = (uint32_t)(mirror->length + mirror->drafted)};
}

/* What must be known of the row from which the a-th mirror of a step draws its next token. */
static struct row_query query_of(const struct model_draft *state, const struct mirror *mirror, int a)
{
    const struct sampling *sampling = &mirror->sampling;
    struct row_query query = {.key = key_of(mirror), .purpose = RNG_NOISE};

    query.races = !is_greedy(sampling) && sampling->accept == ACCEPT_COUPLED && !distribution_truncates(sampling);
    query.scans = !query.races;
    if (!is_greedy(sampling) && !query.races) {
        query.top = state->support;
        query.best = state->best + (size_t)a * (size_t)state->support;
    }
    return query;
}

/* The tokens that the draft keeps: the first of query->best, with p up to a factor; *mass is what their p sums to before the support is cut. */
static int keep(struct model_draft *state, const struct sampling *sampling, const struct row_query *query, double *mass)
{
    int kept = 0;

    *mass = 1.0;
    if (distribution_truncates(sampling))
        kept = distribution_truncate(sampling, query->best, query->best_count, query->best_count == state->model->vocab, query->stats.sum, state->p);
    if (kept > 0)
        return kept;
    for (int i = 0; i < query->best_count; i++) /* the whole distribution, or as much of it as the list has: any q is valid */
        state->p[i] = exp((double)query->best[i].score - (double)query->stats.max) / query->stats.sum;
    return query->best_count;
}

static int32_t choose_coupled(struct model_draft *state, const struct sampling *sampling, const struct row_query *query)
{
    int32_t winner = -1;
    float best = -INFINITY;
    double mass;

    if (query->races)
        return query->winner.token;
    for (int i = 0, kept = keep(state, sampling, query, &mass); i < kept; i++) {
        float score = query->best[i].score + rng_gumbel(&query->key, RNG_NOISE, (uint32_t)query->best[i].token);

        if (score > best) {
            best = score;
            winner = query->best[i].token;
        }
    }
    return winner;
}

/* Draws the next token of a mirror from what its row has answered. */
static void choose(struct model_draft *state, struct mirror *mirror, const struct row_query *query, struct draft_output *output)
{
    const struct sampling *sampling = &mirror->sampling;
    struct sparse_q *q = &state->q[mirror->slot * MESSAGE_MAX_DRAFT + output->count];
    int32_t token;

    q->count = 0;
    if (is_greedy(sampling)) {
        token = query->stats.argmax;
    } else if (sampling->accept == ACCEPT_COUPLED) {
        token = choose_coupled(state, sampling, query);
    } else {
        uint32_t u = rng_uniform16(&query->key, RNG_DRAFT);
        double mass;
        int kept = keep(state, sampling, query, &mass);

        sparse_q_fill(q, query->best, state->p, kept, mass, state->support);
        token = state->breakage == BREAKAGE_NONE ? sparse_q_draw(q, u) : draft_broken_draw(q, state->breakage, u);
    }
    output->q[output->count] = (struct support){.count = q->count, .id = q->id, .weight = q->weight};
    output->token[output->count++] = token;
    mirror->tokens[mirror->length + mirror->drafted++] = token;
}

/* Does the device keep the mirror's row, and answer what is asked of it? */
static int is_kept(const struct model_draft *state, const struct mirror *mirror)
{
    return state->model->backend->ask != NULL && logits_are_only_scaled(&mirror->sampling, &mirror->bias);
}

/* After the forward, before its end: the rows of these mirrors, in order. */
static void ask(struct model_draft *state, struct mirror *const *mirrors, int count)
{
    const struct model *model = state->model;
    int queries = 0;

    for (int a = 0; a < count; a++)
        if (is_kept(state, mirrors[a]))
            state->queries[queries++] = (struct kept_query){a, distribution_scale(&mirrors[a]->sampling), query_of(state, mirrors[a], a)};
        else
            model->backend->fetch(model->context, a, state->logits + (size_t)a * (size_t)model->vocab);
    if (queries > 0)
        model->backend->ask(model->context, 0, state->queries, queries);
}

/* From the host's logits. They follow the committed tokens and the earlier ones of the draft. */
static struct row_query answer_here(struct model_draft *state, const struct mirror *mirror, int a)
{
    const struct model *model = state->model;
    const struct logits_history history = {mirror->tokens, mirror->length + mirror->drafted, mirror->prompt_count};
    float *logits = state->logits + (size_t)a * (size_t)model->vocab;
    struct row_query query = query_of(state, mirror, a);

    logits_process(&mirror->sampling, &mirror->bias, &history, logits, 0, model->vocab, state->tally);
    backend_answer(model->backend, model->context, logits, 0, model->vocab, NULL, &query);
    return query;
}

/* One step of the batch: the last row of each mirror that still wants a token gives it. */
static enum status step(struct model_draft *state, struct mirror *const *mirrors, int count, struct draft_output *outputs, int *left)
{
    int keeps = state->model->backend->ask != NULL, asked = 0, queries = 0, of[count];
    struct mirror *asking[count];

    state->rows.count = 0;
    for (int i = 0; i < count; i++) {
        if (mirrors[i]->drafted == mirrors[i]->wanted)
            continue;
        add_chain(&state->rows, mirrors[i], mirrors[i]->length + mirrors[i]->drafted, state->model->max_rows);
        of[asked] = i;
        asking[asked] = mirrors[i];
        state->asked[asked++] = state->rows.count - 1;
    }
    *left = asked;
    if (asked == 0)
        return STATUS_OK;
    TRY(forward_begin(&state->forward, &state->rows, state->asked, asked, keeps ? NULL : state->logits));
    if (keeps)
        ask(state, asking, asked);
    TRY(forward_end(&state->forward));
    for (int a = 0; a < asked; a++) {
        struct row_query here, *query = &here;

        if (is_kept(state, asking[a]))
            query = &state->queries[queries++].query;
        else
            here = answer_here(state, asking[a], a);
        choose(state, asking[a], query, &outputs[of[a]]);
    }
    return STATUS_OK;
}

static enum status model_propose(void *opaque, struct mirror *const *mirrors, int count, struct draft_output *outputs)
{
    struct model_draft *state = opaque;
    int left = 1;

    for (int i = 0; i < count; i++) {
        outputs[i].count = 0;
        mirrors[i]->drafted = 0;
        if (mirrors[i]->length - mirrors[i]->cached > 2) /* the usual one or two tokens join the first step */
            TRY(prefill(state, mirrors[i]));
    }
    while (left > 0)
        TRY(step(state, mirrors, count, outputs, &left));
    return STATUS_OK;
}

static void model_draft_close(void *opaque)
{
    struct model_draft *state = opaque;

    arena_close(&state->arena);
    forward_close(&state->forward);
    kv_cache_close(&state->cache);
    free(state);
}

static const struct draft_kind model_kind = {.name = "model", .propose = model_propose, .close = model_draft_close};

static enum status lay_out(struct model_draft *state, int slots)
{
    size_t rows = (size_t)state->model->max_rows, vocab = (size_t)state->model->vocab, list = (size_t)state->support;
    size_t words = arena_round(rows * sizeof(int32_t));
    size_t bytes = 5 * words + arena_round(rows * sizeof(uint64_t)) + arena_round((size_t)slots * sizeof(int32_t)) +
                   arena_round((size_t)slots * vocab * sizeof(float)) + arena_round(vocab * sizeof(int32_t)) +
                   arena_round((size_t)slots * sizeof(struct kept_query)) +
                   arena_round((size_t)slots * list * sizeof(struct scored_token)) + arena_round(list * sizeof(double)) +
                   arena_round((size_t)slots * MESSAGE_MAX_DRAFT * sizeof(struct sparse_q));

    TRY(arena_open(&state->arena, bytes, "the draft's rows"));
    state->rows.token = arena_take(&state->arena, words);
    state->rows.position = arena_take(&state->arena, words);
    state->rows.slot = arena_take(&state->arena, words);
    state->rows.place = arena_take(&state->arena, words);
    state->rows.base = arena_take(&state->arena, words);
    state->rows.ancestors = arena_take(&state->arena, rows * sizeof(uint64_t));
    state->asked = arena_take(&state->arena, (size_t)slots * sizeof(int32_t));
    state->logits = arena_take(&state->arena, (size_t)slots * vocab * sizeof(float));
    state->tally = arena_take(&state->arena, vocab * sizeof(int32_t));
    state->queries = arena_take(&state->arena, (size_t)slots * sizeof *state->queries);
    state->best = arena_take(&state->arena, (size_t)slots * list * sizeof *state->best);
    state->p = arena_take(&state->arena, list * sizeof(double));
    state->q = arena_take(&state->arena, (size_t)slots * MESSAGE_MAX_DRAFT * sizeof *state->q);
    return STATUS_OK;
}

enum status draft_open_model(struct draft *draft, struct model *model, int slots, int support)
{
    struct model_draft *state = calloc(1, sizeof *state);
    enum status status;

    if (state == NULL) {
        log_error("no memory for a draft");
        return STATUS_INTERNAL;
    }
    state->model = model;
    state->support = support < model->vocab ? support : model->vocab;
    TRY_TO(kv_cache_open(&state->cache, model, slots), release);
    TRY_TO(forward_open(&state->forward, model, &state->cache), release);
    TRY_TO(lay_out(state, slots), release);
    *draft = (struct draft){.kind = &model_kind, .state = state};
    return STATUS_OK;

release:
    model_draft_close(state);
    return status;
}

void draft_break(struct draft *draft, enum breakage breakage)
{
    ((struct model_draft *)draft->state)->breakage = breakage;
}

void draft_close(struct draft *draft)
{
    if (draft->kind != NULL)
        draft->kind->close(draft->state);
    *draft = (struct draft){0};
}
