/* The figure and its error, by hand. */
#include "verifier/job/perplexity.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int is_near(double a, double b)
{
    return fabs(a - b) < 1e-12 * fmax(fabs(a), fabs(b));
}

/* The row before a window's middle predicts the token there, which is not counted, and the last row predicts the next window's. */
static void test_perplexity__less_than_half_of_a_window_counts(void **state)
{
    (void)state;
    assert_int_equal(perplexity_counted(512), 255);
    assert_int_equal(perplexity_counted(5), 2);
    assert_int_equal(perplexity_counted(4), 1);
}

static void test_perplexity__is_exp_of_the_mean(void **state)
{
    struct perplexity perplexity = {.window = 4};

    (void)state;
    perplexity_add(&perplexity, -1);
    assert_true(is_near(perplexity_value(&perplexity), exp(1)));
    assert_true(perplexity_error(&perplexity) == 0); /* one alone knows nothing of the spread */
    perplexity_add(&perplexity, -3);
    perplexity_add(&perplexity, -8);
    assert_int_equal(perplexity.tokens, 3);
    assert_true(is_near(perplexity_value(&perplexity), exp(4)));
    /* the mean of the squares is 74 / 3, its distance from 16 is 26 / 3, and the error of the mean the root of half of that */
    assert_true(is_near(perplexity_error(&perplexity), sqrt(26.0 / 3 / 2) * exp(4)));
}

static void test_perplexity__of_equal_tokens_is_certain(void **state)
{
    struct perplexity perplexity = {.window = 4};

    (void)state;
    for (int i = 0; i < 10; i++)
        perplexity_add(&perplexity, -0.1);
    assert_true(perplexity_error(&perplexity) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_perplexity__less_than_half_of_a_window_counts),
        cmocka_unit_test(test_perplexity__is_exp_of_the_mean),
        cmocka_unit_test(test_perplexity__of_equal_tokens_is_certain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
