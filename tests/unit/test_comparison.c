/* How many passes a comparison makes, and what it says of their speeds. */
#include "verifier/comparison.h"

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
    assert_true(comparison_median(speeds, 2, &spread) == 70 && spread == 30.0 / 70);
    assert_true(comparison_median(speeds, 1, &spread) == 100 && spread == 0);
    assert_true(comparison_median(speeds, 0, &spread) == 0 && spread == 0);
}

static void test_comparison__passes_go_on_until_both_are_known(void **state)
{
    const double steady[] = {100, 101, 99, 100, 100, 100, 100, 100, 100}, wild[] = {100, 150, 50, 100, 150, 50, 100, 150, 50};
    struct comparison comparison = made(1, steady, steady);

    (void)state;
    assert_false(comparison_is_enough(&comparison, 1)); /* one pass knows of no spread */
    comparison = made(2, steady, steady);
    assert_false(comparison_is_enough(&comparison, 1));
    comparison = made(3, steady, steady);
    assert_true(comparison_is_enough(&comparison, 1));
    comparison = made(3, steady, wild);
    assert_false(comparison_is_enough(&comparison, 1));
    comparison = made(3, wild, steady);
    assert_false(comparison_is_enough(&comparison, 1));
    comparison = made(COMPARISON_MOST, wild, wild);
    assert_true(comparison_is_enough(&comparison, 1)); /* bounded */
}

/* Who waits minutes for one pass does not wait for three. */
static void test_comparison__nobody_waits_for_long(void **state)
{
    const double steady[] = {100, 100};
    struct comparison comparison = made(1, steady, steady);

    (void)state;
    assert_true(comparison_is_enough(&comparison, 6));
    assert_false(comparison_is_enough(&comparison, 4));
    comparison = made(2, steady, steady);
    assert_true(comparison_is_enough(&comparison, 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comparison__a_median_is_not_moved_by_one_bad_pass),
        cmocka_unit_test(test_comparison__passes_go_on_until_both_are_known),
        cmocka_unit_test(test_comparison__nobody_waits_for_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
