#include "tests/law/toy_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* splitmix64 */
static double uniform(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* Random weights that sum to 1; with zeros a quarter of them is 0, never the one at `kept`. */
static void fill_weights(uint64_t *state, int tokens, int zeros, int kept, double *p)
{
    double sum = 0;

    for (int v = 0; v < tokens; v++) {
        double weight = exp(3 * uniform(state) - 1.5);
        int dropped = uniform(state) < 0.25;

        p[v] = zeros && dropped && v != kept ? 0 : weight;
        sum += p[v];
    }
    for (int v = 0; v < tokens; v++)
        p[v] /= sum;
}

static void fill_rows(const struct toy_terms *terms, uint64_t *state, float *p_logit, float *q_logit)
{
    double p[TOY_MOST], noise[TOY_MOST];

    fill_weights(state, terms->tokens, terms->zeros, 0, p);
    fill_weights(state, terms->tokens, terms->zeros, 1, noise);
    for (int v = 0; v < terms->tokens; v++) {
        int dropped = terms->zeros && uniform(state) < 0.15 && v != 1;
        double q = dropped ? 0 : terms->overlap * p[v] + (1 - terms->overlap) * noise[v];

        p_logit[v] = p[v] > 0 ? (float)log(p[v]) : -INFINITY;
        q_logit[v] = q > 0 ? (float)log(q) : -INFINITY;
    }
}

static void place_ids(struct toy_law *law)
{
    static const int32_t few[] = {0, 17, 18, 50}; /* 0: the token whose noise and the coins have the same index */

    memset(law->token_of, -1, sizeof law->token_of);
    for (int v = 0; v < law->tokens; v++) {
        law->id[v] = law->tokens == 4 ? few[v] : 4 * v + v % 4;
        law->token_of[law->id[v]] = v;
    }
}

void toy_law_fill(struct toy_law *law, const struct toy_terms *terms)
{
    uint64_t state = terms->seed;

    memset(law, 0, sizeof *law);
    law->tokens = terms->tokens;
    place_ids(law);
    for (int position = 0; position < TOY_POSITIONS; position++)
        for (int a = 0; a < terms->tokens; a++)
            for (int b = 0; b < terms->tokens; b++) {
                state = terms->flat ? terms->seed : state;
                fill_rows(terms, &state, law->p[position][a][b], law->q[position][a][b]);
            }
}

/* An id that has no place in the table (a hostile draft may name any) is read as the first that has. */
static int token_of(const struct toy_law *law, int32_t id)
{
    return law->token_of[id] < 0 ? 0 : law->token_of[id];
}

void toy_law_widen(struct toy_law *law, int ids, const float *p, const float *q)
{
    memset(law, 0, sizeof *law);
    law->tokens = 4;
    place_ids(law); /* for the prompt */
    law->wide_ids = ids;
    law->wide_p = p;
    law->wide_q = q;
}

int toy_law_ids(const struct toy_law *law)
{
    return law->wide_ids > 0 ? law->wide_ids : TOY_IDS;
}

void toy_law_row(const struct toy_law *law, int is_draft, int position, const int32_t *history, float *logits)
{
    int a = token_of(law, history[position - 2]), b = token_of(law, history[position - 1]);
    const float *row = (is_draft ? law->q : law->p)[(position - TOY_PROMPT) % TOY_POSITIONS][a][b];

    for (int i = 0; i < TOY_IDS; i++)
        logits[i] = -INFINITY;
    for (int v = 0; v < law->tokens; v++)
        logits[law->id[v]] = row[v];
}

void toy_model_init(struct toy_model *toy, const struct toy_law *law, int is_draft, struct group *group, struct backend_context *context,
                    int max_rows)
{
    int ids = toy_law_ids(law);

    *toy = (struct toy_model){.law = law, .is_draft = is_draft, .backend = backend_cpu};
    toy->backend.output.ask = NULL; /* there is no head to ask */
    toy->model = (struct model){.backend = &toy->backend,
                                .context = context,
                                .group = group,
                                .config = {.layers = 1, .vocab = ids},
                                .shape = {.kv_heads = 1, .head_dim = 1, .context = TOY_CONTEXT},
                                .longest = TOY_CONTEXT,
                                .vocab = ids,
                                .vocab_first = ids / group->size * group->rank,
                                .vocab_count = ids / group->size,
                                .max_rows = max_rows};
}

enum status forward_open(struct forward *forward, struct model *model, struct kv_cache *cache)
{
    float *keys = cache->layer[0].keys;

    *forward = (struct forward){.model = model, .cache = cache};
    ((struct toy_model *)(void *)model)->cache = cache;
    for (int i = 0; i < cache->slots * TOY_CONTEXT; i++)
        keys[i] = NAN;
    return STATUS_OK;
}

void forward_close(struct forward *forward)
{
    *forward = (struct forward){0};
}

/* A place as row r of the step sees it. */
static float *seen(const struct forward *forward, const struct rows *rows, int r, int place)
{
    assert_in_range(place, 0, TOY_CONTEXT - 1);
    assert_true(place < rows->base[r] || (place - rows->base[r] < 64 && rows->ancestors[r] >> (place - rows->base[r]) & 1));
    return (float *)forward->cache->layer[0].keys + rows->slot[r] * TOY_CONTEXT + place;
}

/* The place before the row's own of those that it sees. */
static int place_before(const struct rows *rows, int r)
{
    for (int i = rows->place[r] - 1 - rows->base[r]; i >= 0; i--)
        if (rows->ancestors[r] >> i & 1)
            return rows->base[r] + i;
    return (rows->place[r] < rows->base[r] ? rows->place[r] : rows->base[r]) - 1;
}

static void predict(const struct forward *forward, const struct rows *rows, int r, float *logits)
{
    const struct toy_model *toy = (const struct toy_model *)(const void *)forward->model;
    const struct model *model = forward->model;
    int position = rows->position[r];
    float before = *seen(forward, rows, r, place_before(rows, r)), newest = *seen(forward, rows, r, rows->place[r]), all[TOY_IDS];
    int32_t history[TOY_CONTEXT];

    assert_true(before >= 0 && newest >= 0); /* NaN where nothing was fed */
    if (toy->law->wide_ids > 0) {
        const float *row = toy->is_draft ? toy->law->wide_q : toy->law->wide_p;

        memcpy(logits, row + model->vocab_first, (size_t)model->vocab_count * sizeof *logits);
        return;
    }
    history[position - 1] = (int32_t)before;
    history[position] = (int32_t)newest;
    toy_law_row(toy->law, toy->is_draft, position + 1, history, all);
    memcpy(logits, all + model->vocab_first, (size_t)model->vocab_count * sizeof *logits);
}

enum status forward_begin(struct forward *forward, const struct rows *rows, const int32_t *asked, int output_count, float *logits,
                          const struct forward_questions *questions)
{
    struct toy_model *toy = (struct toy_model *)(void *)forward->model;

    assert_true(questions == NULL || questions->count == 0);
    assert_in_range(rows->count, 1, forward->model->max_rows);
    for (int r = 0; r < rows->count; r++)
        *seen(forward, rows, r, rows->place[r]) = (float)rows->token[r];
    for (int a = 0; a < output_count; a++)
        predict(forward, rows, asked[a], logits + (size_t)a * (size_t)forward->model->vocab_count);
    if (toy->ran != NULL)
        toy->ran(toy, rows);
    return STATUS_OK;
}

enum status forward_end(struct forward *forward)
{
    (void)forward;
    return STATUS_OK;
}

enum status forward_run(struct forward *forward, const struct rows *rows, const int32_t *asked, int output_count, float *logits)
{
    return forward_begin(forward, rows, asked, output_count, logits, NULL);
}

int forward_drafts(const struct forward *forward)
{
    (void)forward;
    return 0;
}

enum status forward_draft(struct forward *forward, const struct rows *rows, int first_rows, const int32_t *asked, struct kept_draft *drafts,
                          int count, int support)
{
    (void)forward, (void)rows, (void)first_rows, (void)asked, (void)drafts, (void)count, (void)support;
    return STATUS_INTERNAL; /* not asked for where forward_drafts says no */
}
