#include "common/base/digest.h"
#include "common/base/rng.h"
#include "drafter/draft.h"
#include "drafter/lookup_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { CONTEXT = 300, RUNS = 400, WANTED = 6 };

static int32_t tokens[CONTEXT + MESSAGE_MAX_DRAFT];

static int below(uint32_t run, uint32_t place, int limit)
{
    const struct rng_key key = {.seed = 4, .request = run, .position = place};

    return (int)(rng_uniform(&key, RNG_DRAFT) * limit);
}

/* The same question, answered by looking at everything. */
static int find_naively(int min, int max, int length)
{
    for (int n = max < length - 1 ? max : length - 1; n >= min; n--)
        for (int end = length - 1; end >= n; end--)
            if (memcmp(tokens + end - n, tokens + length - n, (size_t)n * sizeof *tokens) == 0)
                return end;
    return 0;
}

static void open_index(struct arena *arena, struct ngram_index *index, int min, int max, int context)
{
    assert_int_equal(arena_open(arena, ngram_index_bytes(min, max, context), "a test"), STATUS_OK);
    ngram_index_init(index, arena, min, max, context);
}

/* Few kinds of tokens give long matches and many, many kinds give none; a sequence grows by a few tokens at a time and up to its context. */
static void test_ngram_index__finds_what_a_search_of_everything_finds(void **state)
{
    int found = 0, missed = 0;

    (void)state;
    for (uint32_t run = 0; run < RUNS; run++) {
        int kinds = (int[]){1, 2, 3, 8, 50, 100000}[run % 6], min = 1 + below(run, 1, 4), max = min + below(run, 2, 6);
        struct ngram_index index;
        struct arena arena;

        open_index(&arena, &index, min, max, CONTEXT);
        for (int again = 0; again < 2; again++) { /* the second time in an index that knew another sequence */
            ngram_index_clear(&index);
            for (int i = 0; i < CONTEXT; i++)
                tokens[i] = below(run, (uint32_t)(1000 + CONTEXT * again + i), kinds);
            for (int length = 1; length <= CONTEXT; length += 1 + below(run, (uint32_t)length, 5)) {
                ngram_index_grow(&index, tokens, length - 1);
                assert_int_equal(index.count, length - 1);
                int at = ngram_index_find(&index, &(struct ngram_text){.tokens = tokens, .length = length});

                assert_int_equal(at, find_naively(min, max, length));
                found += at > 0;
                missed += at == 0;
            }
        }
        arena_close(&arena);
    }
    assert_true(found > RUNS && missed > RUNS);
}

/* Of a text in two parts, of whose end the index lacks some tokens. */
static void test_ngram_index__looks_at_what_the_index_lacks(void **state)
{
    int found = 0, missed = 0;

    (void)state;
    for (uint32_t run = 0; run < RUNS; run++) {
        int kinds = (int[]){1, 2, 3, 8, 50, 100000}[run % 6], min = 1 + below(run, 1, 4), max = min + below(run, 2, 6);
        int length = 1 + below(run, 3, CONTEXT), more = below(run, 4, length < 20 ? length : 20), lacking = below(run, 5, length - more + 1);
        struct ngram_index index;
        struct arena arena;

        for (int i = 0; i < length; i++)
            tokens[i] = below(run, (uint32_t)(1000 + i), kinds);
        open_index(&arena, &index, min, max, CONTEXT);
        ngram_index_grow(&index, tokens, length - more - lacking - (lacking + more == 0));
        int at =
            ngram_index_find(&index, &(struct ngram_text){.tokens = tokens, .length = length - more, .tail = tokens + length - more, .more = more});

        assert_int_equal(at, find_naively(min, max, length));
        found += at > 0;
        missed += at == 0;
        arena_close(&arena);
    }
    assert_true(found > RUNS / 4 && missed > RUNS / 4);
}

/* A table that is filled by a context of different tokens still has free entries: a search ends. */
static void test_ngram_index__a_full_context_leaves_room(void **state)
{
    static int32_t large[1 << 13];
    struct ngram_index index;
    struct arena arena;

    (void)state;
    for (int i = 0; i < 1 << 13; i++)
        large[i] = i * 7;
    open_index(&arena, &index, 1, 2, 1 << 13);
    ngram_index_grow(&index, large, (1 << 13) - 1);
    assert_int_equal(ngram_index_find(&index, &(struct ngram_text){.tokens = large, .length = 1 << 13}), 0);
    large[(1 << 13) - 1] = large[5];
    assert_int_equal(ngram_index_find(&index, &(struct ngram_text){.tokens = large, .length = 1 << 13}), 6);
    arena_close(&arena);
}

/* A drafter that copies, with a mirror that is opened and committed to as the loop does. */
struct rig {
    struct arena arena;
    struct mirror mirror;
    struct draft draft;
    struct draft_output output;
};

static void open_rig(struct rig *rig, int min, int max)
{
    const struct options_draft way = {.kind = DRAFT_LOOKUP, .min = min, .max = max};

    assert_int_equal(arena_open(&rig->arena, mirror_bytes(CONTEXT), "a mirror"), STATUS_OK);
    mirror_init(&rig->mirror, &rig->arena, 0, CONTEXT);
    assert_int_equal(draft_open_lookup(&rig->draft, &way, 1, CONTEXT), STATUS_OK);
}

static void close_rig(struct rig *rig)
{
    draft_close(&rig->draft);
    arena_close(&rig->arena);
}

static void open_sequence(struct rig *rig, const int32_t *prompt, int count)
{
    const struct open_message open = {.request = 1, .prompt_count = (uint32_t)count, .tokens = prompt, .count = count, .draft_length = WANTED};

    assert_true(mirror_open(&rig->mirror, &open));
}

static void propose(struct rig *rig)
{
    struct mirror *batch[] = {&rig->mirror};
    struct draft_output *outputs[] = {&rig->output};

    rig->mirror.wanted = WANTED;
    assert_int_equal(rig->draft.kind->propose(rig->draft.state, batch, 1, outputs), STATUS_OK);
}

static void assert_drafts(struct rig *rig, const int32_t *expected, int count)
{
    propose(rig);
    assert_int_equal(rig->output.count, count);
    assert_int_equal(rig->mirror.drafted, count);
    for (int i = 0; i < count; i++) {
        assert_int_equal(rig->output.token[i], expected[i]);
        assert_int_equal(rig->output.q[i].count, 0); /* a point mass */
    }
}

static void test_draft_lookup__copies_the_newest_of_the_longest(void **state)
{
    static const int32_t prompt[] = {1, 2, 3, 10, 11, 9, 2, 3, 20, 21, 9, 1, 2, 3}, other[] = {1, 2, 3, 4, 5}, loop[] = {7, 8, 9, 8, 9};
    struct rig rig;

    (void)state;
    open_rig(&rig, 1, 3);
    open_sequence(&rig, prompt, 14);
    assert_drafts(&rig, (int32_t[]){10, 11, 9, 2, 3, 20}, WANTED); /* behind 1 2 3, not behind the newer 2 3 */
    open_sequence(&rig, other, 5);
    assert_drafts(&rig, NULL, 0); /* what the index knew is gone, and 5 is new */
    open_sequence(&rig, loop, 5);
    assert_drafts(&rig, (int32_t[]){8, 9, 8, 9, 8, 9}, WANTED); /* it runs into itself */
    close_rig(&rig);
    open_rig(&rig, 1, 2);
    open_sequence(&rig, prompt, 14);
    assert_drafts(&rig, (int32_t[]){20, 21, 9, 1, 2, 3}, WANTED);
    close_rig(&rig);
    open_rig(&rig, 4, 4);
    open_sequence(&rig, prompt, 14);
    assert_drafts(&rig, NULL, 0);
    close_rig(&rig);
}

/* What followed 1 2 3, and what followed the newer 2 3, which is also what followed 3: as far as each is likely to stand. A copy runs into itself. */
static void test_draft_lookup__a_tree_has_what_followed_each_ngram(void **state)
{
    static const int32_t prompt[] = {1, 2, 3, 10, 11, 9, 2, 3, 20, 21, 9, 1, 2, 3}, loop[] = {7, 8, 9, 8, 9};
    static const int32_t grown[] = {10, 20, 11, 9, 21, 2};
    static const int8_t parents[] = {-1, -1, 0, 2, 1, 3};
    struct rig rig;

    (void)state;
    open_rig(&rig, 1, 3);
    draft_shape(&rig.draft, &(struct tree_shape){.kind = TREE_TOP_K});
    open_sequence(&rig, prompt, 14);
    propose(&rig);
    assert_true(rig.output.is_tree && rig.mirror.drafted == 0);
    assert_int_equal(rig.output.count, WANTED);
    for (int i = 0; i < WANTED; i++)
        assert_true(rig.output.token[i] == grown[i] && rig.output.parent[i] == parents[i] && rig.output.q[i].count == 0);
    draft_shape(&rig.draft, &(struct tree_shape){.kind = TREE_TOP_K, .depth = 2});
    propose(&rig);
    assert_int_equal(rig.output.count, 4); /* 10 11 and 20 21 */
    draft_shape(&rig.draft, &(struct tree_shape){.kind = TREE_TOP_K});
    open_sequence(&rig, loop, 5);
    propose(&rig);
    for (int i = 0; i < WANTED; i++)
        assert_true(rig.output.token[i] == 8 + i % 2 && rig.output.parent[i] == i - 1);
    rig.mirror.sampling = (struct sampling){.temperature = 1, .top_p = 1, .repetition_penalty = 1, .accept = ACCEPT_MULTISTEP};
    rig.output.is_tree = 0;
    assert_drafts(&rig, (int32_t[]){8, 9, 8, 9, 8, 9}, WANTED); /* whose siblings are drawn */
    assert_false(rig.output.is_tree);
    close_rig(&rig);
}

/* Commits of what was drafted and of something else; an Open of the same sequence after a gap. */
static void test_draft_lookup__follows_what_is_committed(void **state)
{
    static const int32_t prompt[] = {5, 6, 7, 5}, agreed[] = {6, 30};
    int32_t all[CONTEXT] = {5, 6, 7, 5, 6, 30, 40, 6};
    struct mirror_move move;
    struct rig rig;

    (void)state;
    open_rig(&rig, 1, 4);
    open_sequence(&rig, prompt, 4);
    assert_drafts(&rig, (int32_t[]){6, 7, 5, 6, 7, 5}, WANTED);
    const struct commit commit = {.request = 1, .old_length = 4, .accepted = 1, .tokens = agreed, .count = 2, .keep = 5,
                                  .digest = digest_tokens(rig.mirror.digest, agreed, 2), .draft_length = WANTED};
    assert_true(mirror_commit(&rig.mirror, &commit, &move));
    assert_drafts(&rig, NULL, 0); /* 30 is new */
    open_sequence(&rig, all, 8);
    assert_drafts(&rig, (int32_t[]){30, 40, 6, 30, 40, 6}, WANTED); /* behind the 6 that was committed, not the prompt's */
    close_rig(&rig);
}

/* What the drafter drafts that is told of the text from the beginning. */
static void expect_of(int min, int max, const int32_t *text, int length, struct draft_output *expected)
{
    struct rig rig;
    struct mirror *batch[] = {&rig.mirror};

    open_rig(&rig, min, max);
    open_sequence(&rig, text, length);
    assert_int_equal(rig.draft.kind->propose(rig.draft.state, batch, 1, &expected), STATUS_OK);
    close_rig(&rig);
}

/* The text of a branch, which is committed: its drafts are the draft. */
static void commit_branch(struct rig *rig, const struct branch *branch, const int32_t *text, int length)
{
    const struct commit commit = {.request = 1,
                                  .old_length = (uint32_t)rig->mirror.length,
                                  .accepted = (uint32_t)branch->after,
                                  .tokens = text + rig->mirror.length,
                                  .count = branch->after + 1,
                                  .keep = (uint32_t)length - 1,
                                  .digest = branch->digest,
                                  .draft_length = WANTED};
    struct mirror_move move;
    int drafted = branch->count;

    assert_true(mirror_commit(&rig->mirror, &commit, &move));
    assert_int_equal(rig->mirror.length, length);
    assert_int_equal(rig->mirror.drafted, drafted);
    assert_int_equal(rig->mirror.wanted, WANTED); /* none of it was sent */
}

static void assert_same(const struct draft_output *output, const struct draft_output *expected, const int32_t *tokens_there)
{
    assert_int_equal(output->count, expected->count);
    for (int k = 0; k < output->count; k++) {
        assert_int_equal(output->token[k], expected->token[k]);
        assert_int_equal(tokens_there[k], expected->token[k]);
        assert_int_equal(output->q[k].count, 0);
    }
}

/* One branch for each guess behind so many drafts. Returns how many there were; the last one's text is committed where `commits` says so. */
static int branch_behind(struct rig *rig, int min, int max, int after, int commits)
{
    struct guesses *guesses = &rig->mirror.ahead.guesses[after];
    struct draft_output output, expected;
    int32_t text[CONTEXT];
    int length = rig->mirror.length + after + 1, count;

    rig->draft.kind->guess(rig->draft.state, &rig->mirror, after, guesses);
    count = guesses->count;
    for (int g = 0; g < count; g++) {
        struct branch *branch = &rig->mirror.ahead.branch[0];

        assert_true(after == rig->mirror.drafted || guesses->token[g] != rig->mirror.tokens[rig->mirror.length + after]);
        for (int other = 0; other < g; other++)
            assert_int_not_equal(guesses->token[g], guesses->token[other]);
        rig->mirror.ahead.branches = 0;
        assert_true(mirror_branch(&rig->mirror, after, g));
        output.count = 0;
        memcpy(text, rig->mirror.tokens, (size_t)(length - 1) * sizeof *text);
        text[length - 1] = guesses->token[g];
        expect_of(min, max, text, length, &expected);
        const struct draft_job job = {.mirror = &rig->mirror, .branch = 0, .output = &output};
        assert_int_equal(rig->draft.kind->step(rig->draft.state, &job, 1), STATUS_OK);
        assert_int_equal(branch->count, branch->wanted);
        assert_int_equal(branch->count, output.count);
        assert_same(&output, &expected, rig->mirror.tokens + branch->place + 1);
        if (commits && g == count - 1) {
            commit_branch(rig, branch, text, length);
            assert_drafts(rig, expected.token, expected.count); /* and it drafts the same once more */
        }
    }
    return count;
}

static void test_draft_lookup__a_branch_has_what_is_drafted_after_its_commit(void **state)
{
    int branches = 0;

    (void)state;
    for (uint32_t run = 0; run < RUNS; run++) {
        int kinds = 2 + (int)(run % 4), min = 1 + below(run, 1, 2), max = min + below(run, 2, 4), length = 10 + below(run, 3, 100);
        struct mirror *batch[1];
        struct draft_output output, *outputs[] = {&output};
        struct rig rig;

        for (int i = 0; i < length; i++)
            tokens[i] = below(run, (uint32_t)(1000 + i), kinds);
        open_rig(&rig, min, max);
        open_sequence(&rig, tokens, length);
        batch[0] = &rig.mirror;
        assert_int_equal(rig.draft.kind->propose(rig.draft.state, batch, 1, outputs), STATUS_OK);
        for (int round = 0; round < 4 && rig.mirror.drafted > 0; round++) {
            int committed = below(run, (uint32_t)(10 + round), rig.mirror.drafted + 1), before = rig.mirror.length;

            for (int after = 0; after <= rig.mirror.drafted && rig.mirror.length == before; after++)
                branches += branch_behind(&rig, min, max, after, after == committed);
            if (rig.mirror.length == before)
                break; /* nothing was guessed where it was to be committed */
        }
        close_rig(&rig);
    }
    assert_true(branches > 4 * RUNS);
}

static void open_slots(struct arena *arena, struct mirror *mirrors, struct draft *draft, int slots, int job)
{
    const struct options_draft way = {.kind = DRAFT_LOOKUP, .min = 1, .max = 4, .job = job};

    assert_int_equal(arena_open(arena, (size_t)slots * mirror_bytes(CONTEXT), "mirrors"), STATUS_OK);
    for (int i = 0; i < slots; i++)
        mirror_init(&mirrors[i], arena, i, CONTEXT);
    assert_int_equal(draft_open_lookup(draft, &way, slots, CONTEXT), STATUS_OK);
}

/* A text of this slot from the beginning, and what is drafted for it; -1 ends what is expected. */
static void assert_drafts_of(struct draft *draft, struct mirror *mirror, uint32_t pass, const int32_t *text, int length, const int32_t *expected)
{
    const struct open_message open = {
        .request = 1, .pass = pass, .prompt_count = (uint32_t)length, .tokens = text, .count = length, .draft_length = WANTED};
    struct draft_output output, *outputs[] = {&output};
    int count = 0;

    assert_true(mirror_open(mirror, &open));
    mirror->wanted = WANTED;
    assert_int_equal(draft->kind->propose(draft->state, &mirror, 1, outputs), STATUS_OK);
    for (; expected[count] >= 0; count++) {
        assert_true(count < output.count);
        assert_int_equal(output.token[count], expected[count]);
        assert_int_equal(mirror->tokens[length + count], expected[count]);
        assert_int_equal(output.q[count].count, 0);
    }
    assert_int_equal(output.count, count);
}

static void test_lookup_store__the_job_is_copied_from_where_it_has_more_in_common(void **state)
{
    static const int32_t first[] = {1, 2, 3, 4, 50, 51, 52, 53, 54, 55, 56, 57}, second[] = {9, 2, 3, 60, 61, 62}, third[] = {8, 2, 3};
    static const int32_t own[] = {3, 70, 71, 2, 3, 72, 73, 9, 2, 3}, none[] = {-1}, end[] = {7, 56};
    struct mirror mirrors[3];
    struct arena arena;
    struct draft draft;

    (void)state;
    open_slots(&arena, mirrors, &draft, 3, 1);
    assert_drafts_of(&draft, &mirrors[0], 1, first, 12, none);
    assert_drafts_of(&draft, &mirrors[1], 1, third, 3, (int32_t[]){4, 50, 51, 52, 53, 54, -1}); /* behind 2 3 of a slot that is not its own */
    assert_drafts_of(&draft, &mirrors[2], 1, end, 2, none);                                     /* of 57 the index does not know yet */
    assert_drafts_of(&draft, &mirrors[2], 1, second, 6, none);
    assert_drafts_of(&draft, &mirrors[1], 1, own, 10, (int32_t[]){60, 61, -1});      /* 9 2 3 is more than its own 2 3, and that text ends */
    assert_drafts_of(&draft, &mirrors[1], 1, own, 5, (int32_t[]){72, 73, 9, 2, -1}); /* behind 70 71 2 3 of what it had itself */
    assert_drafts_of(&draft, &mirrors[2], 1, third, 3, (int32_t[]){4, 50, 51, 52, 53, 54, -1});
    assert_drafts_of(&draft, &mirrors[0], 1, none, 0 + 1, none); /* what the first slot had has ended */
    assert_drafts_of(&draft, &mirrors[2], 1, first, 5, (int32_t[]){51, 52, 53, 54, 55, 56, -1});
    draft_close(&draft);
    arena_close(&arena);
    open_slots(&arena, mirrors, &draft, 3, 0);
    assert_drafts_of(&draft, &mirrors[0], 1, first, 12, none);
    assert_drafts_of(&draft, &mirrors[1], 1, third, 3, none); /* its own alone */
    draft_close(&draft);
    arena_close(&arena);
}

/* More texts than there is room for: the newest are there, and nothing is copied from one into the next. */
static void test_lookup_store__begins_anew_where_it_is_full(void **state)
{
    enum { LENGTH = 200 };
    int32_t text[LENGTH];
    struct mirror mirrors[2];
    struct arena arena;
    struct draft draft;

    (void)state;
    open_slots(&arena, mirrors, &draft, 2, 1);
    for (int n = 0; n < 2 * LOOKUP_ENDED / LENGTH; n++) {
        int before = (n - 1) * LENGTH;

        for (int i = 0; i < LENGTH; i++)
            text[i] = n * LENGTH + i;
        assert_drafts_of(&draft, &mirrors[0], 1, text, LENGTH, (int32_t[]){-1});
        if (n % 100 == 99) /* the text before, to its end: the index does not have its newest token */
            assert_drafts_of(&draft, &mirrors[1], 1, (int32_t[]){before + LENGTH - 4}, 1, (int32_t[]){before + LENGTH - 3, before + LENGTH - 2, -1});
    }
    draft_close(&draft);
    arena_close(&arena);
}

/* A bench has the same prompts in each pass: what one of them said is no draft of the next, whichever sequence it was of. */
static void test_lookup_store__forgets_what_an_earlier_pass_said(void **state)
{
    static const int32_t ended[] = {1, 2, 3, 4, 5, 6, 7, 8}, open[] = {11, 12, 13, 14, 15, 16}, other[] = {90, 91}, none[] = {-1};
    struct mirror mirrors[3];
    struct arena arena;
    struct draft draft;

    (void)state;
    open_slots(&arena, mirrors, &draft, 3, 1);
    assert_drafts_of(&draft, &mirrors[0], 1, ended, 8, none);
    assert_drafts_of(&draft, &mirrors[0], 1, other, 2, none);
    assert_drafts_of(&draft, &mirrors[1], 1, open, 6, none);
    assert_drafts_of(&draft, &mirrors[2], 1, (int32_t[]){2, 3}, 2, (int32_t[]){4, 5, 6, 7, -1});
    assert_drafts_of(&draft, &mirrors[2], 1, (int32_t[]){12, 13}, 2, (int32_t[]){14, 15, -1});
    assert_drafts_of(&draft, &mirrors[2], 2, (int32_t[]){2, 3}, 2, none);
    assert_drafts_of(&draft, &mirrors[2], 2, (int32_t[]){12, 13}, 2, none);
    assert_drafts_of(&draft, &mirrors[0], 2, open, 6, none);                                   /* a text of the new pass .. */
    assert_drafts_of(&draft, &mirrors[2], 2, (int32_t[]){12, 13}, 2, (int32_t[]){14, 15, -1}); /* .. is one to copy from */
    draft_close(&draft);
    arena_close(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ngram_index__finds_what_a_search_of_everything_finds),
        cmocka_unit_test(test_ngram_index__looks_at_what_the_index_lacks),
        cmocka_unit_test(test_ngram_index__a_full_context_leaves_room),
        cmocka_unit_test(test_draft_lookup__copies_the_newest_of_the_longest),
        cmocka_unit_test(test_draft_lookup__a_tree_has_what_followed_each_ngram),
        cmocka_unit_test(test_draft_lookup__follows_what_is_committed),
        cmocka_unit_test(test_draft_lookup__a_branch_has_what_is_drafted_after_its_commit),
        cmocka_unit_test(test_lookup_store__the_job_is_copied_from_where_it_has_more_in_common),
        cmocka_unit_test(test_lookup_store__begins_anew_where_it_is_full),
        cmocka_unit_test(test_lookup_store__forgets_what_an_earlier_pass_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
