#include "common/base/math32.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void test_math32__exp_is_within_two_ulp(void **state)
{
    (void)state;
    for (float x = -86.9f; x < 87.9f; x += 0.0137f) {
        double exact = exp((double)x), got = (double)math32_exp(x);

        assert_true(fabs(got - exact) <= 2.5e-7 * exact);
    }
    assert_true(math32_exp(0.0f) == 1.0f);
    assert_true(math32_exp(-200.0f) == 0.0f);
}

static void test_math32__log_is_within_two_ulp(void **state)
{
    (void)state;
    for (float x = 1e-37f; x < 1e37f; x *= 1.00731f) {
        double exact = log((double)x), got = (double)math32_log(x);

        assert_true(fabs(got - exact) <= 2.5e-7 * fabs(exact) + 6e-8);
    }
    assert_true(math32_log(1.0f) == 0.0f);
    assert_true(math32_log(0.0f) == -88.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_math32__exp_is_within_two_ulp),
        cmocka_unit_test(test_math32__log_is_within_two_ulp),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
