/* Prompt lookup (Saxena 2023; Yang et al. 2023, LLMA): finds the newest earlier occurrence of the longest n-gram at the end of the committed tokens,
 * and proposes the tokens that followed it there. Where the copy reaches the end of the text it goes on copying from itself, so a loop is continued.
 * Without an earlier occurrence the proposal is empty. q is the point mass on each copied token. The proposal depends on the committed tokens alone,
 * not on the request's sampling. */
#include "common/base/log.h"
#include "common/base/try.h"
#include "drafter/draft.h"
#include "drafter/ngram_index.h"
#include <stdlib.h>

struct lookup_draft {
    struct arena arena;
    struct ngram_index *index; /* [slots] */
};

/* Makes the index know all but the newest token. A mirror's `cached` is the number of its tokens in the index, as it is of a KV cache. */
static void catch_up(struct ngram_index *index, struct mirror *mirror)
{
    if (mirror->cached < index->count)
        ngram_index_clear(index); /* tokens were replaced: the index has no truncation */
    ngram_index_grow(index, mirror->tokens, mirror->length - 1);
    mirror->cached = index->count;
}

static enum status lookup_propose(void *opaque, struct mirror *const *mirrors, int count, struct draft_output *const *outputs)
{
    const struct lookup_draft *state = opaque;

    for (int i = 0; i < count; i++) {
        struct mirror *mirror = mirrors[i];
        struct ngram_index *index = &state->index[mirror->slot];

        catch_up(index, mirror);
        int from = ngram_index_find(index, mirror->tokens, mirror->length), wanted = from > 0 ? mirror->wanted : 0;

        for (int k = 0; k < wanted; k++) {
            outputs[i]->token[k] = mirror->tokens[mirror->length + k] = mirror->tokens[from + k];
            outputs[i]->q[k] = (struct support){0};
        }
        outputs[i]->count = mirror->drafted = wanted;
    }
    return STATUS_OK;
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

const struct draft_kind draft_lookup_kind = {.name = "lookup", .open = lookup_open, .propose = lookup_propose, .close = lookup_close};

enum status draft_open_lookup(struct draft *draft, const struct options_draft *way, int slots, int context)
{
    struct lookup_draft *state = calloc(1, sizeof *state);
    size_t indices = arena_round((size_t)slots * sizeof *state->index), bytes = ngram_index_bytes(way->min, way->max, context);
    enum status status;

    if (state == NULL) {
        log_error("no memory for a draft");
        return STATUS_INTERNAL;
    }
    TRY_TO(arena_open(&state->arena, indices + (size_t)slots * bytes, "the n-grams"), release);
    state->index = arena_take(&state->arena, (size_t)slots * sizeof *state->index);
    for (int i = 0; i < slots; i++)
        ngram_index_init(&state->index[i], &state->arena, way->min, way->max, context);
    *draft = (struct draft){.kind = &draft_lookup_kind, .state = state};
    return STATUS_OK;

release:
    free(state);
    return status;
}
