#include "verifier/team/shard.h"

#include "common/base/digest.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "common/sample/distribution.h"
#include "common/sample/logits.h"
#include <math.h>
#include <string.h>

enum status shard_open(struct shard *shard, struct model *model, int slots, int max_outputs)
{
    size_t logits = arena_round((size_t)max_outputs * (size_t)model->vocab_count * sizeof(float));
    size_t history = arena_round((size_t)slots * (size_t)model->shape.context * sizeof(int32_t));
    size_t tally = arena_round((size_t)model->vocab_count * sizeof(int32_t)), excluded = tally;
    size_t terms = arena_round((size_t)slots * sizeof(struct slot_terms));
    size_t queries = arena_round((size_t)max_outputs * sizeof(struct kept_query));
    size_t drawn = arena_round((size_t)max_outputs * sizeof(struct evidence_winner)), is_drawn = arena_round((size_t)max_outputs);
    enum status status;

    *shard = (struct shard){.model = model, .max_outputs = max_outputs};
    TRY(kv_cache_open(&shard->cache, model, slots));
    TRY_TO(forward_open(&shard->forward, model, &shard->cache), close_cache);
    TRY_TO(arena_open(&shard->arena, 2 * logits + history + tally + excluded + terms + queries + drawn + is_drawn, "the rows of a step"),
           close_forward);
    shard->logits = arena_take(&shard->arena, logits);
    shard->processed = arena_take(&shard->arena, logits);
    shard->history = arena_take(&shard->arena, history);
    shard->tally = arena_take(&shard->arena, tally);
    shard->excluded = arena_take(&shard->arena, excluded);
    shard->terms = arena_take(&shard->arena, terms);
    shard->queries = arena_take(&shard->arena, queries);
    shard->drawn = arena_take(&shard->arena, drawn);
    shard->is_drawn = arena_take(&shard->arena, is_drawn);
    return STATUS_OK;

close_forward:
    forward_close(&shard->forward);
close_cache:
    kv_cache_close(&shard->cache);
    return status;
}

void shard_close(struct shard *shard)
{
    arena_close(&shard->arena);
    forward_close(&shard->forward);
    kv_cache_close(&shard->cache);
}

void shard_open_slot(struct shard *shard, const struct slot_terms *terms)
{
    shard->terms[terms->slot] = *terms;
}

static int32_t *history_at(const struct shard *shard, int slot, int place)
{
    return shard->history + (size_t)slot * (size_t)shard->model->shape.context + (size_t)place;
}

void shard_copy(struct shard *shard, const struct copy_order *order)
{
    kv_cache_copy(&shard->cache, (struct cache_place){order->from, order->first}, (struct cache_place){order->to, order->first}, order->count);
    memcpy(history_at(shard, order->to, order->first), history_at(shard, order->from, order->first), (size_t)order->count * sizeof(int32_t));
}

void shard_keep(struct shard *shard, const struct keep_order *orders, int count)
{
    for (int i = 0; i < count; i++) {
        const struct keep_order *order = &orders[i];

        kv_cache_copy(&shard->cache, (struct cache_place){order->slot, order->from}, (struct cache_place){order->slot, order->to}, 1);
        *history_at(shard, order->slot, order->to) = *history_at(shard, order->slot, order->from);
    }
}

static const struct slot_terms *terms_of(const struct shard *shard, const struct step *step, int output)
{
    return &shard->terms[step->rows.slot[step->output_row[output]]];
}

static int support_count(const struct step *step, int output)
{
    return step->support_first[output + 1] - step->support_first[output];
}

struct rng_key shard_key(const struct slot_terms *terms, const struct step *step, int output)
{
    return (struct rng_key){.seed = terms->sampling.seed,
                            .request = terms->request,
                            .position = (uint32_t)step->rows.position[step->output_row[output]] + 1};
}

size_t shard_evidence_bytes(const struct shard *shard, const struct step *step)
{
    size_t bytes = 0;

    for (int a = 0; a < step->outputs; a++)
        bytes += evidence_bytes(&terms_of(shard, step, a)->sampling, support_count(step, a));
    return bytes;
}

/* Do sampling parameters or biases change a row's logits before evidence is taken? */
static int is_processed(const struct slot_terms *terms)
{
    return logits_are_processed(&terms->sampling, &terms->bias);
}

static float *row_at(const struct shard *shard, float *rows, int output)
{
    return rows + (size_t)output * (size_t)shard->model->vocab_count;
}

/* Applies sampling parameters and biases. The history that penalties count goes up to the row's own token, including the drafts before it. */
static void process(struct shard *shard, const struct step *step, int output)
{
    const struct slot_terms *terms = terms_of(shard, step, output);
    int row = step->output_row[output], count = shard->model->vocab_count;
    const struct history history = {.tokens = history_at(shard, terms->slot, 0),
                                    .base = step->rows.base[row],
                                    .ancestors = step->rows.ancestors[row],
                                    .prompt_count = terms->prompt_count};
    float *to = row_at(shard, shard->processed, output);

    memcpy(to, row_at(shard, shard->logits, output), (size_t)count * sizeof *to);
    logits_process(&terms->sampling, &terms->bias, &history, to, shard->model->vocab_first, count, shard->tally);
}

/* Does the backend compute this row's evidence? Rows whose logits need more than scaling are processed on the host instead. */
static int is_answered(const struct shard *shard, const struct slot_terms *terms)
{
    return shard->model->backend->output.ask != NULL && logits_are_only_scaled(&terms->sampling, &terms->bias);
}

/* Where the row's processed logits are. For a row that the backend answers they are there only after shard_row. */
static const float *processed_row(const struct shard *shard, const struct slot_terms *terms, int output)
{
    return row_at(shard, is_processed(terms) ? shard->processed : shard->logits, output);
}

static struct evidence_row row_of(const struct shard *shard, const struct step *step, int output)
{
    const struct slot_terms *terms = terms_of(shard, step, output);

    return (struct evidence_row){.logits = processed_row(shard, terms, output),
                                 .first = shard->model->vocab_first,
                                 .count = shard->model->vocab_count,
                                 .key = shard_key(terms, step, output),
                                 .support = step->id + step->support_first[output],
                                 .support_count = support_count(step, output)};
}

/* Copies a row of logits from the device to the host. */
static void fetch(const struct shard *shard, int output)
{
    if (shard->model->backend->output.fetch != NULL)
        shard->model->backend->output.fetch(shard->model->context, output, row_at(shard, shard->logits, output));
}

enum status shard_row(struct shard *shard, const struct step *step, int output, const float **logits)
{
    const struct slot_terms *terms = terms_of(shard, step, output);

    if (is_answered(shard, terms)) {
        fetch(shard, output);
        TRY(shard->model->backend->step.finish(shard->model->context));
        if (is_processed(terms))
            process(shard, step, output);
    }
    *logits = processed_row(shard, terms, output);
    return STATUS_OK;
}

/* Asks for the draw that a row may need after its draft is rejected, together with the evidence: outside q's support where it has one, else among all
 * tokens. So a device is not asked twice. Where logits are in the host's memory this is not done: most of these draws are never used, and asking
 * later is cheap. */
static void ask_draw(const struct shard *shard, const struct sampling *sampling, const struct evidence_row *row, struct row_query *query)
{
    if (shard->model->backend->output.fetch == NULL || !evidence_facts(sampling)->leaves_draw)
        return;
    query->gumbel = 1;
    query->purpose = RNG_RESIDUAL;
    query->excludes = row->support_count > 0;
}

/* Writes the queries for the rows that the backend answers; returns their number.  evidence: where the answers will be written */
static int write_questions(struct shard *shard, const struct step *step, char *evidence)
{
    int queries = 0;

    for (int a = 0; a < step->outputs; a++) {
        const struct slot_terms *terms = terms_of(shard, step, a);
        struct evidence_row row = row_of(shard, step, a);

        if (is_answered(shard, terms)) {
            struct kept_query *query = &shard->queries[queries++];

            query->row = a;
            query->scale = distribution_scale(&terms->sampling);
            evidence_ask(&terms->sampling, &row, evidence, &query->query);
            ask_draw(shard, &terms->sampling, &row, &query->query);
        }
        evidence += evidence_bytes(&terms->sampling, row.support_count);
    }
    return queries;
}

/* Between forward_begin and forward_end: copies the rows that the host processes. */
static void fetch_others(struct shard *shard, const struct step *step)
{
    for (int a = 0; a < step->outputs; a++)
        if (!is_answered(shard, terms_of(shard, step, a)))
            fetch(shard, a);
}

static enum status run_forward(struct shard *shard, const struct step *step, void *evidence)
{
    const struct forward_questions questions = {
        .first = shard->model->vocab_first, .queries = shard->queries, .count = write_questions(shard, step, evidence)};

    TRY(forward_begin(&shard->forward, &step->rows, step->output_row, step->outputs + step->scored, shard->logits, &questions));
    fetch_others(shard, step);
    return forward_end(&shard->forward);
}

static struct evidence_winner winner_of(const struct row_query *query, int32_t first)
{
    return (struct evidence_winner){.score = query->winner.score, .token = query->winner.token < 0 ? -1 : query->winner.token + first};
}

enum status shard_step(struct shard *shard, const struct step *step, void *evidence)
{
    const struct rows *rows = &step->rows;
    const struct backend *backend = shard->model->backend;
    const char *before = progress_doing(shard->model->computing);
    enum status status;
    char *to = evidence;
    int queries = 0;

    for (int r = 0; r < rows->count; r++)
        *history_at(shard, rows->slot[r], rows->place[r]) = rows->token[r];
    status = run_forward(shard, step, evidence);
    (void)progress_doing(before);
    TRY(status);
    for (int a = 0; a < step->outputs; a++) {
        const struct slot_terms *terms = terms_of(shard, step, a);
        struct evidence_row row = row_of(shard, step, a);

        if (is_answered(shard, terms)) {
            const struct row_query *query = &shard->queries[queries++].query;

            evidence_put(&terms->sampling, &row, query, to);
            shard->is_drawn[a] = query->gumbel && query->purpose == RNG_RESIDUAL;
            if (shard->is_drawn[a])
                shard->drawn[a] = winner_of(query, row.first);
        } else {
            shard->is_drawn[a] = 0;
            if (is_processed(terms))
                process(shard, step, a);
            evidence_take(backend, shard->model->context, &terms->sampling, &row, to);
        }
        to += evidence_bytes(&terms->sampling, row.support_count);
    }
    return STATUS_OK;
}

static struct row_query draw_of(const struct evidence_row *row, const struct draw_order *order)
{
    return (struct row_query){.gumbel = 1,
                              .key = row->key,
                              .purpose = RNG_RESIDUAL,
                              .excludes = order->residual,
                              .token = row->support,
                              .tokens = order->residual ? row->support_count : 0};
}

/* Was this draw made together with the step's evidence? */
static int is_drawn(const struct shard *shard, const struct step *step, const struct draw_order *order)
{
    return shard->is_drawn[order->output] && order->residual == (support_count(step, order->output) > 0);
}

enum status shard_draws(struct shard *shard, const struct step *step, const struct draw_order *orders, int count,
                        struct evidence_winner *winners)
{
    const struct model *model = shard->model;
    int queries = 0, order_of[count];

    for (int i = 0; i < count; i++) { /* orders and winners may overlap: order i is not read after winner i is written */
        const struct slot_terms *terms = terms_of(shard, step, orders[i].output);
        struct evidence_row row = row_of(shard, step, orders[i].output);
        struct row_query query = draw_of(&row, &orders[i]);

        if (is_drawn(shard, step, &orders[i])) {
            winners[i] = shard->drawn[orders[i].output];
            continue;
        }
        if (is_answered(shard, terms)) {
            order_of[queries] = i;
            shard->queries[queries++] = (struct kept_query){orders[i].output, distribution_scale(&terms->sampling), query};
            continue;
        }
        backend_answer(model->backend, model->context, row.logits, row.first, row.count, shard->excluded, &query);
        winners[i] = winner_of(&query, row.first);
    }
    if (queries == 0)
        return STATUS_OK;
    model->backend->output.ask(model->context, model->vocab_first, shard->queries, queries);
    TRY(model->backend->step.finish(model->context));
    for (int i = 0; i < queries; i++)
        winners[order_of[i]] = winner_of(&shard->queries[i].query, model->vocab_first);
    return STATUS_OK;
}

/* The noted tokens' logits as the model gave them; for tokens of other shards the value is undefined.  logits: [count] */
static enum status look_up_noted(struct shard *shard, const struct step *step, const struct commit_note *notes, int count, float *logits)
{
    const struct model *model = shard->model;
    int queries = 0;

    for (int i = 0; i < count; i++) {
        struct row_query query = {.token = &notes[i].token, .tokens = 1, .logit = &logits[i]};

        if (is_answered(shard, terms_of(shard, step, notes[i].output)))
            shard->queries[queries++] = (struct kept_query){.row = notes[i].output, .scale = 1.0f, .query = query};
        else
            backend_look_up(&query, row_at(shard, shard->logits, notes[i].output), 1.0f, model->vocab_first, model->vocab_count);
    }
    if (queries == 0)
        return STATUS_OK;
    model->backend->output.ask(model->context, model->vocab_first, shard->queries, queries);
    return model->backend->step.finish(model->context);
}

enum status shard_note(struct shard *shard, const struct step *step, const struct commit_note *notes, int count)
{
    float logits[count + 1]; /* + 1: count may be 0 */

    TRY(look_up_noted(shard, step, notes, count, logits));
    for (int i = 0; i < count; i++) {
        int output = notes[i].output, at = notes[i].token - shard->model->vocab_first;
        struct {
            uint32_t request, position;
            int32_t token;
            float logit;
        } entry;

        if (at < 0 || at >= shard->model->vocab_count)
            continue; /* the token is another shard's */
        entry.request = terms_of(shard, step, output)->request;
        entry.position = (uint32_t)step->rows.position[step->output_row[output]] + 1;
        entry.token = notes[i].token;
        entry.logit = logits[i];
        shard->hash += digest_bytes(&entry, sizeof entry, 0);
    }
    return STATUS_OK;
}

/* In double, so that the joined sum is the same number, but for its last bits, however the vocabulary is cut: what is told of it is a float. */
static double sum_of_exp(const float *logits, int count, float max)
{
    double sum = 0;

    for (int i = 0; i < count; i++)
        sum += exp((double)logits[i] - (double)max);
    return sum;
}

static void measure(struct shard *shard, const struct logprob_order *order, struct logprob_share *share)
{
    const struct model *model = shard->model;
    const float *logits = row_at(shard, shard->logits, order->output);
    struct row_query query = {.scans = 1, .token = &order->token, .tokens = 1, .logit = &share->logit, .top = order->top, .best = share->best};

    *share = (struct logprob_share){0};
    backend_answer(model->backend, model->context, logits, model->vocab_first, model->vocab_count, NULL, &query);
    share->max = query.stats.max;
    share->sum = isfinite(share->max) ? sum_of_exp(logits, model->vocab_count, share->max) : 0;
    share->count = order->top > 0 ? query.best_count : 0;
    for (int i = 0; i < share->count; i++)
        share->best[i].token += model->vocab_first;
}

enum status shard_logprobs(struct shard *shard, const struct step *step, const struct logprob_order *orders, int count, struct logprob_share *shares)
{
    const struct model *model = shard->model;
    struct logprob_order own[count];
    int fetched = 0;

    memcpy(own, orders, sizeof own);
    for (int i = 0; i < count && model->backend->output.fetch != NULL; i++)
        if (own[i].output >= step->outputs || is_answered(shard, terms_of(shard, step, own[i].output))) {
            fetch(shard, own[i].output);
            fetched++;
        }
    if (fetched > 0)
        TRY(model->backend->step.finish(model->context));
    for (int i = 0; i < count; i++)
        measure(shard, &own[i], &shares[i]);
    return STATUS_OK;
}
