#include "drafter/mirror.h"

#include "common/base/digest.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { CONTEXT = 64, PROMPT = 4, MOST = 5, LONG = 8 };

static struct arena arena;
static struct mirror mirror;
static struct mirror_move move;
static const int32_t prompt[PROMPT] = {10, 11, 12, 13};

static struct open_message opening(const int32_t *tokens, int count)
{
    return (struct open_message){.request = 6,
                                 .prompt_count = PROMPT,
                                 .tokens = tokens,
                                 .count = count,
                                 .sampling = sampling_default,
                                 .draft_length = 3,
                                 .limit = CONTEXT};
}

static void open_anew(void)
{
    const struct open_message open = opening(prompt, PROMPT);

    arena_rewind(&arena, 0);
    mirror_init(&mirror, &arena, 1, CONTEXT);
    assert_true(mirror_open(&mirror, &open));
}

/* What a drafter does: feeds all but the last drafted token. */
static void draft(int count)
{
    for (int i = 0; i < count; i++)
        mirror.tokens[mirror.length + i] = 100 + i;
    mirror.drafted = count;
    mirror.cached = count > 0 ? mirror.length + count - 1 : mirror.cached;
}

static struct commit committing(const int32_t *tokens, int count, int accepted)
{
    return (struct commit){.request = 6,
                           .old_length = (uint32_t)mirror.length,
                           .accepted = (uint32_t)accepted,
                           .tokens = tokens,
                           .count = count,
                           .keep = (uint32_t)(mirror.length + count - 1),
                           .digest = digest_tokens(mirror.digest, tokens, count),
                           .draft_length = 2};
}

/* The places that were fed what is now committed. */
static void test_mirror__commit_keeps_what_was_fed_and_stands(void **state)
{
    (void)state;
    for (int k = 0; k <= MOST; k++)
        for (int accepted = 0; accepted <= k; accepted++) {
            int32_t tokens[MOST + 1], expected = PROMPT + accepted;

            open_anew();
            mirror.cached = PROMPT - 1;
            draft(k);
            for (int i = 0; i < accepted; i++)
                tokens[i] = 100 + i;
            tokens[accepted] = 7;
            const struct commit commit = committing(tokens, accepted + 1, accepted);

            if (k == 0)
                expected = PROMPT - 1;
            else if (accepted == k)
                expected = PROMPT + k - 1; /* the last drafted token was never fed */
            assert_true(mirror_commit(&mirror, &commit, &move));
            assert_int_equal(mirror.length, PROMPT + accepted + 1);
            assert_int_equal(mirror.cached, expected);
            assert_true(mirror.digest == commit.digest);
            assert_memory_equal(mirror.tokens + PROMPT, tokens, (size_t)(accepted + 1) * sizeof *tokens);
            assert_int_equal(mirror.wanted, 2);
            assert_int_equal(mirror.drafted, 0);
        }
}

/* The draft came too late and the target went on alone: what was fed stays as far as it happens to agree. */
static void test_mirror__commit_after_a_fallback_drops_what_differs(void **state)
{
    (void)state;
    for (int alike = 0; alike <= 1; alike++) {
        const int32_t token = alike ? 100 : 55;

        open_anew();
        mirror.cached = PROMPT - 1;
        draft(4);
        const struct commit commit = committing(&token, 1, 0);
        assert_true(mirror_commit(&mirror, &commit, &move));
        assert_int_equal(mirror.length, PROMPT + 1);
        assert_int_equal(mirror.cached, PROMPT);
        assert_true(mirror.cached <= mirror.length - 1);
    }
}

/* Of several drafts for the same tokens the lead used another one than was fed last. */
static void test_mirror__commit_of_another_draft_keeps_what_agrees(void **state)
{
    (void)state;
    for (int alike = 0; alike < 3; alike++) {
        int32_t tokens[] = {100, 101, 102, 7};

        open_anew();
        mirror.cached = PROMPT - 1;
        draft(4);
        tokens[alike] = 55;
        const struct commit commit = committing(tokens, 4, 3);
        assert_true(mirror_commit(&mirror, &commit, &move));
        assert_int_equal(mirror.cached, PROMPT + alike);
        assert_memory_equal(mirror.tokens + PROMPT, tokens, sizeof tokens);
    }
}

/* A tree whose tokens are 100 and on, of which the even ones follow the committed text or an even one, and the odd ones an odd one. */
static void grow(int count)
{
    open_anew();
    mirror.cached = PROMPT;
    for (int i = 0; i < count; i++)
        assert_int_equal(mirror_grow(&mirror, i - 2 < 0 ? -1 : i - 2, 100 + i), i);
}

static void test_mirror__the_path_of_a_tree_is_moved_to_where_it_belongs(void **state)
{
    (void)state;
    for (int side = 0; side < 2; side++)
        for (int accepted = 0; accepted <= 4; accepted++) {
            struct mirror_move moves[MESSAGE_MAX_COMMIT];
            int32_t tokens[MOST];
            int count;

            grow(8);
            for (int i = 0; i < accepted; i++)
                tokens[i] = 100 + 2 * i + side;
            tokens[accepted] = 7;
            const struct commit commit = committing(tokens, accepted + 1, accepted);

            count = mirror_path(&mirror, &commit, moves);
            assert_int_equal(count, accepted - (side == 0 && accepted > 0)); /* the first token of the first side is where it belongs */
            for (int m = 0; m < count; m++) {
                int depth = m + accepted - count;

                assert_int_equal(moves[m].from, PROMPT + 2 * depth + side);
                assert_int_equal(moves[m].to, PROMPT + depth);
                assert_int_equal(moves[m].count, 1);
            }
            assert_true(mirror_commit(&mirror, &commit, &move));
            assert_int_equal(move.count, 0);
            assert_int_equal(mirror.cached, PROMPT + accepted);
            assert_int_equal(mirror.length, PROMPT + accepted + 1);
            assert_int_equal(mirror.tree.count, 0);
        }
}

/* A Commit of something else than it drafted, or one that comes twice, moves nothing that it does not know. */
static void test_mirror__a_tree_is_of_one_text(void **state)
{
    const int32_t tokens[] = {101, 100}, other[] = {55, 101};
    struct mirror_move moves[MESSAGE_MAX_COMMIT];

    (void)state;
    grow(8);
    const struct commit first = committing(other, 2, 0);
    assert_int_equal(mirror_path(&mirror, &first, moves), 0);
    assert_true(mirror_commit(&mirror, &first, &move));
    assert_int_equal(mirror.cached, PROMPT);
    grow(8);
    const struct commit second = committing(tokens, 2, 1); /* 100 does not follow 101 there */
    assert_int_equal(mirror_path(&mirror, &second, moves), 1);
    assert_true(mirror_commit(&mirror, &second, &move));
    assert_int_equal(mirror.cached, PROMPT + 1);
    assert_int_equal(mirror_grow(&mirror, -1, 55), 0);
    assert_int_equal(mirror_grow(&mirror, -1, tokens[0]), 1); /* may follow this text, too */
    assert_int_equal(mirror_path(&mirror, &second, moves), 0);
    assert_true(mirror_commit(&mirror, &second, &move));
    assert_int_equal(mirror.cached, PROMPT + 1);
}

static void test_mirror__a_tree_ends_where_there_is_no_room(void **state)
{
    (void)state;
    grow(CONTEXT - PROMPT);
    assert_int_equal(mirror_grow(&mirror, -1, 5), -1);
    assert_int_equal(mirror.tree.depth[CONTEXT - PROMPT - 1], (CONTEXT - PROMPT) / 2);
}

/* Two guesses behind each number of drafts, and a branch for each of them, in which `ahead` of as many tokens as there are drafts are drafted: 200
 * and on in the first branch, 210 in the second. */
static void run_ahead(int drafts, int ahead, int is_sent)
{
    open_anew();
    mirror.cached = PROMPT - 1;
    draft(drafts);
    mirror.cached++; /* the last draft was fed to see what may come behind it */
    mirror.ahead.is_planned = mirror.ahead.has_looked = 1;
    for (int after = 0; after <= drafts; after++) {
        mirror.ahead.guesses[after] = (struct guesses){.count = 2, .token = {7, 8}};
        for (int guess = 0; guess < 2; guess++)
            assert_true(mirror_branch(&mirror, after, guess));
    }
    for (int b = 0; b < mirror.ahead.branches; b++) {
        struct branch *branch = &mirror.ahead.branch[b];

        for (int i = 0; i < ahead; i++)
            mirror.tokens[branch->place + 1 + i] = 200 + 10 * b + i;
        branch->count = ahead;
        branch->is_sent = is_sent;
    }
}

/* A Commit of the first `accepted` of two drafts, and `last`. tokens: [3] */
static struct commit committing_some(int32_t *tokens, int accepted, int32_t last)
{
    for (int i = 0; i < accepted; i++)
        tokens[i] = 100 + i;
    tokens[accepted] = last;
    return committing(tokens, accepted + 1, accepted);
}

static void test_mirror__a_commit_of_a_branchs_text_takes_what_was_drafted_there(void **state)
{
    (void)state;
    for (int which = 0; which < 6; which++)
        for (int is_sent = 0; is_sent <= 1; is_sent++)
            for (int ahead = is_sent ? 2 : 0; ahead <= 2; ahead++) {
                int accepted = which / 2, length = PROMPT + accepted + 1, output, place;
                int32_t tokens[3];

                run_ahead(2, ahead, is_sent);
                output = mirror.ahead.branch[which].output;
                place = mirror.ahead.branch[which].place;
                const struct commit commit = committing_some(tokens, accepted, 7 + which % 2);

                assert_true(mirror.ahead.branch[which].digest == commit.digest);
                assert_int_equal(mirror_expected(&mirror, &commit), which);
                assert_true(mirror_commit(&mirror, &commit, &move));
                assert_int_equal(mirror.length, length);
                assert_int_equal(mirror.drafted, ahead);
                assert_int_equal(mirror.begun, ahead);
                assert_int_equal(mirror.output, output);
                assert_int_equal(mirror.wanted, is_sent ? 0 : 2);
                assert_int_equal(mirror.cached, length + ahead - 1);
                assert_int_equal(mirror.ahead.branches, 0);
                for (int i = 0; i < ahead; i++)
                    assert_int_equal(mirror.tokens[mirror.length + i], 200 + 10 * which + i);
                assert_int_equal(move.count, place == length - 1 ? 0 : ahead); /* what lies where it belongs is not copied */
                assert_true(move.count == 0 || (move.from == place && move.to == length - 1));
            }
}

static void test_mirror__a_commit_of_another_text_drops_what_was_drafted_ahead(void **state)
{
    (void)state;
    for (int accepted = 0; accepted <= 2; accepted++)
        for (int is_sent = 0; is_sent <= 1; is_sent++) {
            int32_t tokens[3];

            run_ahead(2, 2, is_sent);
            const struct commit commit = committing_some(tokens, accepted, 9);

            assert_int_equal(mirror_expected(&mirror, &commit), -1);
            assert_true(mirror_commit(&mirror, &commit, &move));
            assert_int_equal(mirror.drafted, 0);
            assert_int_equal(mirror.begun, 0);
            assert_int_equal(mirror.wanted, 2);
            assert_int_equal(mirror.cached, PROMPT + accepted);
            assert_int_equal(mirror.ahead.branches, 0);
            assert_false(mirror.ahead.is_planned || mirror.ahead.has_looked);
            assert_int_equal(move.count, 0);
        }
}

/* The lead cuts what is longer than it asked for. */
static void test_mirror__of_what_was_drafted_ahead_as_much_counts_as_is_asked_for(void **state)
{
    const int32_t tokens[] = {100, 101, 102, 103, 7};

    (void)state;
    run_ahead(4, 4, 1);
    const struct commit commit = committing(tokens, 5, 4);
    assert_true(mirror_commit(&mirror, &commit, &move));
    assert_int_equal(mirror.drafted, 2);
    assert_int_equal(mirror.cached, PROMPT + 5 + 2 - 1);
}

/* What a branch is copied to holds no other one, nor what it is copied from; and no two have one output. */
static void test_mirror__branches_lie_apart_from_each_other_and_from_where_they_go(void **state)
{
    (void)state;
    run_ahead(2, 2, 0);
    for (int a = 0; a < mirror.ahead.branches; a++) {
        const struct branch *one = &mirror.ahead.branch[a];
        int to = mirror.length + one->after;

        assert_true(one->output != mirror.output);
        assert_true(one->place == to || one->place >= to + 2);
        for (int b = 0; b < a; b++) {
            const struct branch *other = &mirror.ahead.branch[b];

            assert_true(one->output != other->output);
            assert_true(one->place > other->place + 2 || other->place > one->place + 2);
        }
    }
}

static void test_mirror__has_no_more_branches_than_there_is_room_for(void **state)
{
    (void)state;
    open_anew();
    mirror.cached = PROMPT - 1;
    draft(LONG);
    mirror.ahead.guesses[0] = (struct guesses){.count = MIRROR_GUESSES};
    for (int i = 0; i < MIRROR_GUESSES; i++)
        assert_int_equal(mirror_branch(&mirror, 0, i), PROMPT + 2 * LONG + (i + 1) * (LONG + 1) < CONTEXT);
    for (int i = 0; i < mirror.ahead.branches; i++)
        assert_true(mirror.ahead.branch[i].place + mirror.ahead.branch[i].wanted < CONTEXT);
}

/* Said again, or late: the draft in progress goes on. */
static void test_mirror__commit_of_what_is_known_changes_nothing(void **state)
{
    const int32_t tokens[] = {100, 7, 8};
    struct commit first, second;

    (void)state;
    open_anew();
    mirror.cached = PROMPT - 1;
    draft(4);
    first = committing(tokens, 2, 1);
    assert_true(mirror_commit(&mirror, &first, &move));
    second = committing(tokens + 2, 1, 0);
    assert_true(mirror_commit(&mirror, &second, &move));
    mirror.wanted = 3;
    const struct mirror before = mirror;
    assert_true(mirror_commit(&mirror, &second, &move));
    assert_memory_equal(&mirror, &before, sizeof mirror);
    assert_true(mirror_commit(&mirror, &first, &move));
    assert_memory_equal(&mirror, &before, sizeof mirror);
    first.digest ^= 1; /* of as many tokens, but others */
    assert_false(mirror_commit(&mirror, &first, &move));
    assert_false(mirror.open);
}

static void test_mirror__gap_closes_and_asks_for_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        const int32_t tokens[] = {1, 2};
        struct commit commit;

        open_anew();
        commit = committing(tokens, 2, 1);
        if (i == 0)
            commit.old_length++;
        else if (i == 1)
            commit.digest ^= 1;
        else
            commit.old_length--;
        assert_false(mirror_commit(&mirror, &commit, &move));
        assert_false(mirror.open);
        assert_int_equal(mirror.wanted, 0);
    }
}

static void test_mirror__reopening_after_a_gap_keeps_the_cache(void **state)
{
    static const int32_t now[] = {10, 11, 12, 13, 100, 101, 44, 45};
    const struct open_message again = opening(now, 8);
    const int32_t token = 1;

    (void)state;
    open_anew();
    mirror.cached = PROMPT - 1;
    draft(4); /* fed 100, 101, 102 */
    struct commit commit = committing(&token, 1, 0);
    commit.old_length += 3; /* one was lost */
    assert_false(mirror_commit(&mirror, &commit, &move));
    assert_true(mirror_open(&mirror, &again));
    assert_int_equal(mirror.cached, 6);
    assert_int_equal(mirror.length, 8);
    assert_int_equal(mirror.wanted, 3);
    assert_true(mirror.digest == digest_tokens(DIGEST_EMPTY, now, 8));
}

static void test_mirror__another_request_keeps_the_common_beginning(void **state)
{
    static const int32_t other[] = {10, 11, 99, 13};
    struct open_message open = opening(other, 4);

    (void)state;
    open_anew();
    mirror.cached = PROMPT - 1;
    mirror_close(&mirror);
    open.request = 7;
    assert_true(mirror_open(&mirror, &open));
    assert_int_equal(mirror.cached, 2);
    mirror_close(&mirror);
    mirror.cached = 4;
    assert_true(mirror_open(&mirror, &open));
    assert_int_equal(mirror.cached, 3); /* the newest token is fed again, for its logits */
}

static void test_mirror__what_does_not_fit_the_context_is_refused(void **state)
{
    int32_t tokens[CONTEXT];

    (void)state;
    memset(tokens, 0, sizeof tokens);
    for (int over = 0; over <= 1; over++) {
        const struct open_message open = opening(tokens, CONTEXT - 1 + over);

        open_anew();
        assert_int_equal(mirror_open(&mirror, &open), !over);
        assert_int_equal(mirror.open, !over);
    }
    const struct open_message full = opening(tokens, CONTEXT - 1);
    assert_true(mirror_open(&mirror, &full));
    const struct commit commit = committing(tokens, 1, 0);
    assert_false(mirror_commit(&mirror, &commit, &move));
    assert_false(mirror.open);
}

static int open_arena(void **state)
{
    (void)state;
    return arena_open(&arena, mirror_bytes(CONTEXT), "a mirror") != STATUS_OK;
}

static int close_arena(void **state)
{
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mirror__the_path_of_a_tree_is_moved_to_where_it_belongs),
        cmocka_unit_test(test_mirror__a_tree_is_of_one_text),
        cmocka_unit_test(test_mirror__a_tree_ends_where_there_is_no_room),
        cmocka_unit_test(test_mirror__a_commit_of_a_branchs_text_takes_what_was_drafted_there),
        cmocka_unit_test(test_mirror__a_commit_of_another_text_drops_what_was_drafted_ahead),
        cmocka_unit_test(test_mirror__of_what_was_drafted_ahead_as_much_counts_as_is_asked_for),
        cmocka_unit_test(test_mirror__branches_lie_apart_from_each_other_and_from_where_they_go),
        cmocka_unit_test(test_mirror__has_no_more_branches_than_there_is_room_for),
        cmocka_unit_test(test_mirror__commit_keeps_what_was_fed_and_stands),
        cmocka_unit_test(test_mirror__commit_after_a_fallback_drops_what_differs),
        cmocka_unit_test(test_mirror__commit_of_another_draft_keeps_what_agrees),
        cmocka_unit_test(test_mirror__commit_of_what_is_known_changes_nothing),
        cmocka_unit_test(test_mirror__gap_closes_and_asks_for_nothing),
        cmocka_unit_test(test_mirror__reopening_after_a_gap_keeps_the_cache),
        cmocka_unit_test(test_mirror__another_request_keeps_the_common_beginning),
        cmocka_unit_test(test_mirror__what_does_not_fit_the_context_is_refused),
    };

    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
