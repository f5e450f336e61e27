#include "common/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Random123's published known answer for philox4x32-10: counter and key all ones. */
static void test_rng__words_are_philox4x32_10(void **state)
{
    const struct rng_key key = {.seed = UINT64_MAX, .request = UINT32_MAX, .position = UINT32_MAX};
    uint32_t words[4];

    (void)state;
    rng_words(&key, (enum rng_purpose)UINT32_MAX, UINT32_MAX, words);
    assert_int_equal(words[0], 0x408f276d);
    assert_int_equal(words[1], 0x41c83b0e);
    assert_int_equal(words[2], 0xa20bc7c6);
    assert_int_equal(words[3], 0x6d5451fd);
}

static void test_rng__gumbel_matches_its_definition_in_double(void **state)
{
    (void)state;
    for (uint64_t word = 0; word < UINT32_MAX; word = word * 3 / 2 + 1) {
        double v = ((double)word + 0.5) * 0x1p-32;
        double exact = -log(-log1p(-v));

        assert_true(fabs((double)rng_gumbel_of((uint32_t)word) - exact) < 2e-6 * (1 + fabs(exact)));
        assert_true(rng_gumbel_of((uint32_t)word) <= RNG_GUMBEL_MAX);
    }
}

/* The mean of Gumbel noise is Euler's constant and its variance pi^2 / 6: 1e5 draws, six standard errors. */
static void test_rng__gumbel_has_its_moments(void **state)
{
    const struct rng_key key = {.seed = 7, .request = 3, .position = 11};
    double sum = 0, squares = 0;
    enum { DRAWS = 100000 };

    (void)state;
    for (uint32_t i = 0; i < DRAWS; i++) {
        double g = (double)rng_gumbel(&key, RNG_NOISE, i);

        sum += g;
        squares += g * g;
    }
    assert_true(fabs(sum / DRAWS - 0.57721566) < 6 * 1.2825 / sqrt(DRAWS));
    assert_true(fabs(squares / DRAWS - (1.644934 + 0.333178)) < 6 * 4.1 / sqrt(DRAWS));
}

static void test_rng__purposes_and_places_do_not_share_words(void **state)
{
    const struct rng_key key = {.seed = 1, .request = 2, .position = 3}, next = {.seed = 1, .request = 2, .position = 4};

    (void)state;
    assert_true(rng_uniform(&key, RNG_ACCEPT) != rng_uniform(&key, RNG_DRAFT));
    assert_true(rng_uniform(&key, RNG_ACCEPT) != rng_uniform(&next, RNG_ACCEPT));
    assert_true(rng_gumbel(&key, RNG_RESIDUAL, 5) != rng_gumbel(&key, RNG_NOISE, 5));
    assert_true(rng_coin(&key, RNG_ACCEPT, 0) == rng_uniform(&key, RNG_ACCEPT));
    assert_true(rng_coin(&key, RNG_ACCEPT, 1) != rng_uniform(&key, RNG_ACCEPT));
    assert_true(rng_coin16(&key, RNG_DRAFT, 1) != rng_coin16(&key, RNG_DRAFT, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rng__words_are_philox4x32_10),
        cmocka_unit_test(test_rng__gumbel_matches_its_definition_in_double),
        cmocka_unit_test(test_rng__gumbel_has_its_moments),
        cmocka_unit_test(test_rng__purposes_and_places_do_not_share_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
