/* A mean over texts with its error, against sums that are written out. */
#include "launch/bench/alpha/share.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_share__is_the_mean_over_all_tokens(void **state)
{
    struct share share = {0};

    (void)state;
    assert_true(isnan(share_mean(&share)) && isnan(share_error(&share)));
    share_add(&share, 3, 4);
    assert_true(share_mean(&share) == 0.75 && isnan(share_error(&share)));
    share_add(&share, 1, 12);
    share_add(&share, 5, 0); /* a text without tokens says nothing */
    assert_true(share_mean(&share) == 0.25);
    assert_int_equal(share.texts, 2);
}

/* Residuals are sum - mean * weight; the mean weight is what their spread is divided by. */
static void test_share__error_is_that_of_a_ratio(void **state)
{
    static const double sum[] = {3, 1, 6, 2}, weight[] = {4, 2, 10, 8};
    struct share share = {0};
    double mean = 12.0 / 24, squares = 0;

    (void)state;
    for (int i = 0; i < 4; i++) {
        share_add(&share, sum[i], weight[i]);
        squares += pow(sum[i] - mean * weight[i], 2);
    }
    assert_true(fabs(share_error(&share) - sqrt(squares / 3 / 4) / (24.0 / 4)) < 1e-12);
}

static void test_share__texts_that_agree_have_no_error(void **state)
{
    struct share share = {0};

    (void)state;
    for (int i = 1; i < 9; i++)
        share_add(&share, 0.7 * i, i);
    assert_true(fabs(share_mean(&share) - 0.7) < 1e-12 && share_error(&share) < 1e-7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share__is_the_mean_over_all_tokens),
        cmocka_unit_test(test_share__error_is_that_of_a_ratio),
        cmocka_unit_test(test_share__texts_that_agree_have_no_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
