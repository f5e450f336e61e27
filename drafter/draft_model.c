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
    struct scored_token *best; /* [support + 1] */
    double *p;                 /* [support + 1] */
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

/* The tokens that the draft keeps, most probable first, with p up to a factor; *mass is what their p sums to before the support is cut. */
static int keep(struct model_draft *state, const struct sampling *sampling, const float *logits, double *mass)
{
    const struct backend *backend = state->model->backend;
    int vocab = state->model->vocab, count = backend->row_top(state->model->context, logits, vocab, state->support, state->best), kept = 0;
    struct row_stats stats;

    backend->row_scan(state->model->context, logits, vocab, &stats);
    *mass = 1.0;
    if (distribution_truncates(sampling))
        kept = distribution_truncate(sampling, state->best, count, count == vocab, stats.sum, state->p);
    if (kept > 0)
        return kept;
    for (int i = 0; i < count; i++) /* the whole distribution, or as much of it as the list has: any q is valid */
        state->p[i] = exp((double)state->best[i].score - (double)stats.max) / stats.sum;
    return count;
}

static int32_t choose_coupled(struct model_draft *state, const struct sampling *sampling, const float *logits, const struct rng_key *key)
{
    struct scored_token winner = {.token = -1};
    float best = -INFINITY;
    double mass;
    int kept;

    if (!distribution_truncates(sampling)) {
        state->model->backend->row_race(state->model->context, logits, state->model->vocab, 0, key, RNG_NOISE, NULL, &winner);
        return winner.token;
    }
    kept = keep(state, sampling, logits, &mass);
    for (int i = 0; i < kept; i++) {
        float score = state->best[i].score + rng_gumbel(key, RNG_NOISE, (uint32_t)state->best[i].token);

        if (score > best) {
            best = score;
            winner = state->best[i];
        }
    }
    return winner.token;
}

/* Draws the next token of a mirror from its row of logits. */
static void choose(struct model_draft *state, struct mirror *mirror, float *logits, struct draft_output *output)
{
    const struct sampling *sampling = &mirror->sampling;
    struct rng_key key = {.seed = sampling->seed, .request = mirror->request, .position = (uint32_t)(mirror->length + mirror->drafted)};
    struct sparse_q *q = &state->q[mirror->slot * MESSAGE_MAX_DRAFT + output->count];
    /* the committed tokens and the earlier ones of the draft */
    const struct logits_history history = {mirror->tokens, mirror->length + mirror->drafted, mirror->prompt_count};
    struct row_stats stats;
    int32_t token;
    double mass;

    logits_process(sampling, &mirror->bias, &history, logits, 0, state->model->vocab, state->tally);
    q->count = 0;
    if (is_greedy(sampling)) {
        state->model->backend->row_scan(state->model->context, logits, state->model->vocab, &stats);
        token = stats.argmax;
    } else if (sampling->accept == ACCEPT_COUPLED) {
        token = choose_coupled(state, sampling, logits, &key);
    } else {
        int kept = keep(state, sampling, logits, &mass);

        sparse_q_fill(q, state->best, state->p, kept, mass, state->support);
        token = state->breakage == BREAKAGE_NONE ? sparse_q_draw(q, rng_uniform16(&key, RNG_DRAFT))
                                                 : draft_broken_draw(q, state->breakage, rng_uniform16(&key, RNG_DRAFT));
    }
    output->q[output->count] = (struct support){.count = q->count, .id = q->id, .weight = q->weight};
    output->token[output->count++] = token;
    mirror->tokens[mirror->length + mirror->drafted++] = token;
}

/* One step of the batch: the last row of each mirror that still wants a token gives it. */
static enum status step(struct model_draft *state, struct mirror *const *mirrors, int count, struct draft_output *outputs, int *left)
{
    int asked = 0, of[count];

    state->rows.count = 0;
    for (int i = 0; i < count; i++) {
        if (mirrors[i]->drafted == mirrors[i]->wanted)
            continue;
        add_chain(&state->rows, mirrors[i], mirrors[i]->length + mirrors[i]->drafted, state->model->max_rows);
        of[asked] = i;
        state->asked[asked++] = state->rows.count - 1;
    }
    *left = asked;
    if (asked == 0)
        return STATUS_OK;
    TRY(forward_run(&state->forward, &state->rows, state->asked, asked, state->logits));
    for (int a = 0; a < asked; a++)
        choose(state, mirrors[of[a]], state->logits + (size_t)a * (size_t)state->model->vocab, &outputs[of[a]]);
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
    size_t rows = (size_t)state->model->max_rows, vocab = (size_t)state->model->vocab, list = (size_t)state->support + 1;
    size_t words = arena_round(rows * sizeof(int32_t));
    size_t bytes = 5 * words + arena_round(rows * sizeof(uint64_t)) + arena_round((size_t)slots * sizeof(int32_t)) +
                   arena_round((size_t)slots * vocab * sizeof(float)) + arena_round(vocab * sizeof(int32_t)) +
                   arena_round(list * sizeof(struct scored_token)) + arena_round(list * sizeof(double)) +
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
    state->best = arena_take(&state->arena, list * sizeof *state->best);
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
