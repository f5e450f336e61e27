#include "verifier/shard.h"

#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/sample/logits.h"
#include <string.h>

enum status shard_open(struct shard *shard, struct model *model, int slots, int max_asked)
{
    size_t logits = arena_round((size_t)max_asked * (size_t)model->vocab_count * sizeof(float));
    size_t history = arena_round((size_t)slots * (size_t)model->shape.context * sizeof(int32_t));
    size_t tally = arena_round((size_t)model->vocab_count * sizeof(int32_t)), excluded = tally;
    size_t terms = arena_round((size_t)slots * sizeof(struct slot_terms));

    enum status status;

    *shard = (struct shard){.model = model, .max_asked = max_asked};
    TRY(kv_cache_open(&shard->cache, model, slots));
    TRY_TO(forward_open(&shard->forward, model, &shard->cache), close_cache);
    TRY_TO(arena_open(&shard->arena, 2 * logits + history + tally + excluded + terms, "the rows of a step"), close_forward);
    shard->logits = arena_take(&shard->arena, logits);
    shard->processed = arena_take(&shard->arena, logits);
    shard->history = arena_take(&shard->arena, history);
    shard->tally = arena_take(&shard->arena, tally);
    shard->excluded = arena_take(&shard->arena, excluded);
    shard->terms = arena_take(&shard->arena, terms);
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

static const struct slot_terms *terms_of(const struct shard *shard, const struct step *step, int asked)
{
    return &shard->terms[step->rows.slot[step->asked_row[asked]]];
}

static int support_count(const struct step *step, int asked)
{
    return step->support_first[asked + 1] - step->support_first[asked];
}

struct rng_key shard_key(const struct slot_terms *terms, const struct step *step, int asked)
{
    return (struct rng_key){.seed = terms->sampling.seed,
                            .request = terms->request,
                            .position = (uint32_t)step->rows.position[step->asked_row[asked]] + 1};
}

size_t shard_evidence_bytes(const struct shard *shard, const struct step *step)
{
    size_t bytes = 0;

    for (int a = 0; a < step->asked; a++)
        bytes += evidence_bytes(&terms_of(shard, step, a)->sampling, support_count(step, a));
    return bytes;
}

/* Are a row's logits changed before they are judged? */
static int is_processed(const struct slot_terms *terms)
{
    return logits_are_processed(&terms->sampling, &terms->bias);
}

static float *row_at(const struct shard *shard, float *rows, int asked)
{
    return rows + (size_t)asked * (size_t)shard->model->vocab_count;
}

const float *shard_row(const struct shard *shard, const struct step *step, int asked)
{
    return row_at(shard, is_processed(terms_of(shard, step, asked)) ? shard->processed : shard->logits, asked);
}

/* A row's history goes up to its own token, earlier drafted ones included. */
static void process(struct shard *shard, const struct step *step, int asked)
{
    const struct slot_terms *terms = terms_of(shard, step, asked);
    int row = step->asked_row[asked], count = shard->model->vocab_count;
    const struct logits_history history = {.tokens = shard->history + (size_t)terms->slot * (size_t)shard->model->shape.context,
                                           .count = step->rows.place[row] + 1,
                                           .prompt_count = terms->prompt_count};
    float *to = row_at(shard, shard->processed, asked);

    memcpy(to, row_at(shard, shard->logits, asked), (size_t)count * sizeof *to);
    logits_process(&terms->sampling, &terms->bias, &history, to, shard->model->vocab_first, count, shard->tally);
}

static struct evidence_row row_of(const struct shard *shard, const struct step *step, int asked)
{
    return (struct evidence_row){.logits = shard_row(shard, step, asked),
                                 .first = shard->model->vocab_first,
                                 .count = shard->model->vocab_count,
                                 .key = shard_key(terms_of(shard, step, asked), step, asked),
                                 .support = step->id + step->support_first[asked],
                                 .support_count = support_count(step, asked)};
}

enum status shard_step(struct shard *shard, const struct step *step, void *evidence)
{
    const struct rows *rows = &step->rows;
    char *to = evidence;

    for (int r = 0; r < rows->count; r++)
        shard->history[(size_t)rows->slot[r] * (size_t)shard->model->shape.context + (size_t)rows->place[r]] = rows->token[r];
    TRY(forward_run(&shard->forward, rows, step->asked_row, step->asked, shard->logits));
    for (int a = 0; a < step->asked; a++) {
        const struct slot_terms *terms = terms_of(shard, step, a);
        const struct sampling *sampling = &terms->sampling;
        struct evidence_row row;

        if (is_processed(terms))
            process(shard, step, a);
        row = row_of(shard, step, a);
        evidence_take(shard->model->backend, shard->model->context, sampling, &row, to);
        to += evidence_bytes(sampling, row.support_count);
    }
    return STATUS_OK;
}

static void exclude(struct shard *shard, const struct evidence_row *row, int on)
{
    for (int i = 0; i < row->support_count; i++) {
        int32_t at = row->support[i] - row->first;

        if (at >= 0 && at < row->count)
            shard->excluded[at / 32] = on ? shard->excluded[at / 32] | UINT32_C(1) << (at % 32) : 0;
    }
}

void shard_draws(struct shard *shard, const struct step *step, const struct draw_order *orders, int count,
                 struct evidence_winner *winners)
{
    for (int i = 0; i < count; i++) {
        struct evidence_row row = row_of(shard, step, orders[i].asked);
        struct scored_token winner;

        if (orders[i].residual)
            exclude(shard, &row, 1);
        shard->model->backend->row_race(shard->model->context, row.logits, row.count, row.first, &row.key, RNG_RESIDUAL,
                                        orders[i].residual ? shard->excluded : NULL, &winner);
        if (orders[i].residual)
            exclude(shard, &row, 0);
        winners[i] = (struct evidence_winner){.score = winner.score, .token = winner.token < 0 ? -1 : winner.token + row.first};
    }
}

void shard_note(struct shard *shard, const struct step *step, const struct commit_note *notes, int count)
{
    for (int i = 0; i < count; i++) {
        int asked = notes[i].asked, at = notes[i].token - shard->model->vocab_first;
        struct {
            uint32_t request, position;
            int32_t token;
            float logit;
        } entry;

        if (at < 0 || at >= shard->model->vocab_count)
            continue; /* another shard's */
        entry.request = terms_of(shard, step, asked)->request;
        entry.position = (uint32_t)step->rows.position[step->asked_row[asked]] + 1;
        entry.token = notes[i].token;
        entry.logit = row_at(shard, shard->logits, asked)[at];
        shard->hash += digest_bytes(&entry, sizeof entry, 0);
    }
}
