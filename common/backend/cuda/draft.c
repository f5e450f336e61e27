#include "common/backend/cuda/context.h"

#include "common/base/digest.h"
#include <string.h>

static const size_t all = BACKEND_MAX_ROWS, lists = (size_t)BACKEND_MAX_ROWS * ROW_MAX_ASKED;

size_t draft_bytes(void)
{
    return arena_round(all * sizeof(struct sampling)) + 3 * arena_round(all * sizeof(int32_t)) + 2 * arena_round(lists * sizeof(int32_t));
}

void draft_lay_out(struct draft_arrays *arrays, struct arena *arena)
{
    arrays->sampling = arena_take(arena, all * sizeof *arrays->sampling);
    arrays->next = arena_take(arena, all * sizeof *arrays->next);
    arrays->token = arena_take(arena, all * sizeof *arrays->token);
    arrays->count = arena_take(arena, all * sizeof *arrays->count);
    arrays->id = arena_take(arena, lists * sizeof *arrays->id);
    arrays->weight = arena_take(arena, lists * sizeof *arrays->weight);
}

static int longest_draft(const struct draft_terms *terms)
{
    int longest = 0;

    for (int d = 0; d < terms->count; d++)
        longest = terms->drafts[d].wanted > longest ? terms->drafts[d].wanted : longest;
    return longest;
}

/* Entry e: token `step` of draft d, whose row is the row-th of its step's head; the next one's row is `next` of x, or -1. */
static void write_entry(struct backend_context *context, int e, int d, int step, int row, int next)
{
    struct draft_work *work = &context->draft;
    const struct kept_draft *draft = &work->terms.drafts[d];
    struct kept_query kept = {.row = row, .scale = draft->scale, .query = draft->query};

    kept.query.key.position += (uint32_t)step;
    ask_write(&context->pinned_ask, e, &kept);
    work->pinned.sampling[e] = draft->sampling;
    work->pinned.next[e] = next;
    work->gumbel |= kept.query.gumbel;
    work->tops |= kept.query.top > 0;
}

void draft_rewind(struct backend_context *context)
{
    context->draft.first_row = context->draft.first = 0;
}

uint64_t cuda_draft_begin(struct backend_context *context, const struct draft_terms *terms)
{
    struct draft_work *work = &context->draft;
    int steps = longest_draft(terms), rows = terms->first_rows, entries = 0;
    uint64_t what = DIGEST_EMPTY;

    work->terms = *terms;
    work->gumbel = work->tops = 0;
    draft_rewind(context);
    context->pinned_ask.token_first[0] = context->pinned_ask.best_first[0] = 0;
    for (int step = 0; step < steps; step++) {
        int row = 0, count = backend_drafts_at(terms->drafts, terms->count, step);

        for (int d = 0; d < terms->count; d++)
            if (terms->drafts[d].wanted > step)
                write_entry(context, entries++, d, step, row++, terms->drafts[d].wanted > step + 1 ? rows++ : -1);
        what = digest_bytes(&count, sizeof count, what);
    }
    work->entries = entries;
    device_copy_in(context->device, context->ask.key, context->pinned_ask.key,
                   ask_between(context->pinned_ask.key, context->pinned_ask.token + context->pinned_ask.token_first[entries]));
    device_copy_in(context->device, work->on_device.sampling, work->pinned.sampling,
                   ask_between(work->pinned.sampling, work->pinned.next + entries));
    what = digest_bytes((const int[]){terms->first_rows, work->gumbel, work->tops, terms->support}, 4 * sizeof(int), what);
    return what | UINT64_C(1) << 32; /* other than what a step alone has, the number of rows asked */
}

void cuda_draft_step(struct backend_context *context, int step)
{
    struct draft_work *work = &context->draft;
    const struct ask_arrays *ask = &context->ask;
    int entries = backend_drafts_at(work->terms.drafts, work->terms.count, step), e = work->first;
    const struct choose_launch launch = {.entries = entries,
                                         .step = step,
                                         .support = work->terms.support,
                                         .vocab = context->logits_columns,
                                         .sampling = work->on_device.sampling + e,
                                         .key = ask->key + e,
                                         .stats = ask->stats + e,
                                         .winner = ask->winner + e,
                                         .best_first = ask->best_first + e,
                                         .best = ask->best,
                                         .token = work->on_device.token + e,
                                         .count = work->on_device.count + e,
                                         .id = work->on_device.id,
                                         .weight = work->on_device.weight,
                                         .table = work->terms.table,
                                         .dtype = work->terms.dtype,
                                         .hidden = work->terms.hidden,
                                         .next = work->on_device.next + e,
                                         .x = work->terms.x};

    ask_start(context, e, &(struct ask_terms){.count = entries, .gumbel = work->gumbel, .tops = work->tops});
    choose_start(&launch, device_stream(context->device));
    device_launched(context->device, "the draw of drafted tokens");
    work->first_row += step == 0 ? work->terms.first_rows : entries;
    work->first += entries;
}

void cuda_draft_end(struct backend_context *context)
{
    struct draft_work *work = &context->draft;
    size_t bests = (size_t)context->pinned_ask.best_first[work->entries];

    work->first_row = 0;
    device_copy_out(context->device, work->pinned.token, work->on_device.token, ask_between(work->pinned.token, work->pinned.count + work->entries));
    device_copy_out(context->device, work->pinned.id, work->on_device.id, bests * sizeof *work->pinned.id);
    device_copy_out(context->device, work->pinned.weight, work->on_device.weight, bests * sizeof *work->pinned.weight);
}

static void take_entry(const struct draft_work *work, int e, int first, struct kept_choice *choice)
{
    choice->token = work->pinned.token[e];
    choice->count = work->pinned.count[e];
    memcpy(choice->id, work->pinned.id + first, (size_t)choice->count * sizeof *choice->id);
    memcpy(choice->weight, work->pinned.weight + first, (size_t)choice->count * sizeof *choice->weight);
}

void draft_answer(struct backend_context *context)
{
    const struct draft_work *work = &context->draft;

    for (int step = 0, e = 0; e < work->entries; step++)
        for (int d = 0; d < work->terms.count; d++) {
            const struct kept_draft *draft = &work->terms.drafts[d];

            if (draft->wanted > step) {
                take_entry(work, e, context->pinned_ask.best_first[e], &draft->choice[step]);
                e++;
            }
        }
}
