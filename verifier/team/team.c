#include "verifier/team/team.h"

#include "common/base/progress.h"
#include "common/base/recorder.h"
#include "common/base/trace.h"
#include "common/base/try.h"
#include "common/sample/distribution.h"
#include <math.h>
#include <string.h>

enum order_kind {
    ORDER_OPEN_SLOT = 1,
    ORDER_COPY,
    ORDER_KEEP,
    ORDER_STEP,
    ORDER_DRAWS,
    ORDER_WHOLE_ROW,
    ORDER_NOTE,
    ORDER_LOGPROBS,
    ORDER_HASH,
    ORDER_END
};

/* Small orders are sent within the head, so that most orders take one broadcast. */
enum { INLINE_BYTES = 1000 };

struct order {
    int32_t kind;
    int32_t bytes;
    unsigned char inlined[INLINE_BYTES];
};

enum status team_open(struct team *team, struct model *model, int slots, int max_outputs, int max_ids)
{
    size_t ranks = (size_t)model->group->size, step = arena_round(step_bytes(model->max_rows, max_outputs, max_ids));
    enum status status;

    *team = (struct team){.group = model->group};
    team->evidence_room = arena_round(evidence_room(max_outputs, max_ids));
    team->vocab_width = model->vocab / model->group->size + 2 * BACKEND_PANEL;
    size_t whole = arena_round(ranks * (size_t)team->vocab_width * sizeof(float));
    if (team->evidence_room < whole / ranks) /* whole rows are gathered from the same memory */
        team->evidence_room = arena_round((size_t)team->vocab_width * sizeof(float));
    if (team->evidence_room < sizeof(struct slot_terms)) /* and slot terms are received in it */
        team->evidence_room = arena_round(sizeof(struct slot_terms));
    TRY(shard_open(&team->shard, model, slots, max_outputs));
    status = arena_open(&team->arena, step + (1 + ranks) * team->evidence_room + whole, "the step");
    if (status != STATUS_OK) {
        shard_close(&team->shard);
        return status;
    }
    team->step.words = arena_take(&team->arena, step);
    team->evidence = arena_take(&team->arena, team->evidence_room);
    team->gathered = arena_take(&team->arena, ranks * team->evidence_room);
    team->whole = arena_take(&team->arena, whole);
    return STATUS_OK;
}

void team_close(struct team *team)
{
    arena_close(&team->arena);
    shard_close(&team->shard);
}

/* Texts for the flight recorder (common/base/recorder.h), by kind of order. */
static const char *const ordered[] = {
    [ORDER_OPEN_SLOT] = "orders to open a slot",
    [ORDER_COPY] = "orders a copy of a prefix",
    [ORDER_KEEP] = "orders to keep paths, # bytes",
    [ORDER_STEP] = "orders a step, # bytes",
    [ORDER_DRAWS] = "orders draws, # bytes",
    [ORDER_WHOLE_ROW] = "orders a whole row",
    [ORDER_NOTE] = "orders to note commits, # bytes",
    [ORDER_LOGPROBS] = "orders log p, # bytes",
    [ORDER_HASH] = "orders the hash",
    [ORDER_END] = "orders the end",
};
static const char *const followed[] = {
    [ORDER_OPEN_SLOT] = "opened a slot as ordered",     [ORDER_COPY] = "copied a prefix as ordered",
    [ORDER_KEEP] = "kept paths as ordered, # bytes",    [ORDER_STEP] = "did a step of # bytes as ordered",
    [ORDER_DRAWS] = "drew as ordered, # bytes",         [ORDER_WHOLE_ROW] = "gave a whole row as ordered",
    [ORDER_NOTE] = "noted commits as ordered, # bytes", [ORDER_LOGPROBS] = "gave log p as ordered, # bytes",
    [ORDER_HASH] = "gave its hash as ordered",          [ORDER_END] = "is told of the end",
};

/* Broadcasts an order to the followers, of which a group of one has none. */
static enum status order(struct team *team, enum order_kind kind, const void *bytes, size_t count)
{
    struct order head = {.kind = (int32_t)kind, .bytes = (int32_t)count};
    int64_t began = trace_begin();

    recorder_note(ordered[kind], (int64_t)count, 0, 0);
    if (team->group->size == 1)
        return STATUS_OK;
    if (count <= INLINE_BYTES && count > 0)
        memcpy(head.inlined, bytes, count);
    TRY(group_broadcast(team->group, &head, sizeof head));
    if (count > INLINE_BYTES)
        TRY(group_broadcast(team->group, (void *)(uintptr_t)bytes, count));
    trace_end(TRACE_ORDER, began, 0, 0, (int64_t)count, 0, 0);
    return STATUS_OK;
}

enum status team_open_slot(struct team *team, const struct slot_terms *terms)
{
    TRY(order(team, ORDER_OPEN_SLOT, terms, sizeof *terms));
    shard_open_slot(&team->shard, terms);
    return STATUS_OK;
}

enum status team_copy(struct team *team, const struct copy_order *copy)
{
    TRY(order(team, ORDER_COPY, copy, sizeof *copy));
    shard_copy(&team->shard, copy);
    return STATUS_OK;
}

enum status team_keep(struct team *team, const struct keep_order *orders, int count)
{
    TRY(order(team, ORDER_KEEP, orders, (size_t)count * sizeof *orders));
    shard_keep(&team->shard, orders, count);
    return STATUS_OK;
}

/* A step's part of every rank, lead and followers alike. */
static enum status run_step(struct team *team, size_t *bytes)
{
    int64_t began = trace_begin(), summed = team->shard.forward.group_ns;

    *bytes = shard_evidence_bytes(&team->shard, &team->step);
    TRY(shard_step(&team->shard, &team->step, team->evidence));
    trace_end(TRACE_VERIFY, began, 0, 0, team->step.rows.count, team->shard.forward.group_ns - summed, 0);
    began = trace_begin();
    TRY(group_gather(team->group, team->evidence, *bytes, team->gathered));
    trace_end(TRACE_GATHER, began, 0, 0, (int64_t)*bytes, 0, 0);
    return STATUS_OK;
}

enum status team_step(struct team *team, size_t *bytes)
{
    TRY(order(team, ORDER_STEP, team->step.words, team->step.bytes));
    return run_step(team, bytes);
}

static enum status run_draws(struct team *team, const struct draw_order *orders, int count)
{
    TRY(shard_draws(&team->shard, &team->step, orders, count, (struct evidence_winner *)(void *)team->evidence));
    return group_gather(team->group, team->evidence, (size_t)count * sizeof(struct evidence_winner), team->gathered);
}

enum status team_draws(struct team *team, const struct draw_order *orders, int count, struct evidence_winner *winners)
{
    const struct evidence_winner *from = (const struct evidence_winner *)(void *)team->gathered;

    TRY(order(team, ORDER_DRAWS, orders, (size_t)count * sizeof *orders));
    TRY(run_draws(team, orders, count));
    for (int i = 0; i < count; i++) {
        winners[i] = from[i];
        for (int r = 1; r < team->group->size; r++) {
            struct evidence_winner other = from[r * count + i];

            if (other.token >= 0 && (winners[i].token < 0 || other.score > winners[i].score))
                winners[i] = other;
        }
    }
    return STATUS_OK;
}

static enum status run_whole_row(struct team *team, int output)
{
    const float *row;
    size_t own = (size_t)team->shard.model->vocab_count * sizeof *row, width = (size_t)team->vocab_width * sizeof *row;

    TRY(shard_row(&team->shard, &team->step, output, &row));
    memcpy(team->evidence, row, own);
    memset(team->evidence + own, 0, width - own);
    return group_gather(team->group, team->evidence, width, team->whole);
}

enum status team_whole_row(struct team *team, int output, float *logits)
{
    const struct model *model = team->shard.model;
    int32_t which = output;
    int64_t vocab = model->vocab;

    TRY(order(team, ORDER_WHOLE_ROW, &which, sizeof which));
    TRY(run_whole_row(team, output));
    for (int r = 0; r < team->group->size; r++) { /* the vocabulary is split as in model_open */
        int64_t first = vocab * r / team->group->size / BACKEND_PANEL * BACKEND_PANEL;
        int64_t last = r + 1 == team->group->size ? vocab : vocab * (r + 1) / team->group->size / BACKEND_PANEL * BACKEND_PANEL;

        memcpy(logits + first, team->whole + (size_t)r * (size_t)team->vocab_width, (size_t)(last - first) * sizeof *logits);
    }
    return STATUS_OK;
}

enum status team_note(struct team *team, const struct commit_note *notes, int count)
{
    TRY(order(team, ORDER_NOTE, notes, (size_t)count * sizeof *notes));
    return shard_note(&team->shard, &team->step, notes, count);
}

static enum status run_logprobs(struct team *team, const struct logprob_order *orders, int count)
{
    TRY(shard_logprobs(&team->shard, &team->step, orders, count, (struct logprob_share *)(void *)team->evidence));
    return group_gather(team->group, team->evidence, (size_t)count * sizeof(struct logprob_share), team->gathered);
}

/* shares: of one token, rank after rank, `apart` from each other */
static struct logprob join_logprob(const struct logprob_share *shares, int ranks, int apart, int top)
{
    struct scored_token best[2 * ROW_MAX_LOGPROBS] = {0};
    struct logprob joined = {0};
    float max = -INFINITY, logit = -INFINITY;
    double sum = 0, log_z;

    for (int r = 0; r < ranks; r++) {
        max = fmaxf(max, shares[r * apart].max);
        logit = fmaxf(logit, shares[r * apart].logit);
    }
    for (int r = 0; r < ranks; r++) {
        const struct logprob_share *share = &shares[r * apart];

        sum += share->sum * exp((double)share->max - (double)max);
        distribution_merge(best, joined.count, share->best, share->count);
        joined.count = joined.count + share->count < top ? joined.count + share->count : top;
    }
    log_z = (double)max + (sum > 0 ? log(sum) : 0);
    joined.logprob = (float)((double)logit - log_z);
    for (int i = 0; i < joined.count; i++)
        joined.top[i] = (struct scored_token){.score = (float)((double)best[i].score - log_z), .token = best[i].token};
    return joined;
}

enum status team_logprobs(struct team *team, const struct logprob_order *orders, int count, struct logprob *logprobs)
{
    const struct logprob_share *from = (const struct logprob_share *)(void *)team->gathered;

    TRY(order(team, ORDER_LOGPROBS, orders, (size_t)count * sizeof *orders));
    TRY(run_logprobs(team, orders, count));
    for (int i = 0; i < count; i++)
        logprobs[i] = join_logprob(from + i, team->group->size, count, orders[i].top);
    return STATUS_OK;
}

enum status team_hash(struct team *team, uint64_t *hash)
{
    const uint64_t *from = (const uint64_t *)(void *)team->gathered;

    TRY(order(team, ORDER_HASH, NULL, 0));
    TRY(group_gather(team->group, &team->shard.hash, sizeof(uint64_t), team->gathered));
    *hash = 0;
    for (int r = 0; r < team->group->size; r++)
        *hash += from[r];
    return STATUS_OK;
}

enum status team_rest(struct team *team)
{
    return team_note(team, NULL, 0); /* an order without effect */
}

enum status team_end(struct team *team)
{
    return order(team, ORDER_END, NULL, 0);
}

static enum status follow_one(struct team *team, const struct order *head, const void *bytes)
{
    size_t unused;

    switch ((enum order_kind)head->kind) {
    case ORDER_OPEN_SLOT:
        shard_open_slot(&team->shard, bytes);
        return STATUS_OK;
    case ORDER_COPY:
        shard_copy(&team->shard, bytes);
        return STATUS_OK;
    case ORDER_KEEP:
        shard_keep(&team->shard, bytes, head->bytes / (int)sizeof(struct keep_order));
        return STATUS_OK;
    case ORDER_STEP:
        memmove(team->step.words, bytes, (size_t)head->bytes);
        step_adopt(&team->step);
        return run_step(team, &unused);
    case ORDER_DRAWS:
        return run_draws(team, bytes, head->bytes / (int)sizeof(struct draw_order));
    case ORDER_WHOLE_ROW:
        return run_whole_row(team, *(const int32_t *)bytes);
    case ORDER_NOTE:
        return shard_note(&team->shard, &team->step, bytes, head->bytes / (int)sizeof(struct commit_note));
    case ORDER_LOGPROBS:
        return run_logprobs(team, bytes, head->bytes / (int)sizeof(struct logprob_order));
    case ORDER_HASH:
        return group_gather(team->group, &team->shard.hash, sizeof(uint64_t), NULL);
    case ORDER_END:
        break;
    }
    return STATUS_OK;
}

enum status team_follow(struct team *team)
{
    struct order head;

    do {
        const void *bytes = head.inlined;
        int64_t began = trace_begin();

        TRY(group_broadcast(team->group, &head, sizeof head));
        trace_end(TRACE_WAIT, began, 0, 0, 0, 0, 0);
        if (head.bytes > INLINE_BYTES) {
            /* Of the long orders, steps are received in their own block; all others fit the evidence's memory. */
            bytes = head.kind == ORDER_STEP ? (void *)team->step.words : (void *)team->evidence;
            TRY(group_broadcast(team->group, (void *)(uintptr_t)bytes, (size_t)head.bytes));
        }
        TRY(follow_one(team, &head, bytes));
        if (team->relay != NULL)
            TRY(drain_relay_look(team->relay));
        recorder_note(followed[head.kind], head.bytes, 0, 0);
        progress_made("following the lead");
    } while (head.kind != ORDER_END);
    return STATUS_OK;
}
