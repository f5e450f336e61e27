/* A median and how well it is known. */
#include "common/base/median.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_median__is_in_the_middle(void **state)
{
    double values[] = {3, 1, 2, 10};

    (void)state;
    assert_true(median_of_sorted(values, 0) == 0);
    median_sort(values, 0);
    assert_true(values[0] == 3);
    median_sort(values, 3);
    assert_true(values[0] == 1 && median_of_sorted(values, 3) == 2);
    median_sort(values, 4);
    assert_true(median_of_sorted(values, 4) == 2.5 && median_of_sorted(values, 1) == 1);
}

/* Few values are as sure as their whole range says, one of nothing; more are surer by the root of their number, and those far out say nothing. */
static void test_median__its_error_is_that_of_the_places_around_it(void **state)
{
    double even[101];

    (void)state;
    for (int i = 0; i < 101; i++)
        even[i] = 1 + i;
    assert_true(median_error_of_sorted(even, 0) == 0);
    assert_true(median_error_of_sorted(even + 6, 1) == 7);
    assert_true(median_error_of_sorted(even, 2) == 0.5 && median_error_of_sorted(even, 5) == 2); /* the whole range */
    assert_true(median_error_of_sorted(even, 9) == 2);    /* (9 - 1 - 3) / 2: the third from either end */
    assert_true(median_error_of_sorted(even, 101) == 6); /* the 45th */
    even[0] = -1e9;
    even[100] = 1e9;
    assert_true(median_error_of_sorted(even, 101) == 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median__is_in_the_middle),
        cmocka_unit_test(test_median__its_error_is_that_of_the_places_around_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
