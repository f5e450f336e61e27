/* What a draft model drafts in fewer steps, over copies of what its text had before, against what it drafts one token a step: the same tokens from
 * the same q, whatever became of the drafts before, and beside drafts that stop early. */
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

/* Greedy, coupled, rejection, the same truncated and with penalties, which count the text up to each row, and block, whose coins belong to the text.
 */
static struct sampling sampling_of(int slot)
{
    static const int rules[SLOTS] = {ACCEPT_REJECTION, ACCEPT_COUPLED, ACCEPT_REJECTION, ACCEPT_REJECTION, ACCEPT_REJECTION, ACCEPT_BLOCK};
    struct sampling sampling = sampling_default;

    sampling.seed = 5;
    sampling.temperature = slot == 0 ? 0.0 : 0.3;
    sampling.accept = rules[slot];
    if (slot == 3)
        sampling.top_k = 6;
    if (slot == 4)
        sampling.repetition_penalty = 1.1;
    return sampling;
}

static void assert_same(const struct draft_rig *with, const struct draft_rig *without)
{
    for (int s = 0; s < SLOTS; s++) {
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
    struct model_cascade *cascade;
    int stopped = 0;

    with = without = (struct draft_rig){.runs_ahead = 0};
    with.runs_ahead = 1;
    draft_rig_open(&with, model_path, &BACKEND, 1, SLOTS, sampling_of);
    draft_rig_open(&without, model_path, &BACKEND, 1, SLOTS, sampling_of);
    assert_int_equal(draft_cascade(&with.draft, SLOTS, DRAFT_RIG_CONTEXT), STATUS_OK);
    cascade = ((struct model_draft *)with.draft.state)->cascade;
    cascade->always = 1; /* else what a step takes would say whether there are copies */
    draft_stop(&with.draft, &stopping);
    draft_stop(&without.draft, &stopping);
    for (int round = 0; round < ROUNDS; round++) {
        draft_rig_propose(&with);
        draft_rig_propose(&without);
        assert_same(&with, &without);
        for (int s = 0; s < SLOTS; s++) {
            stopped += with.mirror[s].is_stopped;
            commit(&with, s, round);
            commit(&without, s, round);
        }
    }
    print_message("%lld tokens in %lld steps, %lld of %lld copies right, %d stopped\n", (long long)cascade->drafted, (long long)cascade->steps,
                  (long long)cascade->right, (long long)cascade->copies, stopped);
    assert_true(cascade->right > 0 && cascade->right < cascade->copies);
    assert_true(stopped > 0 || cascade->drafted == cascade->steps + cascade->right); /* a step draws one token beyond the copies that were right */
    assert_true((stopped > 0) == (stopping.kind != STOPPING_NEVER));
    draft_rig_close(&with);
    draft_rig_close(&without);
}

static void test_cascade__drafts_what_the_model_drafts_alone(void **state)
{
    (void)state;
    compare((struct stopping){0});
}

static void test_cascade__stops_where_the_model_stops(void **state)
{
    (void)state;
    compare((struct stopping){STOPPING_CONFIDENCE, 0.25});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cascade__drafts_what_the_model_drafts_alone),
        cmocka_unit_test(test_cascade__stops_where_the_model_stops),
    };

    golden_path("tests/golden/models/qwen3", model_path);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
