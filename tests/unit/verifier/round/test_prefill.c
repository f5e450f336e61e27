/* How many rows of prompts a step takes, under costs that the test makes up: no clock. */
#include "verifier/round/prefill.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* needs those above */

enum { MOST = 512 };

/* A machine: a step over `runners` sequences takes alone_us(runners), each row of a prompt row_us more and place_us for each place before it, and now
 * and then all takes far longer. */
struct machine {
    double fixed_us, runner_us, row_us;
    int hiccup; /* every so many steps; 0: never */
    uint32_t noise; /* state of it; 0: none */
    double place_us;
};

static double alone_us(const struct machine *machine, int runners)
{
    return machine->fixed_us + runners * machine->runner_us;
}

/* In [-1, 1). */
static double noise(struct machine *machine)
{
    machine->noise = machine->noise * 1664525u + 1013904223u;
    return (double)(machine->noise >> 8) / (1 << 23) - 1;
}

/* Of rows from place `first` on. */
static double rows_us(const struct machine *machine, int first, int rows)
{
    return rows * (machine->row_us + machine->place_us * (first + 0.5 * (rows - 1)));
}

static double take_step(struct machine *machine, int runners, int first, int rows, int step)
{
    double us = alone_us(machine, runners) + rows_us(machine, first, rows);

    if (machine->noise != 0)
        us *= 1 + 0.3 * noise(machine);
    return machine->hiccup > 0 && step % machine->hiccup == 0 ? 50 * us : us;
}

/* So many prompts of `tokens` come in beside `runners` sequences, alike, for `steps` steps or until they are read. Returns how much longer the
 * steps became on the average, and how much of each prompt was read. */
static double growth_by(struct machine machine, struct prefill *prefill, int readers, int runners, int tokens, int steps, int *read)
{
    double with = 0;
    int step = 0;

    for (*read = 0; step < steps && *read < tokens;) {
        int left = readers * (tokens - *read), rows = prefill_rows(prefill, readers, runners, left < MOST ? left : MOST);

        assert_in_range(rows, 0, left);
        with += alone_us(&machine, runners) + rows_us(&machine, *read, rows);
        prefill_add_step(prefill, runners, rows, take_step(&machine, runners, *read, rows, ++step));
        *read += (rows + readers - 1) / readers;
    }
    return with / (step * alone_us(&machine, runners)) - 1;
}

static double growth(struct machine machine, int runners, int tokens, int steps, int *read)
{
    struct prefill prefill = {0};

    return growth_by(machine, &prefill, 1, runners, tokens, steps, read);
}

static void test_prefill__one_prompt_slows_others_by_less_than_a_quarter(void **state)
{
    static const struct machine machines[] = {
        {300, 60, 60, 0, 0, 0},      /* a small model on a CPU */
        {10000, 4000, 4000, 0, 0, 0}, /* rows that cost what they compute */
        {8000, 10, 5, 0, 0, 0},      /* a GPU, whose rows are nearly free */
        {300, 60, 250, 0, 0, 0},     /* prompts whose attention is long */
        {300, 60, 60, 0, 1, 0},      /* noise of 30 % */
        {300, 60, 60, 97, 0, 0},     /* hiccups */
    };
    int read;

    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        for (int runners = 1; runners <= 4; runners += 3) {
            double grown = growth(machines[i], runners, 1 << 20, 2000, &read);

            assert_true(grown > 0.1 && grown < 0.25);
        }
}

/* A row far on in a prompt costs up to forty times what the first one does. The first such prompt is not known to be one; the next comes after
 * a long one. What is left to a quarter is for keys that rows push out of the caches, which these machines have none of. */
static void test_prefill__one_prompt_whose_attention_grows_slows_others_by_less_than_a_quarter(void **state)
{
    static const struct machine machines[] = {
        {300, 60, 60, 0, 0, 0.02},    /* a small model on a CPU */
        {10000, 4000, 4000, 0, 0, 1},
        {8000, 10, 5, 0, 0, 0.005},   /* a GPU, on which a prompt is read in some tens of steps */
        {8000, 10, 1, 0, 0, 0.005},
        {300, 60, 60, 0, 1, 0.02},
        {8000, 10, 5, 0, 1, 0.005},
    };
    int read;

    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        for (int runners = 1; runners <= 4; runners += 3) {
            struct prefill prefill = {0};

            for (int prompt = 0; prompt < 3; prompt++) {
                assert_true(growth_by(machines[i], &prefill, 1, runners, 8192, 1 << 20, &read) < 0.18);
                assert_int_equal(read, 8192);
            }
        }
}

/* A lone row would read all keys of its prompt for itself. What a step earns beyond that is taken at once, and the end of a prompt is not waited for.
 */
static void test_prefill__rows_are_saved_up_until_they_share_their_keys(void **state)
{
    struct prefill prefill = {0};
    int taken = 0;

    (void)state;
    for (int step = 0; step < 500; step++) {
        int rows = prefill_rows(&prefill, 1, 3, MOST);

        assert_true(rows == 0 || rows >= 16);
        taken += rows;
        prefill_add_step(&prefill, 3, rows, 500 + 100 * rows);
    }
    assert_in_range(taken, 300, 500); /* 0.7 of a row in each step, and a burst */
    while (prefill_rows(&prefill, 1, 3, MOST) > 0 || prefill_rows(&prefill, 1, 3, 5) > 0)
        prefill_add_step(&prefill, 3, 16, 2100);
    for (int step = 0; prefill_rows(&prefill, 1, 3, 5) == 0; step++) {
        assert_in_range(step, 0, 40);
        prefill_add_step(&prefill, 3, 0, 500);
    }
    assert_int_equal(prefill_rows(&prefill, 1, 3, MOST), 0); /* as many as end a prompt, too few of a long one */
}

/* A machine that hangs for a moment in the first step with rows makes them look a hundred times as expensive as they are. */
static void test_prefill__a_first_measure_that_is_far_too_high_is_got_over(void **state)
{
    struct prefill prefill = {0};
    int taken = 0, steps = 0;

    (void)state;
    prefill_add_step(&prefill, 3, 0, 500);
    prefill_add_step(&prefill, 3, PREFILL_BURST, 500 + 100 * 100 * PREFILL_BURST);
    for (; taken < 2000; steps++) { /* 2,860 steps where nothing hangs */
        int rows = prefill_rows(&prefill, 1, 3, MOST);

        assert_in_range(steps, 0, 6000);
        taken += rows;
        prefill_add_step(&prefill, 3, rows, 500 + 100 * rows);
    }
}

/* Fewer than run: each has what one has. */
static void test_prefill__several_prompts_have_a_quarter_each(void **state)
{
    const struct machine machine = {300, 60, 60, 0, 0, 0};
    int read;

    (void)state;
    for (int readers = 2; readers <= 4; readers++) {
        struct prefill prefill = {0};
        double grown = growth_by(machine, &prefill, readers, readers + 1, 1 << 20, 2000, &read);

        assert_true(grown > 0.1 * readers && grown < 0.25 * readers);
    }
}

static void test_prefill__a_short_prompt_is_read_at_once(void **state)
{
    const struct machine machine = {300, 60, 60, 0, 0, 0};
    int read;

    (void)state;
    (void)growth(machine, 3, PREFILL_BURST, 1, &read);
    assert_int_equal(read, PREFILL_BURST);
}

static void test_prefill__without_runners_a_step_takes_all_it_may(void **state)
{
    struct prefill prefill = {0};

    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(prefill_rows(&prefill, 1, 0, MOST), MOST);
        prefill_add_step(&prefill, 0, MOST, 1000);
    }
    assert_int_equal(prefill_rows(&prefill, 0, 0, MOST), 0);
    assert_int_equal(prefill_rows(&prefill, 0, 2, MOST), 0);
}

static void test_prefill__reading_comes_first_where_more_wait_than_run(void **state)
{
    struct prefill prefill = {0};

    (void)state;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(prefill_rows(&prefill, 3, 1, MOST), MOST);
        prefill_add_step(&prefill, 1, MOST, 1000);
        assert_int_equal(prefill_rows(&prefill, 2, 2, MOST), MOST);
        prefill_add_step(&prefill, 2, MOST, 1000);
    }
    prefill_add_step(&prefill, 3, 0, 100);
    assert_in_range(prefill_rows(&prefill, 1, 3, MOST), 0, PREFILL_BURST); /* and that is not held against the last one for ever: */
    for (int i = 0, rows = 0; rows == 0; i++) {
        assert_true(i < 200);
        rows = prefill_rows(&prefill, 1, 3, MOST);
        prefill_add_step(&prefill, 3, rows, 100 + rows * 25);
    }
}

/* Four sequences of `tokens` each, of which one runs and three have prompts to be read: how long all that takes, reading as prefill would it of three
 * prompts, or of one only, which has a bound. */
static double job_us(const struct machine *machine, int bounded, int prompt, int tokens)
{
    int left[4] = {tokens, tokens, tokens, tokens}, unread[4] = {0, prompt, prompt, prompt};
    struct prefill prefill = {0};
    double all = 0;

    for (;;) {
        int readers = 0, runners = 0, rows, share[4], waiting[4];
        double us;

        for (int i = 0; i < 4; i++) {
            if (unread[i] > 0)
                waiting[readers++] = unread[i];
            runners += unread[i] == 0 && left[i] > 0;
        }
        if (readers + runners == 0)
            return all;
        rows = prefill_rows(&prefill, bounded && readers > 1 ? 1 : readers, runners, MOST);
        prefill_share(waiting, readers, rows, share);
        rows = 0;
        for (int i = 0, r = 0; i < 4; i++) {
            left[i] -= unread[i] == 0 && left[i] > 0;
            if (unread[i] > 0) {
                rows += share[r];
                unread[i] -= share[r++];
            }
        }
        us = (runners > 0 ? alone_us(machine, runners) : 0) + rows * machine->row_us;
        prefill_add_step(&prefill, runners, rows, us);
        all += us;
    }
}

/* What reading first costs who runs is gained: the job is done sooner, or at most a fiftieth later. */
static void test_prefill__reading_first_delays_no_job(void **state)
{
    static const struct machine machines[] = {{300, 60, 60, 0, 0, 0}, {10000, 400, 400, 0, 0, 0}, {8000, 10, 5, 0, 0, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        for (int tokens = 16; tokens <= 4096; tokens *= 4)
            for (int prompt = 128; prompt <= 8192; prompt *= 4)
                assert_true(job_us(&machines[i], 0, prompt, tokens) <= 1.02 * job_us(&machines[i], 1, prompt, tokens));
}

static void test_prefill__a_chunk_that_was_asked_for_is_kept_to(void **state)
{
    struct prefill prefill = {.chunk = 7};

    (void)state;
    for (int runners = 0; runners <= 4; runners++)
        for (int readers = 1; readers <= 4; readers++) {
            assert_int_equal(prefill_rows(&prefill, readers, runners, MOST), 7);
            assert_int_equal(prefill_rows(&prefill, readers, runners, 3), 3);
            prefill_add_step(&prefill, runners, 7, 100);
        }
}

static void test_prefill__a_short_prompt_does_not_wait_for_a_long_one(void **state)
{
    static const int left[] = {5000, 8, 300};
    int share[3];

    (void)state;
    prefill_share(left, 3, 64, share);
    assert_int_equal(share[1], 8);
    assert_int_equal(share[0], 32); /* nor the oldest for all that are shorter */
    assert_int_equal(share[2], 24);
    prefill_share(left, 3, 1, share);
    assert_int_equal(share[0], 1);
}

static void test_prefill__shares_are_what_there_is_and_no_more(void **state)
{
    static const int left[] = {3, 5, 2, 9};
    int share[4];

    (void)state;
    for (int count = 0; count <= 4; count++)
        for (int rows = 0; rows <= 24; rows++) {
            int all = 0, given = 0;

            prefill_share(left, count, rows, share);
            for (int i = 0; i < count; i++) {
                assert_in_range(share[i], 0, left[i]);
                all += left[i];
                given += share[i];
            }
            assert_int_equal(given, rows < all ? rows : all);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefill__one_prompt_slows_others_by_less_than_a_quarter),
        cmocka_unit_test(test_prefill__one_prompt_whose_attention_grows_slows_others_by_less_than_a_quarter),
        cmocka_unit_test(test_prefill__rows_are_saved_up_until_they_share_their_keys),
        cmocka_unit_test(test_prefill__a_first_measure_that_is_far_too_high_is_got_over),
        cmocka_unit_test(test_prefill__several_prompts_have_a_quarter_each),
        cmocka_unit_test(test_prefill__a_short_prompt_is_read_at_once),
        cmocka_unit_test(test_prefill__without_runners_a_step_takes_all_it_may),
        cmocka_unit_test(test_prefill__reading_comes_first_where_more_wait_than_run),
        cmocka_unit_test(test_prefill__reading_first_delays_no_job),
        cmocka_unit_test(test_prefill__a_chunk_that_was_asked_for_is_kept_to),
        cmocka_unit_test(test_prefill__a_short_prompt_does_not_wait_for_a_long_one),
        cmocka_unit_test(test_prefill__shares_are_what_there_is_and_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
