/* What a drafter drafts for a text before that text is committed, against what it drafts for it afterwards: the same tokens from the same q, in any
 * company of other branches, sequences and rules. */
#include "common/base/digest.h"
#include "drafter/draft_model.h"
#include "drafter/run_ahead.h"
#include "tests/support/draft_rig.h"
#include "tests/support/golden.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifndef BACKEND
#define BACKEND backend_cpu
enum { MODELS = 3 };
#else
enum { MODELS = 1 }; /* files made of texts are on the host */
#endif

enum { SLOTS = 8, ROUNDS = 8, BRANCHES = 5 };

static char model_path[GOLDEN_PATH];
static const char *const models[] = {model_path, "ngram", "datastore"}; /* of draft_rig */
static const char *model;
static double warmth = 1; /* the less, the more a text repeats itself */

/* Greedy, coupled, rejection over all and truncated, one that penalties leave to the host (a branch's own text is what they count), and those whose
 * coins are keyed by the text in front. */
static struct sampling sampling_of(int slot)
{
    struct sampling sampling = sampling_default;

    sampling.seed = 9;
    sampling.temperature = slot == 0 ? 0.0 : warmth * (slot == 1 ? 1.0 : 0.8);
    sampling.accept = slot == 1 || slot == 2 ? ACCEPT_COUPLED : slot >= 6 ? ACCEPT_BLOCK : ACCEPT_REJECTION;
    if (slot == 2)
        sampling.top_k = 6;
    if (slot == 4 || slot == 7)
        sampling.top_p = 0.9;
    if (slot == 5)
        sampling.repetition_penalty = 1.3;
    return sampling;
}

/* One drafter that runs ahead, and one that does not, with the same sequences. */
struct sides {
    struct draft_rig ahead, behind;
    struct run_ahead running;
    int hits, begun; /* commits of a text that was drafted for, whole and in part */
    int stopped[3];  /* drafts that stopped before they were full: at once, later, and those of them that were a branch's */
};

/* The steps that one of them is timed by leave nothing behind. */
static void open_sides(struct sides *sides, struct stopping stopping, struct draft_copies copies)
{
    double us = 0;

    memset(sides, 0, sizeof *sides);
    sides->ahead.runs_ahead = 1;
    sides->behind.runs_ahead =
        model != model_path || copies.first > 0 || copies.after > 0; /* of flat rows q depends on how long the lists are that it is cut from */
    draft_rig_open(&sides->ahead, model, &BACKEND, 1, SLOTS, sampling_of);
    draft_rig_open(&sides->behind, model, &BACKEND, 1, SLOTS, sampling_of);
    assert_int_equal(draft_copy(&sides->behind.draft, &copies, SLOTS, DRAFT_RIG_CONTEXT), STATUS_OK);
    copies.cascade = copies.first > 0;
    assert_int_equal(draft_copy(&sides->ahead.draft, &copies, SLOTS, DRAFT_RIG_CONTEXT), STATUS_OK);
    if (model == model_path && copies.cascade)
        ((struct model_draft *)sides->ahead.draft.state)->copies->always = 1;
    draft_stop(&sides->ahead.draft, &stopping);
    draft_stop(&sides->behind.draft, &stopping);
    for (int rows = 1; rows <= SLOTS; rows += SLOTS - 1) {
        assert_int_equal(draft_time_step(&sides->ahead.draft, rows, &us), STATUS_OK);
        assert_true(us > 0);
    }
    assert_int_equal(run_ahead_open(&sides->running, &sides->ahead.draft, sides->ahead.mirror, SLOTS, 1, BRANCHES), STATUS_OK);
}

static void close_sides(struct sides *sides)
{
    run_ahead_close(&sides->running);
    draft_rig_close(&sides->ahead);
    draft_rig_close(&sides->behind);
}

static void compare(const struct draft_output *ahead, const struct draft_output *behind)
{
    for (int k = 0; k < behind->count; k++) {
        size_t count = (size_t)behind->q[k].count;

        assert_int_equal(ahead->token[k], behind->token[k]);
        assert_int_equal(ahead->q[k].count, behind->q[k].count);
        assert_memory_equal(ahead->q[k].id, behind->q[k].id, count * sizeof *behind->q[k].id);
        assert_memory_equal(ahead->q[k].weight, behind->q[k].weight, count * sizeof *behind->q[k].weight);
    }
}

/* Those that have no draft for their text yet propose, those that have part of one go on. */
static void propose(struct sides *sides)
{
    struct draft_output *outputs[SLOTS];
    struct mirror *batch[SLOTS];

    for (int begun = 1; begun >= 0; begun--) {
        int count = 0;

        for (int s = 0; s < SLOTS; s++)
            if (sides->ahead.mirror[s].wanted > 0 && (sides->ahead.mirror[s].drafted > 0) == begun) {
                batch[count] = &sides->ahead.mirror[s];
                outputs[count++] = run_ahead_output(&sides->running, &sides->ahead.mirror[s]);
            }
        if (count > 0)
            assert_int_equal(sides->ahead.draft.kind->propose(sides->ahead.draft.state, batch, count, outputs), STATUS_OK);
    }
    draft_rig_propose(&sides->behind);
    for (int s = 0; s < SLOTS; s++) {
        struct mirror *ahead = &sides->ahead.mirror[s], *behind = &sides->behind.mirror[s];

        int was = ahead->wanted;

        ahead->wanted = behind->wanted = 0;
        assert_in_range(ahead->drafted, !behind->is_stopped, sides->behind.output[s].count); /* fewer where a branch had as many as its draft */
        assert_true(!ahead->is_stopped || (behind->is_stopped && ahead->drafted == sides->behind.output[s].count));
        sides->stopped[ahead->drafted > 0] += ahead->is_stopped;
        sides->stopped[2] += ahead->is_stopped && was == 0;
        sides->behind.output[s].count = ahead->drafted;
        compare(run_ahead_output(&sides->running, ahead), &sides->behind.output[s]);
        assert_memory_equal(ahead->tokens + ahead->length, behind->tokens + behind->length, (size_t)ahead->drafted * sizeof *ahead->tokens);
    }
}

static void run(struct sides *sides, int steps)
{
    const struct draft_output *output;
    struct branch *branch;
    struct mirror *mirror;
    int did = 1;

    while (did && steps-- > 0) {
        assert_int_equal(run_ahead_step(&sides->running, &did), STATUS_OK);
        while ((branch = run_ahead_whole(&sides->running, &mirror, &output)) != NULL)
            branch->is_sent = 1;
    }
}

/* The text of one of the mirror's branches, or another one, is committed on both sides. */
static void commit(struct sides *sides, int s, int round)
{
    struct mirror *mirror = &sides->ahead.mirror[s];
    int branches = mirror->ahead.branches, which = (round + s) % (branches + 1), is_any = which < branches;
    const struct branch *branch = &mirror->ahead.branch[is_any ? which : 0];
    int accepted = is_any ? branch->after : round % (mirror->drafted + 1), had = is_any ? branch->count : 0;
    int32_t token = is_any ? mirror->tokens[branch->place] : (11 * s + round) % 128, tokens[MESSAGE_MAX_COMMIT];
    struct mirror_move move;

    memcpy(tokens, mirror->tokens + mirror->length, (size_t)accepted * sizeof *tokens);
    tokens[accepted] = token;
    const struct commit commit = {.request = mirror->request,
                                  .old_length = (uint32_t)mirror->length,
                                  .accepted = (uint32_t)accepted,
                                  .tokens = tokens,
                                  .count = accepted + 1,
                                  .keep = (uint32_t)(mirror->length + accepted),
                                  .digest = digest_tokens(mirror->digest, tokens, accepted + 1),
                                  .draft_length = 2 + (uint32_t)(round % 2)};

    run_ahead_learn(&sides->running, mirror, &commit);
    assert_true(mirror_commit(mirror, &commit, &move));
    if (move.count > 0)
        sides->ahead.draft.kind->copy(sides->ahead.draft.state, (struct cache_place){s, move.from}, (struct cache_place){s, move.to}, move.count);
    draft_rig_commit(&sides->behind, s, accepted, token, (int)commit.draft_length);
    sides->hits += had > 0 && mirror->wanted == 0;
    sides->begun += had > 0 && mirror->wanted > 0;
}

static void run_rounds(struct sides *sides)
{
    for (int round = 0; round < ROUNDS; round++) {
        propose(sides);
        run(sides, round % 4 == 3 ? 2 : INT_MAX); /* a message comes in between, or does not */
        for (int s = 0; s < SLOTS; s++)
            commit(sides, s, round);
    }
}

static void test_run_ahead__drafts_for_a_text_as_if_it_were_committed(void **state)
{
    static struct sides sides;

    (void)state;
    open_sides(&sides, (struct stopping){0}, (struct draft_copies){0});
    run_rounds(&sides);
    assert_true(sides.hits >= SLOTS && sides.begun > 0);
    close_sides(&sides);
}

/* For a text of which copies are to be proposed nothing is drafted before it is committed; one without goes on from what was. */
static void test_run_ahead__leaves_to_copies_what_is_theirs(void **state)
{
    static struct sides sides;

    (void)state;
    open_sides(&sides, (struct stopping){0}, (struct draft_copies){.first = 2});
    run_rounds(&sides);
    assert_true(sides.hits >= SLOTS);
    if (model == model_path)
        assert_true(((struct model_draft *)sides.ahead.draft.state)->copies->whole > 0);
    close_sides(&sides);
}

/* The rest of a branch is the copies that the rest of the draft would be. */
static void test_run_ahead__ends_with_the_copies_of_the_committed_text(void **state)
{
    static struct sides sides;

    (void)state;
    warmth = 0.2;
    open_sides(&sides, (struct stopping){0}, (struct draft_copies){.after = 1});
    run_rounds(&sides);
    warmth = 1;
    print_message("stopped at once %d, later %d, in a branch %d; hits %d\n", sides.stopped[0], sides.stopped[1], sides.stopped[2], sides.hits);
    assert_true(sides.hits > 0);
    if (model == model_path)
        print_message("%d drafts ended with copies\n", (int)((struct model_draft *)sides.ahead.draft.state)->copies->rests);
    if (model == model_path)
        assert_true(((struct model_draft *)sides.ahead.draft.state)->copies->rests > SLOTS && sides.stopped[1] > 0 && sides.stopped[2] > 0);
    close_sides(&sides);
}

/* The bounds lie amid what the distributions have. */
static void test_run_ahead__stops_where_a_draft_for_the_committed_text_does(void **state)
{
    const struct stopping stopping[] = {{STOPPING_CONFIDENCE, model == model_path ? 0.25 : 0.55},
                                        {STOPPING_ENTROPY, model == model_path ? 0.35 : 0.7},
                                        {STOPPING_BATCH, model == model_path ? 0.15 : 0.45}};
    static struct sides sides;

    (void)state;
    for (int i = 0; i < 3; i++) {
        open_sides(&sides, stopping[i], (struct draft_copies){0});
        run_rounds(&sides);
        print_message("stopped at once %d, later %d, in a branch %d; hits %d\n", sides.stopped[0], sides.stopped[1], sides.stopped[2], sides.hits);
        assert_true(sides.stopped[0] > 0 && sides.stopped[1] > 0 && sides.stopped[2] > 0 && sides.hits > 0);
        close_sides(&sides);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_ahead__drafts_for_a_text_as_if_it_were_committed),
        cmocka_unit_test(test_run_ahead__leaves_to_copies_what_is_theirs),
        cmocka_unit_test(test_run_ahead__ends_with_the_copies_of_the_committed_text),
        cmocka_unit_test(test_run_ahead__stops_where_a_draft_for_the_committed_text_does),
    };

    int failed = 0;

    golden_path("tests/golden/models/qwen3", model_path);
    for (int m = 0; m < MODELS; m++) {
        model = models[m];
        failed += cmocka_run_group_tests_name(model, tests, NULL, NULL);
    }
    return failed;
}
