/* Which cells of a sweep are repeated, from measurements that are made up: calm ones, noisy ones, and one that becomes known by repetition. */
#include "verifier/command/sweep_noise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { SOLO, CALM, SHAKY, WILD, OTHER_SOLO, OTHER, CELLS };

static const int baseline_of[CELLS] = {SOLO, SOLO, SOLO, SOLO, OTHER_SOLO, OTHER_SOLO};

/* The machine's pace changes from repetition to repetition, for all alike; beyond that a cell differs by so much, evenly, in an order of no
 * meaning. */
static double speed_of(int cell, int repetition)
{
    static const double share[CELLS] = {0, 0, 0.06, 0.5, 0, 0};

    return 100 * (1 + repetition % 3) * (1 + share[cell] * (repetition * 37 % 101 - 50) / 50);
}

static void measure(struct sweep_noise *noise, int cell, int repetition)
{
    assert_int_equal(sweep_noise_add(noise, cell, baseline_of[cell], repetition, speed_of(cell, repetition)), STATUS_OK);
}

static struct sweep_noise planned(double limit, int repetitions)
{
    struct sweep_noise noise = {.limit = limit};

    for (int r = 0; r < repetitions; r++)
        for (int i = 0; i < CELLS; i++)
            measure(&noise, i, r);
    return noise;
}

static void test_sweep_noise__calm_cells_are_measured_as_planned(void **state)
{
    struct sweep_noise noise = planned(0.5, 7);

    (void)state;
    for (int i = 0; i < CELLS; i++)
        assert_false(sweep_noise_wants(&noise, i));
    assert_false(sweep_noise_wants(&noise, CELLS)); /* nobody knows of it */
    assert_false(sweep_noise_goes_on(&noise, 7, 0, 100));
    assert_true(sweep_noise_error(&noise, CALM) == 0 && sweep_noise_error(&noise, SOLO) == 0);
    sweep_noise_release(&noise);
}

/* What slows the machine down slows both of a pair: it is the pairs that must agree. */
static void test_sweep_noise__noisy_cells_want_more_and_so_does_their_baseline(void **state)
{
    struct sweep_noise noise = planned(0.02, 7);

    (void)state;
    assert_true(sweep_noise_error(&noise, SHAKY) > 0.02 && sweep_noise_error(&noise, WILD) > sweep_noise_error(&noise, SHAKY));
    assert_true(sweep_noise_wants(&noise, SHAKY) && sweep_noise_wants(&noise, WILD) && sweep_noise_wants(&noise, SOLO));
    assert_false(sweep_noise_wants(&noise, CALM) || sweep_noise_wants(&noise, OTHER) || sweep_noise_wants(&noise, OTHER_SOLO));
    assert_true(sweep_noise_goes_on(&noise, 7, 1.9, 2));
    assert_false(sweep_noise_goes_on(&noise, 7, 2, 2)); /* the time is up */
    assert_false(sweep_noise_goes_on(&noise, SWEEP_NOISE_MOST, 0, 2));
    sweep_noise_release(&noise);
}

/* A cell without a pass of its baseline in the same repetition has learned nothing. */
static void test_sweep_noise__a_pass_counts_when_both_are_there(void **state)
{
    struct sweep_noise noise = {.limit = 0.02};
    double before = 0;

    (void)state;
    for (int r = 0; r < 7; r++) {
        measure(&noise, SHAKY, r);
        assert_true(sweep_noise_error(&noise, SHAKY) == before);
        measure(&noise, SOLO, r);
        before = sweep_noise_error(&noise, SHAKY);
        assert_true(r > 0 || before == 1); /* one pair says nothing of how sure it is */
    }
    sweep_noise_release(&noise);
}

/* As the sweep does: only what wants it is measured again, until all are known. One cell never is. */
static void test_sweep_noise__repetitions_end_when_the_error_holds(void **state)
{
    struct sweep_noise noise = planned(0.02, 7);
    int repetition = 7, again[CELLS] = {0};

    (void)state;
    noise.limit = 0.02;
    for (; sweep_noise_goes_on(&noise, repetition, repetition, 100); repetition++)
        for (int at = 0; at < CELLS; at++) {
            int cell = repetition % 2 == 0 ? at : CELLS - 1 - at;

            if (!sweep_noise_wants(&noise, cell))
                continue;
            measure(&noise, cell, repetition);
            again[cell]++;
        }
    assert_int_equal(repetition, 100); /* by the time, for WILD */
    assert_true(again[WILD] == 93 && again[SOLO] == 93);
    assert_true(again[SHAKY] > 0 && again[SHAKY] < 93 && sweep_noise_error(&noise, SHAKY) <= 0.02);
    assert_true(again[CALM] == 0 && again[OTHER] == 0 && again[OTHER_SOLO] == 0);
    noise.limit = 0.2;
    assert_false(sweep_noise_goes_on(&noise, repetition, 0, 100)); /* WILD is known to so much */
    sweep_noise_release(&noise);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep_noise__calm_cells_are_measured_as_planned),
        cmocka_unit_test(test_sweep_noise__noisy_cells_want_more_and_so_does_their_baseline),
        cmocka_unit_test(test_sweep_noise__a_pass_counts_when_both_are_there),
        cmocka_unit_test(test_sweep_noise__repetitions_end_when_the_error_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
