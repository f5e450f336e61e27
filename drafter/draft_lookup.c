/* Prompt lookup (Saxena 2023; Yang et al. 2023, LLMA): finds the newest earlier occurrence of the longest n-gram at the end of the committed tokens,
 * and proposes the tokens that followed it there. Where the copy reaches the end of the text it goes on copying from itself, so a loop is continued.
 * Without an earlier occurrence the proposal is empty. q is the point mass on each copied token. The proposal depends on the committed tokens alone,
 * not on the request's sampling, but for its shape; with job=1 on those of the job's other sequences, too, where a longer n-gram occurred there.
 * With a shape other than a chain, and a rule that compares tokens, the proposal is the tree of what followed n-grams of each length. */
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/sample/rule.h"
#include "drafter/draft.h"
#include "drafter/lookup_store.h"
#include <stdlib.h>

struct lookup_draft {
    struct arena arena;
    struct ngram_index *index; /* [slots] */
    int of_job;                /* it copies from what is in the store, too, .. */
    uint32_t pass;             /* .. all of which is of this pass of the job */
    struct tree_shape shape;
    struct lookup_store store;
};

/* What earlier passes said of the same prompts is forgotten: a bench would measure copies of its own repetitions. */
static void begin_pass(struct lookup_draft *state, uint32_t pass)
{
    for (int slot = 0; slot < state->store.slots; slot++)
        ngram_index_clear(&state->index[slot]);
    lookup_store_clear(&state->store);
    state->pass = pass;
}

/* Makes the index know all but the newest token. A mirror's `cached` says, as of a KV cache, which of its tokens are still those that were there. */
static struct ngram_index *catch_up(struct lookup_draft *state, const struct mirror *mirror)
{
    struct ngram_index *index = &state->index[mirror->slot];

    if (state->of_job && mirror->pass != state->pass)
        begin_pass(state, mirror->pass);
    if (mirror->cached < index->count) { /* tokens were replaced: the index has no truncation */
        if (state->of_job)
            lookup_store_end(&state->store, mirror->slot, index->count);
        ngram_index_clear(index);
    }
    if (state->of_job)
        lookup_store_grow(&state->store, mirror->slot, mirror->tokens, index->count, mirror->length - 1);
    ngram_index_grow(index, mirror->tokens, mirror->length - 1);
    return index;
}

/* Where to copy from: the places in the text behind each n-gram at its end, and what followed a longer one in another text, up to `wanted` tokens. */
struct sources {
    const struct ngram_index *index;
    int places[NGRAM_LONGEST], found; /* the longest first */
    const int32_t *from;              /* [others] */
    int others;
};

static void find_sources(struct lookup_draft *state, const struct mirror *mirror, const struct ngram_text *text, int wanted, struct sources *sources)
{
    sources->index = catch_up(state, mirror);
    sources->found = ngram_index_list(sources->index, text, sources->places);
    sources->others = 0;
    if (state->of_job)
        sources->others = lookup_store_find(&state->store, state->index, mirror->slot, text,
                                            sources->found > 0 ? sources->index->min + sources->found - 1 : 0, wanted, &sources->from);
}

/* Copies `wanted` tokens of what followed the longest n-gram to where the text goes on, fewer where another text that it comes from ends. Returns how
 * many. */
static int copy_on(struct lookup_draft *state, const struct mirror *mirror, const struct ngram_text *text, int wanted, int32_t *to,
                   struct draft_output *output)
{
    struct sources sources;

    find_sources(state, mirror, text, wanted, &sources);
    output->count = sources.others > 0 ? sources.others : sources.found > 0 ? wanted : 0;
    for (int k = 0; k < output->count; k++) {
        output->token[k] = to[k] = sources.others > 0 ? sources.from[k] : ngram_text_at(text, sources.places[0] + k);
        output->q[k] = (struct support){0};
    }
    return output->count;
}

/* What followed one of the n-grams, as far as it is in the tree. */
struct copy {
    int place;            /* of its first token in the text, or .. */
    const int32_t *from;  /* .. [most] in another one; else NULL */
    int most, count;      /* tokens that there are, and that are in the tree */
    int at;               /* the last of them, by its index there */
    double stands, share; /* how probable a copied token is, and all of them with the next one */
    int32_t token[MESSAGE_MAX_DRAFT];
};

/* Tokens that stand by the length of the n-gram that they follow: 0.50 and 0.80 were counted with n-grams of 1 and of 2 tokens and more
 * (launch/bench/results/drafts.md); which numbers they are changes little. */
static double stands_behind(int n)
{
    return n == 1 ? 0.5 : n == 2 ? 0.7 : 0.8;
}

/* The copies that there are, the best first, for `wanted` tokens each. Returns how many. */
static int list_copies(struct lookup_draft *state, const struct mirror *mirror, const struct ngram_text *text, int wanted, struct copy *copies)
{
    struct sources sources;
    int count = 0, longest;

    find_sources(state, mirror, text, wanted, &sources);
    longest = sources.index->min + sources.found - 1;
    if (sources.others > 0)
        copies[count++] = (struct copy){.from = sources.from, .most = sources.others, .at = -1, .stands = stands_behind(longest + 1)};
    for (int i = 0; i < sources.found; i++)
        copies[count++] = (struct copy){.place = sources.places[i], .most = wanted, .at = -1, .stands = stands_behind(longest - i)};
    for (int i = 0; i < count; i++)
        copies[i].share = copies[i].stands;
    return count;
}

static struct copy *next_copy(struct copy *copies, int count)
{
    struct copy *best = NULL;

    for (int i = 0; i < count; i++)
        if (copies[i].count < copies[i].most && (best == NULL || copies[i].share > best->share))
            best = &copies[i];
    return best;
}

/* Adds a token of a copy at a time, the most probable first. Copies that begin alike share what is alike. */
static void grow_tree(struct lookup_draft *state, struct mirror *mirror, struct draft_output *output)
{
    const struct ngram_text text = {.tokens = mirror->tokens, .length = mirror->length};
    int depth = tree_shape_depth(&state->shape, mirror->wanted);
    struct copy copies[NGRAM_LONGEST + 1], *copy;
    int count = list_copies(state, mirror, &text, depth, copies);

    output->is_tree = 1;
    output->count = 0;
    while (output->count < mirror->wanted && (copy = next_copy(copies, count)) != NULL) {
        int place = copy->place + copy->count;
        int32_t token = copy->from != NULL ? copy->from[copy->count] : place < text.length ? text.tokens[place] : copy->token[place - text.length];

        copy->token[copy->count++] = token;
        copy->at = draft_output_grow(output, copy->at, token);
        copy->share *= copy->stands;
    }
    mirror->drafted = 0; /* nothing is drafted ahead of a tree */
    mirror->cached = mirror->length - 1;
}

static int grows(const struct lookup_draft *state, const struct mirror *mirror)
{
    return tree_shape_of(&state->shape, mirror->shape).kind != TREE_CHAIN && mirror->wanted > 1 &&
           rule_takes_shape(rule_of(&mirror->sampling), TREE_OWN);
}

static enum status lookup_propose(void *opaque, struct mirror *const *mirrors, int count, struct draft_output *const *outputs)
{
    struct lookup_draft *state = opaque;

    for (int i = 0; i < count; i++) {
        struct mirror *mirror = mirrors[i];
        int32_t *end = mirror->tokens + mirror->length;
        const struct ngram_text text = {.tokens = mirror->tokens, .length = mirror->length, .tail = end};

        if (grows(state, mirror)) {
            grow_tree(state, mirror, outputs[i]);
            continue;
        }
        mirror->drafted = copy_on(state, mirror, &text, mirror->wanted, end, outputs[i]);
        mirror->cached = mirror->length + mirror->drafted;
    }
    return STATUS_OK;
}

/* All tokens of a branch at once, the same as if its text were committed; or none, where nothing of its end occurred before. */
static void draft_branch(struct lookup_draft *state, const struct mirror *mirror, struct branch *branch, struct draft_output *output)
{
    int32_t *guess = mirror->tokens + branch->place;
    const struct ngram_text text = {.tokens = mirror->tokens, .length = mirror->length + branch->after, .tail = guess, .more = 1};

    branch->count = branch->wanted = copy_on(state, mirror, &text, branch->wanted, guess + 1, output);
}

static enum status lookup_step(void *opaque, const struct draft_job *jobs, int count)
{
    for (int i = 0; i < count; i++)
        if (jobs[i].branch >= 0)
            draft_branch(opaque, jobs[i].mirror, &jobs[i].mirror->ahead.branch[jobs[i].branch], jobs[i].output);
    return STATUS_OK;
}

/* What followed the n-grams at the end of that text, the longest first: another token than the draft, which followed one of them. */
static void lookup_guess(void *opaque, const struct mirror *mirror, int after, struct guesses *guesses)
{
    const struct ngram_text text = {.tokens = mirror->tokens, .length = mirror->length + after};
    int places[NGRAM_LONGEST], count = ngram_index_list(catch_up(opaque, mirror), &text, places);

    guesses->count = 0;
    for (int i = 0; i < count && guesses->count < MIRROR_GUESSES; i++) {
        int32_t token = ngram_text_at(&text, places[i]);
        int is_new = after == mirror->drafted || token != mirror->tokens[mirror->length + after];

        for (int g = 0; g < guesses->count; g++)
            is_new &= guesses->token[g] != token;
        if (is_new)
            guesses->token[guesses->count++] = token;
    }
}

/* A text's tokens are all that there is of it: nothing lies in a cache. */
static void lookup_copy(void *opaque, struct cache_place from, struct cache_place to, int count)
{
    (void)opaque, (void)from, (void)to, (void)count;
}

static void lookup_shape(void *opaque, const struct tree_shape *shape)
{
    ((struct lookup_draft *)opaque)->shape = *shape;
}

static void lookup_close(void *opaque)
{
    struct lookup_draft *state = opaque;

    arena_close(&state->arena);
    free(state);
}

static enum status lookup_open(struct draft *draft, const struct draft_parts *terms)
{
    return draft_open_lookup(draft, terms->way, terms->slots, terms->context);
}

_Static_assert((int)NGRAM_LONGEST >= (int)OPTIONS_DRAFT_LONGEST, "an index holds what may be asked for");

const struct draft_kind draft_lookup_kind = {.name = "lookup",
                                             .open = lookup_open,
                                             .propose = lookup_propose,
                                             .step = lookup_step,
                                             .guess = lookup_guess,
                                             .copy = lookup_copy,
                                             .shape = lookup_shape,
                                             .close = lookup_close};

enum status draft_open_lookup(struct draft *draft, const struct options_draft *way, int slots, int context)
{
    struct lookup_draft *state = calloc(1, sizeof *state);
    size_t indices = arena_round((size_t)slots * sizeof *state->index), bytes = ngram_index_bytes(way->min, way->max, context);
    enum status status;

    if (state == NULL) {
        log_error("no memory for a draft");
        return STATUS_INTERNAL;
    }
    state->of_job = way->job;
    bytes = (size_t)slots * bytes + (way->job ? lookup_store_bytes(way->min, way->max, slots, context) : 0);
    TRY_TO(arena_open(&state->arena, indices + bytes, "the n-grams"), release);
    state->index = arena_take(&state->arena, (size_t)slots * sizeof *state->index);
    for (int i = 0; i < slots; i++)
        ngram_index_init(&state->index[i], &state->arena, way->min, way->max, context);
    if (way->job)
        lookup_store_init(&state->store, &state->arena, way->min, way->max, slots, context);
    *draft = (struct draft){.kind = &draft_lookup_kind, .state = state};
    return STATUS_OK;

release:
    free(state);
    return status;
}
