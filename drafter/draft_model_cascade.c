/* A cascade: what the draft model drafts is itself drafted, by copies of what followed the last tokens before (prompt lookup, as draft_lookup.c), and
 * the model reads them all in one step (Chen et al. 2024, Cascade Speculative Drafting, its vertical cascade). A token is drawn from each of its rows
 * as it is without, with the same coins, as long as the copies in front of that row are what was drawn: so the proposal is the same, token for token
 * and q for q, and only the number of steps is another. How many copies are tried, and whether any are, follows how many were right and what steps
 * took, which no draft depends on. */
#include "drafter/draft_model.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "drafter/ngram_index.h"
#include <stdlib.h>

enum { LEAST_SAME = 2, MOST_SAME = 6 }; /* tokens that must have occurred before */
enum { FIRST_COPIES = 2, MOST_COPIES = 8 };
enum { PROBE_EVERY = 32 /* proposals, where copies have not paid */ };
#define FADE 0.125 /* of a mean of times */

struct copied {
    struct ngram_index index;
    uint32_t request; /* whose tokens are in it */
    int most;         /* copies to be tried in the next step */
    int base;         /* drafts when the step began */
    int copies;       /* tokens behind them that are copies, in this step */
    int right;        /* of these, how many the model drew as well */
    int is_over;      /* one was wrong, or the draft has stopped: the rows behind it are of another text */
};

/* The index knows all but the newest of the committed tokens. */
static void catch_up(struct copied *copied, const struct mirror *mirror)
{
    if (copied->request != mirror->request || mirror->cached < copied->index.count) {
        ngram_index_clear(&copied->index);
        copied->request = mirror->request;
        copied->most = FIRST_COPIES;
    }
    ngram_index_grow(&copied->index, mirror->tokens, mirror->length - 1);
}

/* Writes at most `room` copies behind the draft in progress. */
static void copy(struct copied *copied, const struct mirror *mirror, int room)
{
    int32_t *tail = mirror->tokens + mirror->length;
    const struct ngram_text text = {.tokens = mirror->tokens, .length = mirror->length, .tail = tail, .more = mirror->drafted};
    int left = mirror->wanted - mirror->drafted - 1, place;

    catch_up(copied, mirror);
    copied->base = mirror->drafted;
    copied->copies = copied->right = copied->is_over = 0;
    room = room < copied->most ? room : copied->most;
    room = room < left ? room : left; /* behind the last token that is wanted nothing is */
    if (room <= 0 || (place = ngram_index_find(&copied->index, &text)) == 0)
        return;
    for (; copied->copies < room; copied->copies++)
        tail[mirror->drafted + copied->copies] = ngram_text_at(&text, place + copied->copies);
}

/* The rows of a mirror come one after the other, each behind one copy more. */
static void take(struct model_draft *state, const struct draft_job *job, const struct row_query *query)
{
    struct mirror *mirror = job->mirror;
    struct copied *copied = &state->cascade->slot[mirror->slot];
    int number = job->depth - copied->base;
    int32_t copy = number < copied->copies ? mirror->tokens[mirror->length + job->depth] : -1;

    if (copied->is_over)
        return;
    draft_model_take_token(state, job, query);
    copied->is_over = mirror->is_stopped || mirror->tokens[mirror->length + job->depth] != copy;
    copied->right += !copied->is_over;
}

/* Do copies save time, or is it time to see whether they do? */
static int tries(struct model_cascade *cascade)
{
    return cascade->always || cascade->ns[1] <= cascade->ns[0] || cascade->proposals % PROBE_EVERY == 0;
}

/* A step that began then has drafted so many tokens. */
static void measure(struct model_cascade *cascade, int has_copies, int64_t began, int64_t tokens)
{
    double *ns = &cascade->ns[has_copies];

    if (tokens > 0)
        *ns += (*ns > 0 ? FADE : 1) * ((double)(clock_ns() - began) / (double)tokens - *ns);
}

static void end_step(struct model_cascade *cascade, struct mirror *mirror)
{
    struct copied *copied = &cascade->slot[mirror->slot];
    int known = mirror->length + copied->base + copied->right, newest = mirror->length + mirror->drafted - 1;

    mirror->cached = known < newest ? known : newest;
    if (copied->copies > 0)
        copied->most = copied->right < copied->copies   ? (copied->right > 1 ? copied->right : 1)
                       : 2 * copied->most < MOST_COPIES ? 2 * copied->most
                                                        : MOST_COPIES;
    cascade->steps++;
    cascade->drafted += mirror->drafted - copied->base;
    cascade->copies += copied->copies;
    cascade->right += copied->right;
}

enum status draft_model_propose_cascade(struct model_draft *state, struct mirror *const *mirrors, int count, struct draft_output *const *outputs)
{
    int most = state->jobs < state->max_rows ? state->jobs : state->max_rows, room = most / count - 2; /* it may lack two committed tokens */
    struct model_cascade *cascade = state->cascade;
    struct draft_job jobs[state->jobs];

    room = tries(cascade) ? room : 0;
    cascade->proposals++;

    for (int asking = -1; asking != 0;) {
        struct mirror *asked[count];
        int64_t began = clock_ns(), drafted = cascade->drafted;
        int mirrors_asked = 0;

        asking = 0;
        for (int i = 0; i < count; i++) {
            struct mirror *mirror = mirrors[i];
            struct copied *copied = &cascade->slot[mirror->slot];

            if (mirror->drafted == mirror->wanted || mirror->is_stopped)
                continue;
            copy(copied, mirror, room);
            asked[mirrors_asked++] = mirror;
            for (int copies = 0; copies <= copied->copies; copies++)
                jobs[asking++] = (struct draft_job){.mirror = mirror, .branch = JOB_DRAFT, .output = outputs[i], .depth = mirror->drafted + copies};
        }
        if (asking > 0)
            TRY(draft_model_step(state, jobs, asking, take));
        for (int i = 0; i < mirrors_asked; i++)
            end_step(cascade, asked[i]);
        measure(cascade, asking > mirrors_asked, began, cascade->drafted - drafted);
    }
    return STATUS_OK;
}

enum status draft_model_cascade_open(struct model_draft *state, int slots, int context)
{
    size_t bytes = arena_round((size_t)slots * sizeof(struct copied)) + (size_t)slots * ngram_index_bytes(LEAST_SAME, MOST_SAME, context);
    struct model_cascade *cascade = calloc(1, sizeof *cascade);
    enum status status;

    if (cascade == NULL) {
        log_error("no memory for a cascade");
        return STATUS_INTERNAL;
    }
    TRY_TO(arena_open(&cascade->arena, bytes, "the copies of a cascade"), release);
    cascade->slot = arena_take(&cascade->arena, (size_t)slots * sizeof *cascade->slot);
    for (int i = 0; i < slots; i++)
        ngram_index_init(&cascade->slot[i].index, &cascade->arena, LEAST_SAME, MOST_SAME, context);
    state->cascade = cascade;
    return STATUS_OK;

release:
    free(cascade);
    return status;
}

void draft_model_cascade_close(struct model_draft *state)
{
    struct model_cascade *cascade = state->cascade;

    if (cascade == NULL)
        return;
    log_debug("cascade: %lld tokens drafted in %lld steps; %lld of %lld copies were what the draft model drew", (long long)cascade->drafted,
              (long long)cascade->steps, (long long)cascade->right, (long long)cascade->copies);
    arena_close(&cascade->arena);
    free(cascade);
    state->cascade = NULL;
}
