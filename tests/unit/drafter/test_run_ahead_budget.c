/* How many branches are drafted for in the time of a verify step, under times that the test makes up. */
#include "common/base/log.h"
#include "drafter/run_ahead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* needs those above */

enum { SLOTS = 4, CONTEXT = 256, LENGTH = 10 };

static enum status step(void *state, const struct draft_job *jobs, int count)
{
    (void)state;
    for (int i = 0; i < count; i++)
        if (jobs[i].branch == JOB_LOOK)
            jobs[i].mirror->cached++;
        else
            jobs[i].output->token[jobs[i].output->count++] = 100 + jobs[i].mirror->ahead.branch[jobs[i].branch].count++;
    return STATUS_OK;
}

static void guess(void *state, const struct mirror *mirror, int after, struct guesses *guesses)
{
    (void)state;
    (void)mirror;
    (void)after;
    *guesses = (struct guesses){.count = 2, .token = {77, 78}};
}

static const struct draft_kind kind = {.name = "running", .step = step, .guess = guess};

/* What was measured. Each row of a step is cheaper the more there are. */
struct times {
    double row_us, send_us, window_us;
};

static double step_us(const struct times *times, int rows)
{
    int size = 1;

    while (size < rows)
        size *= 2;
    return rows * times->row_us * (1 + 1.0 / size);
}

/* What branches of each of `drafts` drafts of K tokens cost, after the step that shows what follows the drafts. */
static double cost_us(const struct times *times, int drafts, int k, int branches)
{
    return step_us(times, drafts) + k * step_us(times, drafts * branches) + drafts * branches * times->send_us;
}

/* Branches of each of so many drafts of K tokens. `fixed`: --branches N. */
static int planned(const struct times *times, int drafts, int k, int fixed)
{
    const struct draft draft = {.kind = &kind};
    struct mirror mirrors[SLOTS];
    struct arena arena;
    struct run_ahead ahead;
    int did, all;

    assert_int_equal(arena_open(&arena, SLOTS * mirror_bytes(CONTEXT), "mirrors"), STATUS_OK);
    assert_int_equal(run_ahead_open(&ahead, &draft, mirrors, SLOTS, 1, fixed), STATUS_OK);
    for (int i = 0; i < SLOTS; i++) {
        mirror_init(&mirrors[i], &arena, i, CONTEXT);
        mirrors[i].open = i < drafts;
        mirrors[i].length = LENGTH;
        mirrors[i].drafted = k;
        mirrors[i].cached = LENGTH + k - 1;
    }
    if (times != NULL) {
        ahead.window_ns = 1e3 * times->window_us;
        ahead.send_ns = 1e3 * times->send_us;
        for (int size = 0; size < AHEAD_SIZES; size++)
            ahead.row_ns[size] = 1e3 * times->row_us * (1 + 1.0 / (1 << size));
    }
    assert_int_equal(run_ahead_step(&ahead, &did), STATUS_OK);
    assert_int_equal(did, drafts > 0);
    all = (int)ahead.planned;
    assert_int_equal(all % (drafts > 0 ? drafts : 1), 0);
    run_ahead_close(&ahead);
    arena_close(&arena);
    return drafts > 0 ? all / drafts : 0;
}

/* As many as are whole by three quarters of the time that a Commit takes to come, one in any case, and none that hardly ever comes. */
static void test_run_ahead_budget__branches_fill_the_time_of_a_verify_step(void **state)
{
    int whole = 0, cut = 0;

    (void)state;
    for (int drafts = 1; drafts <= SLOTS; drafts++)
        for (int k = 1; k <= 3; k++) {
            int probable = planned(&(struct times){1, 0, 1e9}, drafts, k, 0);

            assert_in_range(probable, 2, MIRROR_BRANCHES);
            for (double window_us = 50; window_us < 5000; window_us *= 1.3)
                for (double send_us = 0; send_us <= 20; send_us += 10) {
                    const struct times times = {20, send_us, window_us};
                    int branches = planned(&times, drafts, k, 0);

                    assert_true(branches == 1 || cost_us(&times, drafts, k, branches) <= 0.75 * window_us);
                    assert_true(branches == probable || cost_us(&times, drafts, k, branches + 1) > 0.75 * window_us);
                    whole += branches == probable;
                    cut += branches > 1 && branches < probable;
                }
        }
    assert_true(whole > 20 && cut > 20); /* the grid has both */
}

static void test_run_ahead_budget__before_a_time_is_known_there_is_one_branch(void **state)
{
    (void)state;
    for (int drafts = 0; drafts <= SLOTS; drafts++)
        assert_int_equal(planned(NULL, drafts, 3, 0), drafts > 0);
}

/* --branches N asks for no time. */
static void test_run_ahead_budget__as_many_branches_as_were_asked_for(void **state)
{
    (void)state;
    for (int fixed = 1; fixed <= 6; fixed++)
        assert_int_equal(planned(&(struct times){1000, 1000, 1}, 2, 3, fixed), fixed);
}

static enum status find_nothing(void *state, const struct draft_job *jobs, int count)
{
    (void)state;
    for (int i = 0; i < count; i++)
        if (jobs[i].branch >= 0)
            jobs[i].mirror->ahead.branch[jobs[i].branch].wanted = 0;
    return STATUS_OK;
}

/* A kind may have nothing to draft for a text: no proposal of nothing is sent before that text is committed, and it is not asked again. */
static void test_run_ahead_budget__what_has_no_drafts_is_not_sent(void **state)
{
    const struct draft_kind nothing = {.name = "nothing", .step = find_nothing, .guess = guess};
    const struct draft draft = {.kind = &nothing};
    const struct draft_output *output;
    struct mirror mirror, *whose;
    struct run_ahead ahead;
    struct arena arena;
    int did;

    (void)state;
    assert_int_equal(arena_open(&arena, mirror_bytes(CONTEXT), "a mirror"), STATUS_OK);
    assert_int_equal(run_ahead_open(&ahead, &draft, &mirror, 1, 1, 4), STATUS_OK);
    mirror_init(&mirror, &arena, 0, CONTEXT);
    mirror.open = 1;
    mirror.length = LENGTH;
    mirror.drafted = 3;
    for (int steps = 0; steps < 2; steps++) { /* those behind all drafts come with the first step */
        assert_int_equal(run_ahead_step(&ahead, &did), STATUS_OK);
        assert_int_equal(did, 1);
        assert_null(run_ahead_whole(&ahead, &whose, &output));
    }
    assert_int_equal(ahead.planned, 4);
    assert_int_equal(run_ahead_step(&ahead, &did), STATUS_OK);
    assert_int_equal(did, 0);
    run_ahead_close(&ahead);
    arena_close(&arena);
}

/* Each draft has a q. */
static enum status step_with_q(void *state, const struct draft_job *jobs, int count)
{
    step(state, jobs, count);
    for (int i = 0; i < count; i++)
        if (jobs[i].branch != JOB_LOOK)
            jobs[i].output->q[jobs[i].output->count - 1].count = 2;
    return STATUS_OK;
}

/* Drafts for all texts of a draft of 3, with a q or without, and counts those that are sent before one is committed. worth: as a Commit says it; 0:
 * none has come. least: the smallest probability of a text that is sent; most: the largest of one that is kept. */
static int sent_beforehand(int has_q, uint32_t worth, double *least, double *most)
{
    const struct draft_kind drafting = {.name = "drafting", .step = has_q ? step_with_q : step, .guess = guess};
    const struct commit commit = {.worth = worth};
    const struct draft draft = {.kind = &drafting};
    const struct draft_output *output;
    struct mirror mirror, *whose;
    struct branch *branch;
    struct run_ahead ahead;
    struct arena arena;
    int did, sent = 0;

    assert_int_equal(arena_open(&arena, mirror_bytes(CONTEXT), "a mirror"), STATUS_OK);
    assert_int_equal(run_ahead_open(&ahead, &draft, &mirror, 1, 1, 8), STATUS_OK);
    mirror_init(&mirror, &arena, 0, CONTEXT);
    run_ahead_learn(&ahead, &mirror, &commit);
    mirror.open = 1;
    mirror.length = LENGTH;
    mirror.drafted = 3;
    do
        assert_int_equal(run_ahead_step(&ahead, &did), STATUS_OK);
    while (did);
    while ((branch = run_ahead_whole(&ahead, &whose, &output)) != NULL) {
        branch->is_sent = 1;
        sent++;
    }
    assert_int_equal(mirror.ahead.branches, 8);
    *least = 1;
    *most = 0;
    for (int b = 0; b < mirror.ahead.branches; b++) {
        double share = outcomes_share(&ahead.outcomes, 3, mirror.ahead.branch[b].after, mirror.ahead.branch[b].guess);

        if (mirror.ahead.branch[b].is_sent)
            *least = share < *least ? share : *least;
        else
            *most = share > *most ? share : *most;
    }
    run_ahead_close(&ahead);
    arena_close(&arena);
    return sent;
}

/* A q costs the lead time even if its text does not come. */
static void test_run_ahead_budget__drafts_with_a_q_are_sent_beforehand_where_their_text_is_probable_enough(void **state)
{
    double least, most;
    int some = 0;

    (void)state;
    for (uint32_t worth = 1; worth <= MESSAGE_MOST_WORTH; worth++) {
        int sent = sent_beforehand(1, worth, &least, &most);

        assert_true(least >= worth / 1e3 && most < worth / 1e3);
        some += sent > 0 && sent < 8;
    }
    assert_in_range(some, 100, 900);
    assert_int_equal(sent_beforehand(1, 1, &least, &most), 8);
    assert_int_equal(sent_beforehand(1, MESSAGE_MOST_WORTH, &least, &most), 0);
    assert_int_equal(sent_beforehand(0, MESSAGE_MOST_WORTH, &least, &most), 8); /* point masses are a few bytes */
    assert_int_equal(sent_beforehand(1, 0, &least, &most), sent_beforehand(1, 300, &least, &most));
}

static int open_log(void **state)
{
    (void)state;
    log_init("test_run_ahead_budget", LOG_ERROR);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_ahead_budget__branches_fill_the_time_of_a_verify_step),
        cmocka_unit_test(test_run_ahead_budget__before_a_time_is_known_there_is_one_branch),
        cmocka_unit_test(test_run_ahead_budget__as_many_branches_as_were_asked_for),
        cmocka_unit_test(test_run_ahead_budget__what_has_no_drafts_is_not_sent),
        cmocka_unit_test(test_run_ahead_budget__drafts_with_a_q_are_sent_beforehand_where_their_text_is_probable_enough),
    };

    return cmocka_run_group_tests(tests, open_log, NULL);
}
