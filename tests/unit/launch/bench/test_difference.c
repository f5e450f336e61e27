#include "launch/dev/step/difference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { VOCAB = 4 };

/* p = 1/8, 1/8, 1/4, 1/2 */
static const float exact[VOCAB] = {0, 0, 0.693147181f, 1.38629436f};

static void test_difference__a_shift_of_a_row_is_none(void **state)
{
    struct difference difference = {0};
    float shifted[VOCAB];

    (void)state;
    for (int i = 0; i < VOCAB; i++)
        shifted[i] = exact[i] - 3;
    difference_add(&difference, exact, shifted, VOCAB);
    assert_int_equal(difference.positions, 1);
    assert_int_equal(difference.same, 1);
    assert_true(difference.largest < 1e-6);
    assert_true(fabs(difference.kl) < 1e-6);
}

/* p is 0.25 log 2 nats from the uniform law, and as far the other way round; a steep law tells the ways apart. */
static void test_difference__kl_is_from_float32(void **state)
{
    struct difference difference = {0};
    static const float uniform[VOCAB] = {5, 5, 5, 5}, steep[VOCAB] = {0, 0, 0, 2.7725887f}; /* 1/19, 1/19, 1/19, 16/19 */
    const double steep_kl = 0.25 * log(19.0 / 8) + 0.25 * log(19.0 / 4) + 0.5 * log(19.0 / 32);

    (void)state;
    difference_add(&difference, exact, uniform, VOCAB);
    assert_true(fabs(difference.kl - 0.25 * log(2)) < 1e-6);
    assert_int_equal(difference.same, 0);
    difference_add(&difference, exact, steep, VOCAB);
    assert_true(fabs(difference.kl - 0.25 * log(2) - steep_kl) < 1e-6);
    assert_int_equal(difference.same, 1);
}

static void test_difference__largest_is_of_all_positions_and_either_sign(void **state)
{
    struct difference difference = {0};
    static const float below[VOCAB] = {-4, 0, 0.693147181f, 1.38629436f}, near[VOCAB] = {0.1f, 0, 0.693147181f, 1.38629436f};

    (void)state;
    difference_add(&difference, exact, below, VOCAB); /* mean -1: -3, 1, 1, 1 */
    difference_add(&difference, exact, near, VOCAB);
    assert_true(fabs(difference.largest - 3) < 1e-6);
    assert_int_equal(difference.positions, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_difference__a_shift_of_a_row_is_none),
        cmocka_unit_test(test_difference__kl_is_from_float32),
        cmocka_unit_test(test_difference__largest_is_of_all_positions_and_either_sign),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
