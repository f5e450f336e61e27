/* How many passes a comparison makes, and what it says of their speeds. */
#include "verifier/job/comparison.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct comparison made(int passes, const double *solo, const double *drafted)
{
    struct comparison comparison = {0};

    for (int i = 0; i < passes; i++)
        comparison_add(&comparison, solo[i], drafted[i]);
    return comparison;
}

static void test_comparison__a_median_is_not_moved_by_one_bad_pass(void **state)
{
    const double speeds[] = {100, 40, 102, 98, 101};
    double spread;

    (void)state;
    assert_true(comparison_median(speeds, 5, &spread) == 100);
    assert_true(spread == 0.02);
    assert_int_equal(comparison_middle(speeds + 1, 4), 2);
    assert_int_equal(comparison_middle(speeds + 1, 3), 2);
    assert_int_equal(comparison_middle(speeds, 1), 0);
    assert_true(comparison_median(speeds, 2, &spread) == 70 && spread == 30.0 / 70);
    assert_true(comparison_median(speeds, 1, &spread) == 100 && spread == 0);
    assert_true(comparison_median(speeds, 0, &spread) == 0 && spread == 0);
}

/* Both of a pair are as slow as the machine is then: the speedup is that of pairs, not of medians. */
static void test_comparison__a_speedup_is_that_of_neighbours(void **state)
{
    const double solo[] = {100, 50, 80, 100, 90}, drafted[] = {150, 75, 120, 200, 135};
    struct comparison comparison = made(5, solo, drafted);
    double error;

    (void)state;
    assert_true(comparison_speedup(&comparison, &error) == 1.5);
    assert_true(error == (2.0 - 1.5) / 2 / 1.5); /* five: from the smallest to the largest */
    comparison = made(0, solo, drafted);
    assert_true(comparison_speedup(&comparison, &error) == 0 && error == 0);
}

/* Passes whose ratios lie evenly in 1 +- share, in an order of no meaning (the factor is prime to the number of passes). */
static struct comparison noisy(int passes, double share)
{
    struct comparison comparison = {0};

    for (int i = 0; i < passes; i++)
        comparison_add(&comparison, 100, 100 * (1 + share * (2.0 * (i * 37 % passes) / (passes - 1) - 1)));
    return comparison;
}

static int near_to(const struct comparison *comparison, double expected)
{
    double error;

    comparison_speedup(comparison, &error);
    return fabs(error - expected) < 1e-9;
}

static void test_comparison__passes_go_on_until_the_speedup_is_known(void **state)
{
    const double steady[] = {100, 101, 99}, chance[] = {100, 100.1, 150};
    struct comparison comparison = made(1, steady, steady);

    (void)state;
    assert_false(comparison_is_enough(&comparison, 1)); /* one pass knows of no spread */
    comparison = made(2, steady, steady);
    assert_false(comparison_is_enough(&comparison, 1));
    comparison = made(3, steady, steady);
    assert_true(comparison_is_enough(&comparison, 1) && comparison_is_settled(&comparison));
    comparison = made(3, steady, chance); /* two that are close together by chance */
    assert_false(comparison_is_enough(&comparison, 1));
    comparison = noisy(9, 0.1);
    assert_false(comparison_is_enough(&comparison, 0.9)); /* 10 % and a tenth of the time: there is more to know */
    comparison = noisy(100, 0.1); /* 5.5 places of 0.2 / 99 */
    assert_true(near_to(&comparison, 5.5 * 0.2 / 99));
    assert_false(comparison_is_enough(&comparison, 1));
    comparison = noisy(144, 0.1);
    assert_true(near_to(&comparison, 6.5 * 0.2 / 143));
    assert_true(comparison_is_enough(&comparison, 1) && comparison_is_settled(&comparison));
    comparison = noisy(200, 0.1);
    for (int i = 0; i < 10; i++)
        comparison.drafted[i] = 5000; /* another program, for a while */
    assert_true(comparison_is_settled(&comparison));
    comparison = noisy(COMPARISON_MOST + 1, 0.5);
    assert_int_equal(comparison.passes, COMPARISON_MOST);
    assert_true(comparison_is_enough(&comparison, 1)); /* bounded */
    assert_false(comparison_is_settled(&comparison)); /* and says so */
}

/* Who waits minutes for one pass does not wait for three. */
static void test_comparison__nobody_waits_for_long(void **state)
{
    const double steady[] = {100, 100};
    struct comparison comparison = made(1, steady, steady);

    (void)state;
    assert_true(comparison_is_enough(&comparison, 6));
    assert_false(comparison_is_settled(&comparison));
    assert_false(comparison_is_enough(&comparison, 4));
    comparison = made(2, steady, steady);
    assert_true(comparison_is_enough(&comparison, 8));
    comparison = noisy(99, 0.5);
    assert_true(comparison_is_enough(&comparison, 9.95) && !comparison_is_settled(&comparison));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comparison__a_median_is_not_moved_by_one_bad_pass),
        cmocka_unit_test(test_comparison__a_speedup_is_that_of_neighbours),
        cmocka_unit_test(test_comparison__passes_go_on_until_the_speedup_is_known),
        cmocka_unit_test(test_comparison__nobody_waits_for_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
