/* Lookahead: what the target says behind the window makes n-grams, and the next window; and the pool of n-grams. The target here looks at the last
 * token alone, and its text does not repeat itself while it is looked at. */
#include "common/base/digest.h"
#include "drafter/draft.h"
#include "drafter/ngram_pool.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h> /* needs those above */

enum { VOCAB = 61, PROMPT = 20, CONTEXT = 256, NEW = 40, COLUMNS = 4, WINDOW = 2 * COLUMNS, WANTED = 12 };

struct rig {
    struct arena arena;
    struct mirror mirror;
    struct draft draft;
    struct draft_output output;
    int accepted;
};

/* 2 has order 60 here, so it goes through all tokens but one before any comes again. */
static int32_t says(int32_t token)
{
    return (2 * token + 7) % VOCAB;
}

static void open_sequence(struct rig *rig, enum accept_mode accept)
{
    int32_t prompt[PROMPT];

    for (int i = 0; i < PROMPT; i++)
        prompt[i] = 13 * i % VOCAB; /* no two of which the target would have said behind each other */
    const struct open_message open = {.request = 1,
                                      .prompt_count = PROMPT,
                                      .tokens = prompt,
                                      .count = PROMPT,
                                      .sampling = {.temperature = 0.8, .top_p = 1, .repetition_penalty = 1, .accept = accept},
                                      .draft_length = WANTED};

    assert_true(mirror_open(&rig->mirror, &open));
}

static void open_rig(struct rig *rig, enum accept_mode accept)
{
    const struct draft_parts parts = {.way = &options_draft_kinds[DRAFT_LOOKAHEAD].usual, .slots = 1, .context = CONTEXT};

    *rig = (struct rig){0};
    assert_int_equal(arena_open(&rig->arena, mirror_bytes(CONTEXT), "a mirror"), STATUS_OK);
    mirror_init(&rig->mirror, &rig->arena, 0, CONTEXT);
    assert_int_equal(draft_open(&rig->draft, &parts), STATUS_OK);
    open_sequence(rig, accept);
}

static void close_rig(struct rig *rig)
{
    draft_close(&rig->draft);
    arena_close(&rig->arena);
}

/* A tree whose parents come first, with no token twice behind one, and no more than asked for. */
static void propose(struct rig *rig)
{
    struct mirror *batch[] = {&rig->mirror};
    struct draft_output *outputs[] = {&rig->output}, *output = &rig->output;

    rig->mirror.wanted = WANTED;
    assert_int_equal(rig->draft.kind->propose(rig->draft.state, batch, 1, outputs), STATUS_OK);
    assert_int_equal(rig->mirror.drafted, output->count);
    assert_in_range(output->count, 0, WANTED);
    for (int i = 0; i < output->count && output->is_tree; i++) {
        assert_true(output->parent[i] >= -1 && output->parent[i] < i);
        assert_int_equal(output->q[i].count, 0);
        for (int j = 0; j < i; j++)
            assert_false(output->parent[j] == output->parent[i] && output->token[j] == output->token[i]);
    }
}

/* The Commit of the first `count` tokens that the target says, as the drafter's loop takes it; `told`: it has the target's own tokens. */
static void commit(struct rig *rig, int count, int told)
{
    struct mirror *mirror = &rig->mirror;
    int32_t tokens[MESSAGE_MAX_COMMIT], own[MESSAGE_MAX_COMMIT];
    struct mirror_move move;

    own[0] = says(mirror->tokens[mirror->length - 1]);
    for (int i = 0; i < rig->output.count; i++)
        own[i + 1] = says(rig->output.token[i]);
    for (int i = 0; i < count; i++)
        tokens[i] = i == 0 ? own[0] : says(tokens[i - 1]);
    const struct commit sent = {.request = 1,
                                .old_length = (uint32_t)mirror->length,
                                .accepted = (uint32_t)count - 1,
                                .tokens = tokens,
                                .count = count,
                                .keep = (uint32_t)(mirror->length + count - 1),
                                .digest = digest_tokens(mirror->digest, tokens, (uint32_t)count),
                                .draft_length = WANTED,
                                .own = own,
                                .owns = told ? rig->output.count + 1 : 0};

    draft_learn(&rig->draft, mirror, &sent);
    assert_true(mirror_commit(mirror, &sent, &move));
}

/* Tokens that a round commits: of the path that the target walks through the tree, and its own. */
static int walk(const struct rig *rig)
{
    int32_t token = says(rig->mirror.tokens[rig->mirror.length - 1]);
    int count = 1, at = -1;

    for (int i = 0; i < rig->output.count; i++)
        if (rig->output.parent[i] == at && rig->output.token[i] == token) {
            at = i;
            token = says(token);
            count++;
        }
    return count;
}

static void decode(struct rig *rig, int told)
{
    while (rig->mirror.length < PROMPT + NEW) {
        propose(rig);
        assert_true(rig->output.is_tree);
        rig->accepted += walk(rig) - 1;
        commit(rig, walk(rig), told);
    }
}

/* The text repeats nothing, so whoever does not hear the target has nothing that is right. */
static void test_draft_lookahead__what_the_target_says_is_proposed(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig, ACCEPT_WALK);
    decode(&rig, 0);
    assert_int_equal(rig.accepted, 0);
    close_rig(&rig);
    open_rig(&rig, ACCEPT_WALK);
    decode(&rig, 1);
    assert_true(rig.accepted >= NEW / 4);
    close_rig(&rig);
}

/* Its nodes come last: g1, h1, g2, h2 and so on; each g behind the g before it, each h behind its g. Returns where they begin. */
static int window_of(const struct rig *rig, int32_t *g, int32_t *h)
{
    const struct draft_output *output = &rig->output;
    int first = output->count - WINDOW;

    assert_true(first >= 0);
    for (int i = 0; i < COLUMNS; i++) {
        int at = first + 2 * i;

        assert_int_equal(output->parent[at], i == 0 ? -1 : at - 2);
        assert_int_equal(output->parent[at + 1], at);
        g[i] = output->token[at];
        h[i] = output->token[at + 1];
    }
    return first;
}

/* A column moves to the front by as many places as tokens were committed: its second guess is for one place further on than its first. */
static void test_draft_lookahead__the_window_moves_with_the_text(void **state)
{
    int32_t g[2][COLUMNS], h[2][COLUMNS];
    struct rig rig;

    (void)state;
    for (int count = 1; count <= COLUMNS + 1; count++) {
        open_rig(&rig, ACCEPT_WALK);
        propose(&rig);
        assert_int_equal(window_of(&rig, g[0], h[0]), 0);
        commit(&rig, count, 1);
        propose(&rig);
        window_of(&rig, g[1], h[1]);
        for (int i = 0; i + count - 1 < COLUMNS; i++) {
            assert_int_equal(g[1][i], h[0][i + count - 1]);
            assert_int_equal(h[1][i], says(h[0][i + count - 1]));
        }
        close_rig(&rig);
    }
}

/* Are these two proposed as the first n-gram? */
static int has_ngram(const struct rig *rig, int32_t first, int32_t second)
{
    const struct draft_output *output = &rig->output;

    return output->count > 1 && output->token[0] == first && output->parent[0] == -1 && output->token[1] == second && output->parent[1] == 0;
}

/* What the target said behind a column is an n-gram with it, where the sequence comes to its first token, and in no other one. */
static void test_draft_lookahead__a_column_becomes_an_ngram(void **state)
{
    int32_t g[COLUMNS], h[COLUMNS], newest;
    struct rig rig;

    (void)state;
    open_rig(&rig, ACCEPT_WALK);
    propose(&rig);
    window_of(&rig, g, h);
    commit(&rig, 1, 1);
    newest = g[2];
    rig.mirror.tokens[rig.mirror.length - 1] = newest;
    propose(&rig);
    assert_true(has_ngram(&rig, h[2], says(h[2])));
    const struct open_message open = {.request = 2,
                                      .prompt_count = 1,
                                      .tokens = &newest,
                                      .count = 1,
                                      .sampling = {.temperature = 0, .top_p = 1, .repetition_penalty = 1},
                                      .draft_length = WANTED};
    assert_true(mirror_open(&rig.mirror, &open));
    propose(&rig);
    assert_false(has_ngram(&rig, h[2], says(h[2])));
    close_rig(&rig);
}

/* A Commit of another text, or one that comes twice, tells nothing of this window. */
static void test_draft_lookahead__what_is_about_another_text_is_not_taken(void **state)
{
    struct draft_output before;
    struct rig rig;

    (void)state;
    open_rig(&rig, ACCEPT_WALK);
    propose(&rig);
    before = rig.output;
    const struct commit late = {
        .request = 1, .old_length = PROMPT - 1, .tokens = (int32_t[]){3}, .count = 1, .own = (int32_t[]){1, 2, 3, 4, 5, 6, 7, 8, 9}, .owns = 9};

    draft_learn(&rig.draft, &rig.mirror, &late);
    propose(&rig);
    assert_int_equal(rig.output.count, before.count);
    assert_memory_equal(rig.output.token, before.token, (size_t)before.count * sizeof *before.token);
    close_rig(&rig);
}

/* By a rule with coins, which must not see what the target would say, a proposal is a chain of what the text has. */
static void test_draft_lookahead__rules_with_a_q_get_chains_of_the_text(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig, ACCEPT_REJECTION);
    propose(&rig);
    assert_true(!rig.output.is_tree && rig.output.count == 0);
    rig.mirror.tokens[rig.mirror.length - 1] = 26; /* the third of the prompt */
    propose(&rig);
    assert_true(!rig.output.is_tree && rig.output.count == 2);
    assert_true(rig.output.token[0] == 39 && rig.output.token[1] == 52);
    close_rig(&rig);
}

static void open_pool(struct arena *arena, struct ngram_pool *pool, int n)
{
    assert_int_equal(arena_open(arena, ngram_pool_bytes(n), "n-grams"), STATUS_OK);
    ngram_pool_init(pool, arena, n);
}

static void test_ngram_pool__the_newest_come_first(void **state)
{
    const int32_t *found[NGRAM_POOL_WAYS + 1];
    struct ngram_pool pool;
    struct arena arena;

    (void)state;
    open_pool(&arena, &pool, 3);
    assert_int_equal(ngram_pool_find(&pool, 5, NGRAM_POOL_WAYS, found), 0);
    for (int32_t i = 0; i < NGRAM_POOL_WAYS + 2; i++)
        ngram_pool_add(&pool, (int32_t[]){5, i, 100 + i});
    assert_int_equal(ngram_pool_find(&pool, 5, NGRAM_POOL_WAYS + 1, found), NGRAM_POOL_WAYS);
    for (int i = 0; i < NGRAM_POOL_WAYS; i++)
        assert_true(found[i][0] == NGRAM_POOL_WAYS + 1 - i && found[i][1] == 101 + NGRAM_POOL_WAYS - i);
    ngram_pool_add(&pool, (int32_t[]){5, 4, 104}); /* which is there */
    assert_int_equal(ngram_pool_find(&pool, 5, NGRAM_POOL_WAYS, found), NGRAM_POOL_WAYS);
    assert_true(found[0][0] == 4 && found[1][0] == NGRAM_POOL_WAYS + 1);
    for (int i = 2; i < NGRAM_POOL_WAYS; i++)
        assert_int_not_equal(found[i][0], 4);
    assert_int_equal(ngram_pool_find(&pool, 5, 2, found), 2);
    assert_int_equal(ngram_pool_find(&pool, 6, 2, found), 0);
    arena_close(&arena);
}

/* Tokens share places: each finds its own. */
static void test_ngram_pool__each_token_finds_its_own(void **state)
{
    const int32_t *found[NGRAM_POOL_WAYS];
    struct ngram_pool pool;
    struct arena arena;
    int there = 0;

    (void)state;
    open_pool(&arena, &pool, 2);
    for (int32_t token = 0; token < 4 * NGRAM_POOL_PLACES; token++)
        ngram_pool_add(&pool, (int32_t[]){token, token + 1});
    for (int32_t token = 0; token < 4 * NGRAM_POOL_PLACES; token++)
        if (ngram_pool_find(&pool, token, NGRAM_POOL_WAYS, found) > 0) {
            assert_int_equal(found[0][0], token + 1);
            there++;
        }
    assert_true(there > 3 * NGRAM_POOL_PLACES);
    arena_close(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draft_lookahead__what_the_target_says_is_proposed),
        cmocka_unit_test(test_draft_lookahead__the_window_moves_with_the_text),
        cmocka_unit_test(test_draft_lookahead__a_column_becomes_an_ngram),
        cmocka_unit_test(test_draft_lookahead__what_is_about_another_text_is_not_taken),
        cmocka_unit_test(test_draft_lookahead__rules_with_a_q_get_chains_of_the_text),
        cmocka_unit_test(test_ngram_pool__the_newest_come_first),
        cmocka_unit_test(test_ngram_pool__each_token_finds_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
