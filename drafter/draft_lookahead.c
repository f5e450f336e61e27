/* Lookahead decoding (Fu et al. 2024): the target drafts for itself. Beside n-grams that may follow, the tree of a proposal has a window of guesses:
 * a chain of `window` tokens for the next places, and behind the i-th of them what the target has said there in the rounds before, n - 1 tokens in
 * all. The target's own token behind each of these columns makes a new n-gram with it, for the pool, and is the column's last guess in the next round
 * (Jacobi iteration, Santilli et al. 2023). N-grams of the text are in the pool, too. q is the point mass on each token. Rules that
 * compare tokens may be told any tree; for others the proposal is a chain, the newest n-gram of the pool, which then has those of the text alone.
 *
 *     newest token --- g1 --- g2 --- g3      the window's chain (level 0)
 *        |             |      |      |
 *      n-gram          h1     h2     h3      level 1, and so on: n - 1 levels */
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/sample/rule.h"
#include "drafter/draft.h"
#include "drafter/ngram_pool.h"
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 31, LEVELS = 7, PATHS = 8 };

_Static_assert((int)PATHS <= (int)NGRAM_POOL_WAYS, "what may be asked for can be there");

/* The guesses for what follows a sequence, and where its last proposal has them. */
struct window {
    uint32_t opened; /* of the mirror */
    uint32_t draw;   /* for tokens in places of which nothing is known */
    int pooled;      /* the n-grams that end among the first so many committed tokens are in the pool */
    int length;      /* committed tokens that the proposal was made for */
    int columns;     /* of the window that are in it */
    int32_t token[LEVELS][WINDOW];
    int8_t end[WINDOW]; /* the draft that is the column's last */
    struct ngram_pool pool;
};

struct lookahead_draft {
    struct arena arena;
    int levels, columns, paths;
    struct window *window; /* [slots] */
};

/* Some token of the text. */
static int32_t any_token(struct window *window, const struct mirror *mirror)
{
    window->draw = window->draw * UINT32_C(1664525) + UINT32_C(1013904223);
    return mirror->tokens[(window->draw >> 8) % (uint32_t)mirror->length];
}

static void begin(const struct lookahead_draft *state, struct window *window, const struct mirror *mirror)
{
    *window = (struct window){.opened = mirror->opened, .draw = mirror->line, .pool = window->pool};
    ngram_pool_clear(&window->pool);
    for (int level = 0; level < state->levels; level++)
        for (int i = 0; i < state->columns; i++)
            window->token[level][i] = any_token(window, mirror);
}

static void pool_text(struct window *window, const struct mirror *mirror)
{
    int n = window->pool.n;

    for (int end = window->pooled > n ? window->pooled : n; end <= mirror->length; end++)
        ngram_pool_add(&window->pool, mirror->tokens + end - n);
    window->pooled = mirror->length + 1;
}

/* The n-grams that begin with the newest token, as far as there is room. */
static void add_ngrams(const struct lookahead_draft *state, const struct window *window, const struct mirror *mirror, int paths, int room,
                       struct draft_output *output)
{
    const int32_t *found[PATHS];
    int count = ngram_pool_find(&window->pool, mirror->tokens[mirror->length - 1], paths, found);

    for (int path = 0; path < count; path++)
        for (int level = 0, at = -1; level < state->levels && output->count < room; level++)
            at = draft_output_grow(output, at, found[path][level]);
}

static void add_window(const struct lookahead_draft *state, struct window *window, struct draft_output *output)
{
    for (int i = 0, chain = -1; i < window->columns; i++) {
        int at = chain = draft_output_grow(output, chain, window->token[0][i]);

        for (int level = 1; level < state->levels; level++)
            at = draft_output_grow(output, at, window->token[level][i]);
        window->end[i] = (int8_t)at;
    }
}

static void propose(struct lookahead_draft *state, struct mirror *mirror, struct draft_output *output)
{
    struct window *window = &state->window[mirror->slot];
    int takes_trees = rule_takes_shape(rule_of(&mirror->sampling), TREE_OWN), columns = (mirror->wanted - state->levels) / state->levels;

    if (window->opened != mirror->opened)
        begin(state, window, mirror);
    pool_text(window, mirror);
    window->length = mirror->length;
    window->columns = !takes_trees || columns < 0 ? 0 : columns < state->columns ? columns : state->columns;
    output->is_tree = takes_trees;
    output->count = 0;
    add_ngrams(state, window, mirror, takes_trees ? state->paths : 1, mirror->wanted - window->columns * state->levels, output);
    add_window(state, window, output);
    mirror->drafted = output->count;
}

static enum status lookahead_propose(void *opaque, struct mirror *const *mirrors, int count, struct draft_output *const *outputs)
{
    for (int i = 0; i < count; i++)
        propose(opaque, mirrors[i], outputs[i]);
    return STATUS_OK;
}

/* The next window: each column moves as many places to the front as tokens were committed, less the one that its next level is behind it by, and the
 * target's own tokens are the last level. */
static void move(const struct lookahead_draft *state, struct window *window, const struct mirror *mirror, int count, const int32_t *fresh)
{
    for (int level = 0; level < state->levels; level++)
        for (int i = 0; i < state->columns; i++) {
            int from = i + count - 1, is_last = level + 1 == state->levels;
            int32_t known = from >= state->columns ? -1 : is_last ? fresh[from] : window->token[level + 1][from];

            window->token[level][i] = known >= 0 ? known : any_token(window, mirror);
        }
}

static void lookahead_learn(void *opaque, const struct mirror *mirror, const struct commit *commit)
{
    struct lookahead_draft *state = opaque;
    struct window *window = &state->window[mirror->slot];
    int32_t fresh[WINDOW], ngram[LEVELS + 1];

    if (window->opened != mirror->opened || window->length != (int)commit->old_length || mirror->length != window->length || commit->count == 0)
        return;
    memset(fresh, -1, sizeof fresh);
    for (int i = 0; i < window->columns && window->end[i] + 1 < commit->owns; i++) {
        for (int level = 0; level < state->levels; level++)
            ngram[level] = window->token[level][i];
        ngram[state->levels] = fresh[i] = commit->own[window->end[i] + 1];
        ngram_pool_add(&window->pool, ngram);
    }
    move(state, window, mirror, commit->count, fresh);
    window->length = -1; /* a Commit that comes twice says nothing new */
}

static void lookahead_close(void *opaque)
{
    struct lookahead_draft *state = opaque;

    arena_close(&state->arena);
    free(state);
}

static enum status lookahead_open(struct draft *draft, const struct draft_parts *terms)
{
    const struct options_draft *way = terms->way;
    struct lookahead_draft *state = calloc(1, sizeof *state);
    size_t windows = arena_round((size_t)terms->slots * sizeof *state->window);
    enum status status;

    if (state == NULL) {
        log_error("no memory for a draft");
        return STATUS_INTERNAL;
    }
    state->levels = way->ngram - 1;
    state->columns = way->window;
    state->paths = way->guesses;
    TRY_TO(arena_open(&state->arena, windows + (size_t)terms->slots * ngram_pool_bytes(way->ngram), "the n-grams"), release);
    state->window = arena_take(&state->arena, (size_t)terms->slots * sizeof *state->window);
    for (int i = 0; i < terms->slots; i++)
        ngram_pool_init(&state->window[i].pool, &state->arena, way->ngram);
    *draft = (struct draft){.kind = &draft_lookahead_kind, .state = state};
    return STATUS_OK;

release:
    free(state);
    return status;
}

const struct draft_kind draft_lookahead_kind = {
    .name = "lookahead", .open = lookahead_open, .propose = lookahead_propose, .learn = lookahead_learn, .close = lookahead_close};
