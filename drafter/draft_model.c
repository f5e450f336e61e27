/* The draft model. A proposal first feeds what each mirror's cache lacks of the committed tokens (at least the newest one; after full acceptance also
 * d_K, which was drawn and never fed), then one row per sequence and step. Where the backend can draft by itself, all steps are given to it at once.
 *
 * q: the request's own sampling parameters are applied to the draft's logits; the result is cut to a small support, quantised to integer weights, and
 * the token is drawn from these integers, so the q that is sent is exactly the one that was sampled from. In coupled mode the draft takes the argmax
 * with the target's noise, and at temperature 0 the argmax: point masses. */
#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "common/model/forward.h"
#include "common/sample/choice.h"
#include "common/sample/distribution.h"
#include "common/sample/logits.h"
#include "drafter/draft.h"
#include "drafter/draft_broken.h"
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
    struct kept_choice *choice; /* [slots][MESSAGE_MAX_DRAFT] the same, where the device drafts */
    int support;
    enum breakage breakage;
};

/* Adds a row of a chain that begins at the place `first`. */
static void add_row(struct rows *rows, const struct mirror *mirror, int place, int first)
{
    int r = rows->count++;

    rows->token[r] = mirror->tokens[place];
    rows->position[r] = place;
    rows->slot[r] = mirror->slot;
    rows->place[r] = place;
    backend_see_chain(rows, r, first, place - first);
}

/* Adds the rows of [mirror->cached, upto), at most `room`. */
static void add_chain(struct rows *rows, struct mirror *mirror, int upto, int room)
{
    int first = mirror->cached, end = upto - first < room ? upto : first + room;

    for (; mirror->cached < end; mirror->cached++)
        add_row(rows, mirror, mirror->cached, first);
}

static enum status model_read(void *opaque, struct mirror *mirror, int rows)
{
    struct model_draft *state = opaque;
    int most = model_prompt_rows(state->model);

    state->rows.count = 0;
    add_chain(&state->rows, mirror, mirror->length - 1, rows < most ? rows : most);
    return forward_run(&state->forward, &state->rows, state->asked, 0, state->logits);
}

static void model_copy(void *opaque, int from, int to, int first, int count)
{
    kv_cache_copy(&((struct model_draft *)opaque)->cache, from, to, first, count);
}

/* The text that is drafted for, committed or expected, and the count of its drafts. */
static int base_of(const struct mirror *mirror)
{
    return mirror->ahead.length > 0 ? mirror->ahead.length : mirror->length;
}

static int made_of(const struct mirror *mirror)
{
    return mirror->ahead.length > 0 ? mirror->ahead.count : mirror->drafted;
}

static int is_done(const struct mirror *mirror)
{
    return made_of(mirror) >= (mirror->ahead.length > 0 ? mirror->ahead.wanted : mirror->wanted);
}

static struct rng_key key_of(const struct mirror *mirror)
{
    return (struct rng_key){
        .seed = mirror->sampling.seed, .request = mirror->request, .position = (uint32_t)(base_of(mirror) + made_of(mirror))};
}

/* The query about a row of logits from whose answer the a-th mirror of a step draws its next token. */
static struct row_query query_of(const struct model_draft *state, const struct mirror *mirror, int a)
{
    struct row_query query = {.key = key_of(mirror), .best = state->best + (size_t)a * (size_t)state->support};

    choice_ask(&mirror->sampling, state->support, &query);
    return query;
}

/* Draws wrongly on purpose, for `tandem check --break`. */
static int32_t draw_broken(const struct model_draft *state, const struct row_query *query, const struct sparse_q *q, int32_t token)
{
    return q->count > 0 ? draft_broken_draw(q, state->breakage, rng_uniform16(&query->key, RNG_DRAFT)) : token;
}

/* Draws the next token of a mirror from the answer to its query. */
static void choose(struct model_draft *state, struct mirror *mirror, const struct row_query *query, struct draft_output *output)
{
    struct sparse_q *q = &state->q[mirror->slot * MESSAGE_MAX_DRAFT + output->count];
    int32_t token = choice_draw(&mirror->sampling, state->support, state->model->vocab, query, state->p, q);

    if (state->breakage != BREAKAGE_NONE)
        token = draw_broken(state, query, q, token);
    output->q[output->count] = (struct support){.count = q->count, .id = q->id, .weight = q->weight};
    output->token[output->count++] = token;
    mirror->tokens[base_of(mirror) + made_of(mirror)] = token;
    ++*(mirror->ahead.length > 0 ? &mirror->ahead.count : &mirror->drafted);
}

/* Does the backend answer the mirror's query? If not, its logits need more than scaling, and the host processes them. */
static int is_answered(const struct model_draft *state, const struct mirror *mirror)
{
    return state->model->backend->output.ask != NULL && logits_are_only_scaled(&mirror->sampling, &mirror->bias);
}

/* Feeds the rows that were laid out, and has the backend answer the queries that it can; the other rows are copied to the host. */
static enum status run_forward(struct model_draft *state, struct mirror *const *mirrors, int count)
{
    const struct model *model = state->model;
    int fetches = model->backend->output.fetch != NULL;
    struct forward_questions questions = {.first = 0, .queries = state->queries};

    for (int a = 0; a < count; a++)
        if (is_answered(state, mirrors[a]))
            state->queries[questions.count++] =
                (struct kept_query){a, distribution_scale(&mirrors[a]->sampling), query_of(state, mirrors[a], a)};
    TRY(forward_begin(&state->forward, &state->rows, state->asked, count, state->logits, &questions));
    for (int a = 0; fetches && a < count; a++)
        if (!is_answered(state, mirrors[a]))
            model->backend->output.fetch(model->context, a, state->logits + (size_t)a * (size_t)model->vocab);
    return forward_end(&state->forward);
}

/* Answers a query from logits in the host's memory. Penalties count the committed tokens and the drafts so far. */
static struct row_query answer_here(struct model_draft *state, const struct mirror *mirror, int a)
{
    const struct model *model = state->model;
    const struct history history = {.tokens = mirror->tokens, .base = base_of(mirror) + made_of(mirror), .prompt_count = mirror->prompt_count};
    float *logits = state->logits + (size_t)a * (size_t)model->vocab;
    struct row_query query = query_of(state, mirror, a);

    logits_process(&mirror->sampling, &mirror->bias, &history, logits, 0, model->vocab, state->tally);
    backend_answer(model->backend, model->context, logits, 0, model->vocab, NULL, &query);
    return query;
}

/* One step of the batch: the last row of each mirror that still wants a token gives it, or where outputs is NULL the token that is expected there. */
static enum status step(struct model_draft *state, struct mirror *const *mirrors, int count, struct draft_output *const *outputs)
{
    int asked = 0, queries = 0, of[count];
    struct mirror *asking[count];

    state->rows.count = 0;
    for (int i = 0; i < count; i++) {
        if (outputs != NULL && is_done(mirrors[i]))
            continue;
        add_chain(&state->rows, mirrors[i], base_of(mirrors[i]) + made_of(mirrors[i]), state->model->max_rows);
        of[asked] = i;
        asking[asked] = mirrors[i];
        state->asked[asked++] = state->rows.count - 1;
    }
    if (asked == 0)
        return STATUS_OK;
    TRY(run_forward(state, asking, asked));
    for (int a = 0; a < asked; a++) {
        struct row_query here, *query = &here;

        if (is_answered(state, asking[a]))
            query = &state->queries[queries++].query;
        else
            here = answer_here(state, asking[a], a);
        if (outputs != NULL)
            choose(state, asking[a], query, outputs[of[a]]);
        else
            mirror_expect(asking[a], choice_expect(&asking[a]->sampling, state->model->vocab, query, state->p));
    }
    return STATUS_OK;
}

/* Can the device draft all of this by itself? */
static int is_left_to_device(const struct model_draft *state, struct mirror *const *mirrors, int count)
{
    int rows = 0;

    if (!forward_drafts(&state->forward) || state->breakage != BREAKAGE_NONE)
        return 0;
    for (int i = 0; i < count; i++) {
        if (!is_answered(state, mirrors[i]))
            return 0;
        rows += mirrors[i]->length - mirrors[i]->cached + mirrors[i]->wanted - 1;
    }
    return rows <= BACKEND_MAX_ROWS && rows <= state->model->max_rows;
}

/* Lays out the rows of all steps: the committed tokens that each mirror's cache lacks, then one row for each drafted token but the last. Returns the
 * number of rows of the first step. */
static int lay_out_steps(struct model_draft *state, struct mirror *const *mirrors, int count)
{
    struct rows *rows = &state->rows;
    int first_rows, before = -1;

    rows->count = 0;
    for (int i = 0; i < count; i++) {
        add_chain(rows, mirrors[i], mirrors[i]->length, state->model->max_rows);
        state->asked[i] = rows->count - 1;
    }
    first_rows = rows->count;
    for (int step = 1; before != rows->count; step++) {
        before = rows->count;
        for (int i = 0; i < count; i++)
            if (mirrors[i]->wanted > step) {
                int place = mirrors[i]->cached++;

                mirrors[i]->tokens[place] = 0; /* the device fills it in */
                add_row(rows, mirrors[i], place, place);
            }
    }
    return first_rows;
}

/* What the device is asked to draft for a mirror; it writes supports and weights into the mirror's q. */
static struct kept_draft ask_draft(const struct model_draft *state, const struct mirror *mirror, struct kept_choice *choice)
{
    struct sparse_q *q = &state->q[mirror->slot * MESSAGE_MAX_DRAFT];

    for (int k = 0; k < mirror->wanted; k++)
        choice[k] = (struct kept_choice){.id = q[k].id, .weight = q[k].weight};
    return (struct kept_draft){.sampling = mirror->sampling,
                               .scale = distribution_scale(&mirror->sampling),
                               .query = query_of(state, mirror, 0),
                               .wanted = mirror->wanted,
                               .choice = choice};
}

static enum status propose_on_device(struct model_draft *state, struct mirror *const *mirrors, int count, struct draft_output *outputs)
{
    int first_rows = lay_out_steps(state, mirrors, count);
    struct kept_draft drafts[count];

    for (int i = 0; i < count; i++)
        drafts[i] = ask_draft(state, mirrors[i], &state->choice[i * MESSAGE_MAX_DRAFT]);
    const char *before = progress_doing(state->model->computing);
    enum status status = forward_draft(&state->forward, &state->rows, first_rows, state->asked, drafts, count, state->support);

    (void)progress_doing(before);
    TRY(status);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < mirrors[i]->wanted; k++) {
            const struct kept_choice *choice = &drafts[i].choice[k];

            outputs[i].q[k] = (struct support){.count = choice->count, .id = choice->id, .weight = choice->weight};
            outputs[i].token[k] = mirrors[i]->tokens[mirrors[i]->length + k] = choice->token;
            outputs[i].count = mirrors[i]->drafted = k + 1;
        }
    return STATUS_OK;
}

static enum status model_go_on(void *opaque, struct mirror *const *mirrors, int count, struct draft_output *const *outputs, int (*stop)(void *user),
                               void *user)
{
    struct model_draft *state = opaque;
    int left;

    do {
        TRY(step(state, mirrors, count, outputs));
        left = 0;
        for (int i = 0; i < count; i++)
            left |= !is_done(mirrors[i]);
    } while (left && (stop == NULL || !stop(user)));
    return STATUS_OK;
}

static enum status model_propose(void *opaque, struct mirror *const *mirrors, int count, struct draft_output *outputs)
{
    struct model_draft *state = opaque;
    struct draft_output *each[count];

    for (int i = 0; i < count; i++) {
        each[i] = &outputs[i];
        outputs[i].count = 0;
        mirrors[i]->drafted = 0;
        while (mirrors[i]->length - mirrors[i]->cached > 2) /* one or two tokens, as usual after a commit, are fed in the first step */
            TRY(model_read(state, mirrors[i], mirrors[i]->length));
    }
    if (is_left_to_device(state, mirrors, count))
        return propose_on_device(state, mirrors, count, outputs);
    return model_go_on(state, mirrors, count, each, NULL, NULL);
}

static enum status model_expect(void *opaque, struct mirror *const *mirrors, int count)
{
    return step(opaque, mirrors, count, NULL);
}

static void model_draft_close(void *opaque)
{
    struct model_draft *state = opaque;

    arena_close(&state->arena);
    forward_close(&state->forward);
    kv_cache_close(&state->cache);
    free(state);
}

static void model_break(void *opaque, enum breakage breakage)
{
    ((struct model_draft *)opaque)->breakage = breakage;
}

static enum status model_draft_open(struct draft *draft, const struct draft_parts *terms)
{
    return draft_open_model(draft, terms->model, terms->slots, terms->support);
}

const struct draft_kind draft_model_kind = {.name = "model",
                                            .open = model_draft_open,
                                            .propose = model_propose,
                                            .go_on = model_go_on,
                                            .expect = model_expect,
                                            .read = model_read,
                                            .copy = model_copy,
                                            .draw_wrong = model_break,
                                            .close = model_draft_close};

static enum status lay_out(struct model_draft *state, int slots)
{
    size_t rows = (size_t)state->model->max_rows, vocab = (size_t)state->model->vocab, list = (size_t)state->support;
    size_t words = arena_round(rows * sizeof(int32_t));
    size_t bytes = 5 * words + arena_round(rows * sizeof(uint64_t)) + arena_round((size_t)slots * sizeof(int32_t)) +
                   arena_round((size_t)slots * vocab * sizeof(float)) + arena_round(vocab * sizeof(int32_t)) +
                   arena_round((size_t)slots * sizeof(struct kept_query)) +
                   arena_round((size_t)slots * list * sizeof(struct scored_token)) + arena_round(list * sizeof(double)) +
                   arena_round((size_t)slots * MESSAGE_MAX_DRAFT * sizeof(struct sparse_q)) +
                   arena_round((size_t)slots * MESSAGE_MAX_DRAFT * sizeof(struct kept_choice));

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
    state->choice = arena_take(&state->arena, (size_t)slots * MESSAGE_MAX_DRAFT * sizeof *state->choice);
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
    *draft = (struct draft){.kind = &draft_model_kind, .state = state};
    return STATUS_OK;

release:
    model_draft_close(state);
    return status;
}
