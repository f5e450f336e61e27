/* Copies of what followed the last tokens of a text before (prompt lookup, as draft_lookup.c), beside a draft model, in three ways.
 *
 * A cascade: what the draft model drafts is itself drafted, by copies, and the model reads them all in one step (Chen et al. 2024, Cascade
 * Speculative Drafting, its vertical cascade). A token is drawn from each of its rows as it is without, with the same coins, as long as the copies in
 * front of that row are what was drawn: so the proposal is the same, token for token and q for q, and only the number of steps is another. How many
 * copies are tried, and whether any are, follows how many were right and what steps took, which no draft depends on. It is for rules that compare
 * tokens: elsewhere the time of a proposal would tell of coins that are still to decide, and draft lengths follow that time.
 *
 * In place of it: where enough of the last tokens have occurred before, a proposal is copies, each with a point mass for its q, and the model takes
 * no step. The committed text alone decides it, so which kind drafts tells nothing of a draft.
 *
 * Behind it: the first drafts, which are the likeliest to stand, are the model's, and the later ones copies (the horizontal cascade of that paper).
 * What is copied, and whether anything is, follows from the text in front of each copy, as any q does. */
#include "drafter/draft_model.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/sample/rule.h"
#include "drafter/ngram_index.h"
#include <stdlib.h>

enum { LEAST_SAME = 2, MOST_SAME = 6 }; /* tokens that are looked for, or more where more are asked for */
enum { FIRST_COPIES = 2, MOST_COPIES = 8 };
enum { PROBE_EVERY = 32 /* proposals, where copies have not paid */ };
#define FADE 0.125 /* of a mean of times */

struct copied {
    struct ngram_index index;
    uint32_t opened; /* the mirror's, whose tokens are in it */
    int most;        /* copies to be tried in the next step */
    int base;        /* drafts when the step began */
    int copies;      /* tokens behind them that are copies, in this step */
    int right;       /* of these, how many the model drew as well */
    int is_over;     /* one was wrong, or the draft has stopped: the rows behind it are of another text */
};

/* The index knows all but the newest of the committed tokens. */
static void catch_up(struct copied *copied, const struct mirror *mirror)
{
    if (copied->opened != mirror->opened) {
        ngram_index_clear(&copied->index);
        copied->opened = mirror->opened;
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

    copied->base = mirror->drafted;
    copied->copies = copied->right = copied->is_over = 0;
    room = room < left ? room : left; /* behind the last token that is wanted nothing is */
    if (room <= 0 || rule_of(&mirror->sampling)->depends_on_drafts)
        return;
    catch_up(copied, mirror);
    room = room < copied->most ? room : copied->most;
    place = ngram_index_find(&copied->index, &text);
    if (place == 0)
        return;
    for (; copied->copies < room; copied->copies++)
        tail[mirror->drafted + copied->copies] = ngram_text_at(&text, place + copied->copies);
}

/* The rows of a mirror come one after the other, each behind one copy more. */
static void take(struct model_draft *state, const struct draft_job *job, const struct row_query *query)
{
    struct mirror *mirror = job->mirror;
    struct copied *copied = &state->copies->slot[mirror->slot];
    int number = job->depth - copied->base;
    int32_t copy = number < copied->copies ? mirror->tokens[mirror->length + job->depth] : -1;

    if (copied->is_over)
        return;
    draft_model_take_token(state, job, query);
    copied->is_over = mirror->is_stopped || mirror->tokens[mirror->length + job->depth] != copy;
    copied->right += !copied->is_over;
}

/* Do copies save time, or is it time to see whether they do? */
static int tries(struct model_copies *all)
{
    return all->always || all->ns[1] <= all->ns[0] || all->proposals % PROBE_EVERY == 0;
}

/* A step that began then has drafted so many tokens. */
static void measure(struct model_copies *all, int has_copies, int64_t began, int64_t tokens)
{
    double *ns = &all->ns[has_copies];

    if (tokens > 0)
        *ns += (*ns > 0 ? FADE : 1) * ((double)(clock_ns() - began) / (double)tokens - *ns);
}

static void end_step(struct model_copies *all, struct mirror *mirror)
{
    struct copied *copied = &all->slot[mirror->slot];

    mirror->cached = mirror->length + mirror->drafted - 1; /* in the newest draft's place there is a wrong copy, or nothing yet */
    if (copied->copies > 0)
        copied->most = copied->right < copied->copies   ? (copied->right > 1 ? copied->right : 1)
                       : 2 * copied->most < MOST_COPIES ? 2 * copied->most
                                                        : MOST_COPIES;
    all->steps++;
    all->drafted += mirror->drafted - copied->base;
    all->copies += copied->copies;
    all->right += copied->right;
}

enum status draft_model_propose_cascade(struct model_draft *state, struct mirror *const *mirrors, int count, struct draft_output *const *outputs)
{
    int most = state->jobs < state->max_rows ? state->jobs : state->max_rows, room = most / count - 2; /* it may lack two committed tokens */
    struct model_copies *all = state->copies;
    struct draft_job jobs[state->jobs];

    room = tries(all) ? room : 0;
    all->proposals++;

    for (int asking = -1; asking != 0;) {
        struct mirror *asked[count];
        int64_t began = clock_ns(), drafted = all->drafted;
        int mirrors_asked = 0;

        asking = 0;
        for (int i = 0; i < count; i++) {
            struct mirror *mirror = mirrors[i];
            struct copied *copied = &all->slot[mirror->slot];

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
            end_step(all, asked[i]);
        measure(all, asking > mirrors_asked, began, all->drafted - drafted);
    }
    return STATUS_OK;
}

/* The place behind the newest earlier occurrence of the longest end of a text; 0 where fewer of its last tokens than `least` have occurred. */
static int found(const struct ngram_index *index, const struct ngram_text *text, int least)
{
    int places[NGRAM_LONGEST], count = ngram_index_list(index, text, places);

    return count > 0 && index->min + count - 1 >= least ? places[0] : 0;
}

int draft_model_copy_first(struct model_draft *state, struct mirror *mirror, struct draft_output *output)
{
    struct model_copies *all = state->copies;
    const struct ngram_text text = {.tokens = mirror->tokens, .length = mirror->length, .tail = mirror->tokens + mirror->length};
    int place;

    if (all == NULL || all->are.first == 0 || mirror->drafted > 0)
        return 0;
    catch_up(&all->slot[mirror->slot], mirror);
    place = found(&all->slot[mirror->slot].index, &text, all->are.first);
    if (place == 0)
        return 0;
    for (int k = 0; k < mirror->wanted; k++) {
        output->token[k] = mirror->tokens[mirror->length + k] = ngram_text_at(&text, place + k);
        output->q[k] = (struct support){0};
        draft_model_q(state, mirror, mirror->output)[k].count = 0; /* no guess is made of it */
        if (state->outputs > 1)
            draft_model_listed(state, mirror, mirror->output)[k].count = 0;
    }
    output->count = mirror->drafted = mirror->wanted;
    mirror->cached = mirror->cached < mirror->length ? mirror->cached : mirror->length - 1;
    all->whole++;
    return 1;
}

int draft_model_is_to_copy(struct model_draft *state, const struct mirror *mirror, const struct branch *branch)
{
    struct model_copies *all = state->copies;
    const struct ngram_text text = {
        .tokens = mirror->tokens, .length = mirror->length + branch->after, .tail = mirror->tokens + branch->place, .more = 1};

    if (all == NULL || all->are.first == 0)
        return 0;
    catch_up(&all->slot[mirror->slot], mirror);
    return found(&all->slot[mirror->slot].index, &text, all->are.first) != 0;
}

/* A draft in the making, or that of a branch. */
struct unfinished {
    struct ngram_text text; /* with its first tokens, the model's */
    int32_t *to;            /* [wanted] its tokens */
    int drafted, wanted, output;
};

static struct unfinished unfinished_of(const struct draft_job *job, int first)
{
    struct mirror *mirror = job->mirror;
    int32_t *end = mirror->tokens + mirror->length;

    if (job->branch == JOB_DRAFT)
        return (struct unfinished){.text = {.tokens = mirror->tokens, .length = mirror->length, .tail = end, .more = first},
                                   .to = end,
                                   .drafted = mirror->drafted,
                                   .wanted = mirror->wanted,
                                   .output = mirror->output};
    const struct branch *branch = &mirror->ahead.branch[job->branch];
    int32_t *guess = mirror->tokens + branch->place;

    return (struct unfinished){.text = {.tokens = mirror->tokens, .length = mirror->length + branch->after, .tail = guess, .more = 1 + first},
                               .to = guess + 1,
                               .drafted = branch->count,
                               .wanted = branch->wanted,
                               .output = branch->output};
}

/* It has `count` tokens now, and no more come where it is stopped. */
static void go_on(const struct draft_job *job, int count, int stopped)
{
    struct mirror *mirror = job->mirror;
    struct branch *branch = &mirror->ahead.branch[job->branch < 0 ? 0 : job->branch];

    if (job->branch == JOB_DRAFT) {
        mirror->drafted = count;
        mirror->is_stopped = stopped;
        return;
    }
    branch->copies += count - branch->count;
    branch->count = count;
    branch->wanted = stopped ? count : branch->wanted;
    branch->is_stopped = stopped;
}

int draft_model_copy_rest(struct model_draft *state, const struct draft_job *job)
{
    struct model_copies *all = state->copies;
    struct mirror *mirror = job->mirror;
    struct unfinished rest;
    int place, stopped;

    if (all->are.after == 0 || job->branch < JOB_DRAFT)
        return 0;
    rest = unfinished_of(job, all->are.after);
    if (rest.drafted < all->are.after)
        return 0;
    catch_up(&all->slot[mirror->slot], mirror);
    place = found(&all->slot[mirror->slot].index, &rest.text, LEAST_SAME);
    stopped = place == 0;
    for (int k = rest.drafted; k < rest.wanted; k++) {
        draft_model_q(state, mirror, rest.output)[k].count = 0;
        draft_model_listed(state, mirror, rest.output)[k].count = 0; /* no guess is made of it */
        if (stopped)
            break;
        job->output->token[k] = rest.to[k] = ngram_text_at(&rest.text, place + k - all->are.after);
        job->output->q[k] = (struct support){0};
    }
    job->output->count = stopped ? rest.drafted : rest.wanted;
    all->rests += !stopped;
    go_on(job, job->output->count, stopped);
    return 1;
}

enum status draft_model_copies_open(struct model_draft *state, const struct draft_copies *copies, int slots, int context)
{
    int most = copies->first > MOST_SAME ? copies->first : MOST_SAME;
    size_t bytes = arena_round((size_t)slots * sizeof(struct copied)) + (size_t)slots * ngram_index_bytes(LEAST_SAME, most, context);
    struct model_copies *all = calloc(1, sizeof *all);
    enum status status;

    if (all == NULL) {
        log_error("no memory for copies");
        return STATUS_INTERNAL;
    }
    TRY_TO(arena_open(&all->arena, bytes, "what is copied"), release);
    all->slot = arena_take(&all->arena, (size_t)slots * sizeof *all->slot);
    for (int i = 0; i < slots; i++)
        ngram_index_init(&all->slot[i].index, &all->arena, LEAST_SAME, most, context);
    all->are = *copies;
    state->copies = all;
    return STATUS_OK;

release:
    free(all);
    return status;
}

void draft_model_copies_close(struct model_draft *state)
{
    struct model_copies *all = state->copies;

    if (all == NULL)
        return;
    if (all->are.cascade)
        log_debug("cascade: %lld tokens drafted in %lld steps; %lld of %lld copies were what the draft model drew", (long long)all->drafted,
                  (long long)all->steps, (long long)all->right, (long long)all->copies);
    if (all->are.first > 0)
        log_debug("%lld proposals were copies", (long long)all->whole);
    if (all->are.after > 0)
        log_debug("%lld drafts ended with copies", (long long)all->rests);
    arena_close(&all->arena);
    free(all);
    state->copies = NULL;
}
