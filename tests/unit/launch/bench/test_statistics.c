#include "launch/bench/report/statistics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct statistics of(const double *values, int count)
{
    struct statistics statistics = {0};

    for (int i = 0; i < count; i++)
        assert_int_equal(statistics_add(&statistics, values[i]), STATUS_OK);
    statistics_sort(&statistics);
    return statistics;
}

static void test_statistics__quantiles_lie_between_neighbours(void **state)
{
    struct statistics s = of((double[]){4, 1, 3, 2}, 4);

    (void)state;
    assert_true(statistics_quantile(&s, 0) == 1);
    assert_true(statistics_quantile(&s, 0.5) == 2.5);
    assert_true(fabs(statistics_quantile(&s, 0.9) - 3.7) < 1e-12);
    assert_true(statistics_quantile(&s, 1) == 4);
    assert_true(statistics_mean(&s) == 2.5);
    assert_true(fabs(statistics_deviation(&s) - sqrt(1.25)) < 1e-12);
    statistics_release(&s);
}

static void test_statistics__spread_does_not_see_one_outlier(void **state)
{
    struct statistics s = of((double[]){10, 11, 9, 10, 1000}, 5);

    (void)state;
    assert_true(fabs(statistics_spread(&s) - 1.4826) < 1e-12); /* distances 0 0 1 1 990 */
    statistics_release(&s);
}

static void test_statistics__trimmed_leaves_a_fortieth_out_on_both_sides(void **state)
{
    struct statistics s = {0};

    (void)state;
    for (int i = 0; i < 80; i++)
        assert_int_equal(statistics_add(&s, i < 2 ? -1e9 : i < 78 ? 5 : 1e9), STATUS_OK);
    statistics_sort(&s);
    assert_true(statistics_trimmed(&s) == 5);
    statistics_release(&s);
}

static void test_statistics__nothing_is_zero(void **state)
{
    struct statistics s = {0};

    (void)state;
    statistics_sort(&s);
    assert_true(statistics_quantile(&s, 0.5) == 0 && statistics_mean(&s) == 0 && statistics_spread(&s) == 0 && statistics_trimmed(&s) == 0);
}

static void test_statistics__line_goes_through_its_points(void **state)
{
    struct line line = {0}, one = {0};

    (void)state;
    for (int x = 1; x <= 5; x++)
        line_add(&line, x, 7 + 3 * x, x);
    assert_true(fabs(line_slope(&line) - 3) < 1e-9);
    assert_true(fabs(line_at(&line, 10) - 37) < 1e-9);
    line_add(&one, 4, 6, 1);
    line_add(&one, 4, 8, 1);
    assert_true(line_at(&one, 9) == 7); /* one x has no slope */
    assert_true(line_at(&(struct line){0}, 3) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statistics__quantiles_lie_between_neighbours),
        cmocka_unit_test(test_statistics__spread_does_not_see_one_outlier),
        cmocka_unit_test(test_statistics__trimmed_leaves_a_fortieth_out_on_both_sides),
        cmocka_unit_test(test_statistics__nothing_is_zero),
        cmocka_unit_test(test_statistics__line_goes_through_its_points),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
