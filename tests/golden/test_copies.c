/* What copies do beside a draft model. A cascade drafts in fewer steps what the model drafts one token a step: the same tokens from the same q,
 * whatever became of the drafts before, and beside drafts that stop early. Copies that come first are what followed the longest end of the text
 * before, where enough of it has occurred; elsewhere it is the model's. Copies that come after are the rest of a draft of the model's. */
#include "drafter/draft_model.h"
#include "tests/support/draft_rig.h"
#include "tests/support/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#ifndef BACKEND
#define BACKEND backend_cpu
#endif

enum { SLOTS = 6, ROUNDS = 8, MOST = 7 };

static char model_path[GOLDEN_PATH];

/* Those that compare tokens, one of them truncated and one with penalties, which count the text up to each row; and one by which a cascade rests. */
static struct sampling sampling_of(int slot)
{
    static const int rules[SLOTS] = {ACCEPT_REJECTION, ACCEPT_COUPLED, ACCEPT_WALK, ACCEPT_COUPLED, ACCEPT_REJECTION, ACCEPT_REJECTION};
    struct sampling sampling = sampling_default;

    sampling.seed = 5;
    sampling.temperature = slot == 0 || slot == 4 ? 0.0 : 0.3;
    sampling.accept = rules[slot];
    if (slot == 3)
        sampling.top_k = 6;
    if (slot == 4)
        sampling.repetition_penalty = 1.1;
    return sampling;
}

static void assert_same_draft(const struct draft_rig *with, const struct draft_rig *without, int s)
{
    const struct draft_output *a = &with->output[s], *b = &without->output[s];

    assert_int_equal(a->count, b->count);
    assert_int_equal(with->mirror[s].drafted, without->mirror[s].drafted);
    assert_int_equal(with->mirror[s].is_stopped, without->mirror[s].is_stopped);
    assert_true(with->mirror[s].cached < with->mirror[s].length + with->mirror[s].drafted);
    for (int k = 0; k < b->count; k++) {
        assert_int_equal(a->token[k], b->token[k]);
        assert_int_equal(with->mirror[s].tokens[with->mirror[s].length + k], b->token[k]);
        assert_int_equal(a->q[k].count, b->q[k].count);
        assert_memory_equal(a->q[k].id, b->q[k].id, (size_t)b->q[k].count * sizeof *b->q[k].id);
        assert_memory_equal(a->q[k].weight, b->q[k].weight, (size_t)b->q[k].count * sizeof *b->q[k].weight);
    }
}

/* Whole proposals stand but for every third, of which a part does: what follows is mostly what the model itself would say, which soon repeats. */
static void commit(struct draft_rig *rig, int s, int round)
{
    int drafted = rig->mirror[s].drafted, accepted = (round + s) % 3 == 2 ? drafted / 2 : drafted;
    int32_t token = (round + s) % 3 == 2 || drafted == 0 ? (11 * s + round) % 128 : rig->output[s].token[0];

    draft_rig_commit(rig, s, accepted, token, MOST - (round + s) % 3);
}

static void compare(struct stopping stopping)
{
    static struct draft_rig with, without;
    struct model_copies *copies;
    int stopped = 0;

    with = without = (struct draft_rig){.runs_ahead = 0};
    with.runs_ahead = 1;
    draft_rig_open(&with, model_path, &BACKEND, 1, SLOTS, sampling_of);
    draft_rig_open(&without, model_path, &BACKEND, 1, SLOTS, sampling_of);
    assert_int_equal(draft_copy(&with.draft, &(struct draft_copies){.cascade = 1}, SLOTS, DRAFT_RIG_CONTEXT), STATUS_OK);
    copies = ((struct model_draft *)with.draft.state)->copies;
    copies->always = 1; /* else what a step takes would say whether there are copies */
    draft_stop(&with.draft, &stopping);
    draft_stop(&without.draft, &stopping);
    for (int round = 0; round < ROUNDS; round++) {
        draft_rig_propose(&with);
        draft_rig_propose(&without);
        for (int s = 0; s < SLOTS; s++) {
            assert_same_draft(&with, &without, s);
            stopped += with.mirror[s].is_stopped;
            commit(&with, s, round);
            commit(&without, s, round);
        }
    }
    print_message("%lld tokens in %lld steps, %lld of %lld copies right, %d stopped\n", (long long)copies->drafted, (long long)copies->steps,
                  (long long)copies->right, (long long)copies->copies, stopped);
    assert_true(copies->right > 0 && copies->right < copies->copies);
    assert_true(stopped > 0 || copies->drafted == copies->steps + copies->right); /* a step draws one token beyond the copies that were right */
    assert_true((stopped > 0) == (stopping.kind != STOPPING_NEVER));
    draft_rig_close(&with);
    draft_rig_close(&without);
}

static void test_copies__a_cascade_drafts_what_the_model_drafts_alone(void **state)
{
    (void)state;
    compare((struct stopping){0});
}

static void test_copies__a_cascade_stops_where_the_model_stops(void **state)
{
    (void)state;
    compare((struct stopping){STOPPING_CONFIDENCE, 0.25});
    compare((struct stopping){STOPPING_BATCH, 0.1});
}

enum { FIRST = 3, REOPENED = 3 /* slots */ };

/* Another text in the slot of one that has ended. */
static void reopen(struct draft_rig *rig, int s, int round)
{
    const int32_t a = 9 + round, b = 30 + s, again[] = {a, b, 7, a, b, 7, a};
    const struct open_message open = {
        .request = 90, .line = 90, .prompt_count = 7, .tokens = again, .count = 7, .sampling = sampling_of(s), .draft_length = MOST};

    assert_true(mirror_open(&rig->mirror[s], &open));
}

/* The place behind the newest earlier occurrence of the text's last `same` tokens, 0: there is none. */
static int occurred(const int32_t *tokens, int length, int same)
{
    for (int place = length - 1; place >= same; place--)
        if (memcmp(tokens + place - same, tokens + length - same, (size_t)same * sizeof *tokens) == 0)
            return place;
    return 0;
}

/* Of the longest end that occurred, from `least` to six tokens. */
static int longest(const int32_t *tokens, int length, int least)
{
    int place = 0;

    for (int same = 6; same >= least && place == 0; same--)
        place = length > same ? occurred(tokens, length, same) : 0;
    return place;
}

static void assert_is_copy(const struct mirror *mirror, const struct draft_output *output, int place)
{
    assert_int_equal(output->count, mirror->drafted);
    assert_int_equal(mirror->drafted, mirror->wanted);
    for (int k = 0; k < output->count; k++) {
        assert_int_equal(output->token[k], mirror->tokens[place + k]);
        assert_int_equal(output->q[k].count, 0);
    }
}

/* Two with the same room, one of them with copies. */
static void open_beside(struct draft_rig *with, struct draft_rig *without, struct draft_copies copies)
{
    *with = *without = (struct draft_rig){.runs_ahead = 1};
    draft_rig_open(with, model_path, &BACKEND, 1, SLOTS, sampling_of);
    draft_rig_open(without, model_path, &BACKEND, 1, SLOTS, sampling_of);
    assert_int_equal(draft_copy(&with->draft, &copies, SLOTS, DRAFT_RIG_CONTEXT), STATUS_OK);
}

static void test_copies__come_first_where_enough_has_occurred(void **state)
{
    static struct draft_rig with, without;
    int copied = 0, drafted = 0;

    (void)state;
    open_beside(&with, &without, (struct draft_copies){.first = FIRST});
    for (int round = 0; round < ROUNDS; round++) {
        for (int s = 0; round % 3 == 2 && s < REOPENED; s++) {
            reopen(&with, s, round);
            reopen(&without, s, round);
        }
        draft_rig_propose(&with);
        draft_rig_propose(&without);
        for (int s = 0; s < SLOTS; s++) {
            struct mirror *mirror = &with.mirror[s];
            int place = longest(mirror->tokens, mirror->length, FIRST);

            if (place > 0)
                assert_is_copy(mirror, &with.output[s], place);
            else
                assert_same_draft(&with, &without, s);
            *(place > 0 ? &copied : &drafted) += 1;
            /* The same text on both sides: what `with` proposed, and a token that follows. */
            memcpy(without.output[s].token, with.output[s].token, sizeof without.output[s].token);
            without.mirror[s].drafted = mirror->drafted;
            commit(&with, s, round);
            commit(&without, s, round);
        }
    }
    print_message("%d proposals were copies, %d the model's\n", copied, drafted);
    assert_true(copied > SLOTS && drafted > SLOTS);
    draft_rig_close(&with);
    draft_rig_close(&without);
}

enum { AFTER = 2, LEAST = 2 };

/* The first drafts are the model's, and behind them stands what followed the longest end of the text with them. */
static void assert_ends_with_copies(const struct draft_rig *with, const struct draft_rig *without, int s, int place)
{
    const struct mirror *mirror = &with->mirror[s];
    const struct draft_output *output = &with->output[s];
    int32_t *end = mirror->tokens + mirror->length;

    assert_int_equal(output->count, place > 0 ? mirror->wanted : AFTER);
    assert_int_equal(mirror->drafted, output->count);
    assert_int_equal(mirror->is_stopped, place == 0);
    for (int k = 0; k < output->count; k++) {
        assert_int_equal(output->token[k], k < AFTER ? without->output[s].token[k] : mirror->tokens[place + k - AFTER]);
        assert_int_equal(end[k], output->token[k]);
        assert_int_equal(output->q[k].count, k < AFTER ? without->output[s].q[k].count : 0);
    }
}

static void test_copies__are_the_rest_behind_the_first_drafts(void **state)
{
    static struct draft_rig with, without;
    int copied = 0, ended = 0;

    (void)state;
    open_beside(&with, &without, (struct draft_copies){.after = AFTER});
    for (int round = 0; round < ROUNDS; round++) {
        for (int s = 0; s < SLOTS; s++)
            for (int k = 0; k < MOST; k++)
                with.output[s].q[k].count = 1; /* as of a draft before */
        draft_rig_propose(&with);
        draft_rig_propose(&without);
        for (int s = 0; s < SLOTS; s++) {
            struct mirror *mirror = &with.mirror[s];

            if (mirror->wanted <= AFTER) {
                assert_same_draft(&with, &without, s);
            } else {
                int place = longest(mirror->tokens, mirror->length + AFTER, LEAST);

                assert_ends_with_copies(&with, &without, s, place);
                *(place > 0 ? &copied : &ended) += 1;
            }
            memcpy(without.output[s].token, with.output[s].token, sizeof without.output[s].token);
            without.mirror[s].drafted = mirror->drafted;
            commit(&with, s, round);
            commit(&without, s, round);
        }
    }
    print_message("%d proposals ended with copies, %d without\n", copied, ended);
    assert_true(copied > 4 && ended > SLOTS);
    draft_rig_close(&with);
    draft_rig_close(&without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies__a_cascade_drafts_what_the_model_drafts_alone),
        cmocka_unit_test(test_copies__a_cascade_stops_where_the_model_stops),
        cmocka_unit_test(test_copies__come_first_where_enough_has_occurred),
        cmocka_unit_test(test_copies__are_the_rest_behind_the_first_drafts),
    };

    golden_path("tests/golden/models/qwen3", model_path);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
