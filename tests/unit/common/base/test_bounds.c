/* The bounds against figures that are known, and against what fair coins do. */
#include "common/base/bounds.h"

#include "common/base/rng.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_bounds__g_solves_its_equation(void **state)
{
    static const int dfs[] = {1, 15, 80, 255, 4095};

    (void)state;
    for (int i = 0; i < 5; i++)
        for (double alarm = 1e-3; alarm > 1e-15; alarm /= 100) {
            double x = bounds_g(dfs[i], alarm) / 2;

            assert_true(x > dfs[i]);
            assert_true(fabs(-x + dfs[i] * (1 + log(x / dfs[i])) - log(alarm)) < 1e-6);
        }
    assert_int_equal((int)(bounds_g(255, 5.2e-12) + 0.5), 776);
    assert_int_equal((int)(bounds_g(15, 5.2e-12) + 0.5), 125);
    assert_true(bounds_g(0, 1e-9) == 0); /* one cell: nothing can differ */
}

static void test_bounds__noncentrality_lies_beyond_g(void **state)
{
    (void)state;
    for (int df = 3; df < 1000; df *= 2) {
        double lambda = bounds_noncentrality(df, 1e-12), g = bounds_g(df, 1e-12);

        assert_true(df + lambda > g);
        assert_true(fabs((df + lambda - g) / sqrt(2 * (df + 2 * lambda)) - 3.0902) < 1e-3);
    }
}

static void test_bounds__compare_is_written_out(void **state)
{
    const int64_t counts[] = {30, 50, 20, 0, 0, 1};
    const double law[] = {0.25, 0.5, 0.125, 0.125, 0, 0};
    struct bounds_fit fit = bounds_compare(counts, law, 6);
    double n = 101, g = 2 * (30 * log(30 / (n / 4)) + 50 * log(50 / (n / 2)) + 20 * log(20 / (n / 8)));

    (void)state;
    assert_int_equal(fit.impossible, 1);
    assert_int_equal(fit.df, 3);
    assert_true(fabs(fit.g - g) < 1e-9);
    assert_true(fabs(fit.cell - n * log(1 / (1 - 0.125))) < 1e-9); /* the cell that was never hit */
}

static void test_bounds__divergence_sees_what_is_missing(void **state)
{
    const double a[] = {0.5, 0.5, 0}, b[] = {0.25, 0.25, 0.5};

    (void)state;
    assert_true(fabs(bounds_divergence(a, b, 3) - log(2)) < 1e-12);
    assert_true(bounds_divergence(a, a, 3) == 0);
    assert_true(isinf(bounds_divergence(b, a, 3)));
}

static void test_bounds__samples_take_the_better_way(void **state)
{
    const double law[] = {0.5, 0.5, 0}, shifted[] = {0.4, 0.6, 0}, impossible[] = {0.495, 0.495, 0.01}, both[] = {0.1, 0.899, 0.001};
    double kl = 0.4 * log(0.8) + 0.6 * log(1.2);

    (void)state;
    assert_true(fabs(bounds_samples(shifted, law, 3, 1e-12) - bounds_noncentrality(1, 1e-12) / kl) < 1e-6);
    assert_true(fabs(bounds_samples(impossible, law, 3, 1e-12) - 200 * log(1000)) < 1e-6);
    assert_true(bounds_samples(both, law, 3, 1e-12) < 2000 * log(1000)); /* by G */
    assert_true(isinf(bounds_samples(law, law, 3, 1e-12)));
}

/* A bound with alarm 0.02 fails seldom, not never: in 3,000 tries at most 60 times. The seed is fixed. */
static void test_bounds__coins_stay_inside(void **state)
{
    int mean_alarms = 0, sum_alarms = 0;

    (void)state;
    for (uint32_t t = 0; t < 3000; t++) {
        double sum = 0;

        for (uint32_t i = 0; i < 400; i++) {
            const struct rng_key key = {.seed = 11, .request = t, .position = i};

            sum += rng_uniform(&key, RNG_ACCEPT) < 0.3;
        }
        mean_alarms += fabs(sum / 400 - 0.3) > bounds_mean(1, 400, 0.02);
        sum_alarms += fabs(sum - 120) > bounds_martingale(400 * 0.21, 80, 0.02);
    }
    assert_true(mean_alarms <= 60 && sum_alarms <= 60);
    assert_true(sum_alarms > 0); /* and it is not idle */
}

enum { ROLLS = 9, SIDES = 3 };
static const double die[SIDES] = {0.5, 0.3, 0.2};

struct way {
    double g, p;
};

/* All ways that ROLLS rolls of the die may fall, with what they give. Returns how many there are. */
static int fill_ways(struct way *ways)
{
    int count = 0;

    for (int a = 0; a <= ROLLS; a++)
        for (int b = 0; a + b <= ROLLS; b++) {
            const int64_t fell[SIDES] = {a, b, ROLLS - a - b};
            double log_p = lgamma(ROLLS + 1);

            for (int i = 0; i < SIDES; i++)
                log_p += (double)fell[i] * log(die[i]) - lgamma((double)fell[i] + 1);
            ways[count++] = (struct way){.g = bounds_compare(fell, die, SIDES).g, .p = exp(log_p)};
        }
    return count;
}

/* P(G >= g), for every g that one table or the sum of two can have, is at most the bound: exact, by enumeration. */
static void test_bounds__log_p_is_above_the_exact_tail(void **state)
{
    struct way ways[100];
    int count = fill_ways(ways), bitten = 0;

    (void)state;
    for (int at = 0; at < count; at++) {
        double tail = 0, sum_tail = 0, g = ways[at].g;

        for (int i = 0; i < count; i++) {
            tail += ways[i].g >= g ? ways[i].p : 0;
            for (int j = 0; j < count; j++)
                sum_tail += ways[i].g + ways[j].g >= g ? ways[i].p * ways[j].p : 0;
        }
        assert_true(tail <= exp(bounds_log_p(g, SIDES - 1)) * (1 + 1e-9));
        assert_true(sum_tail <= exp(bounds_log_p(g, 2 * (SIDES - 1))) * (1 + 1e-9));
        bitten += bounds_log_p(g, SIDES - 1) < log(0.1);
    }
    assert_true(bitten > 3); /* the bound says something for some of them */
}

enum { CELLS = 16, TRIES = 1000, DRAWS = 1500 };

/* A law that is off by the given total variation in the way that is hardest to see: half of the cells a little more, half a little less. */
static int is_found(uint32_t number, double variation, double alarm)
{
    double law[CELLS];
    int64_t counts[CELLS] = {0};

    for (int i = 0; i < CELLS; i++)
        law[i] = 1.0 / CELLS;
    for (uint32_t i = 0; i < DRAWS; i++) {
        const struct rng_key key = {.seed = 12, .request = number, .position = i};
        double u = rng_uniform(&key, RNG_ACCEPT);
        int upper = u < 0.5 + variation, half = CELLS / 2;

        u = upper ? u / (0.5 + variation) : (u - 0.5 - variation) / (0.5 - variation);
        counts[(upper ? 0 : half) + (int)(u * half)]++;
    }
    return bounds_compare(counts, law, CELLS).g > bounds_g(CELLS - 1, alarm);
}

/* The stated power is 0.999: of 1,000 tries 1 is missed on average, and more than 8 with probability 1e-6. At a third of the variation hardly
 * any are found, so the statement is not idle. The seed is fixed. */
static void test_bounds__variation_is_found(void **state)
{
    double alarm = 1e-6, variation = bounds_variation(CELLS - 1, alarm, DRAWS);
    int missed = 0, found = 0;

    (void)state;
    for (uint32_t t = 0; t < TRIES; t++) {
        missed += !is_found(t, variation, alarm);
        found += is_found(t, variation / 3, alarm);
    }
    assert_true(missed <= 8);
    assert_true(found <= TRIES / 100);
}

/* The same for one share. */
static void test_bounds__mean_found_is_found(void **state)
{
    double alarm = 1e-6, off = bounds_mean_found(1, DRAWS, alarm);
    int missed = 0;

    (void)state;
    for (uint32_t t = 0; t < TRIES; t++) {
        int sum = 0;

        for (uint32_t i = 0; i < DRAWS; i++) {
            const struct rng_key key = {.seed = 13, .request = t, .position = i};

            sum += rng_uniform(&key, RNG_ACCEPT) < 0.5 + off;
        }
        missed += (double)sum / DRAWS - 0.5 <= bounds_mean(1, DRAWS, alarm);
    }
    assert_true(missed <= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds__g_solves_its_equation),
        cmocka_unit_test(test_bounds__noncentrality_lies_beyond_g),
        cmocka_unit_test(test_bounds__compare_is_written_out),
        cmocka_unit_test(test_bounds__divergence_sees_what_is_missing),
        cmocka_unit_test(test_bounds__samples_take_the_better_way),
        cmocka_unit_test(test_bounds__coins_stay_inside),
        cmocka_unit_test(test_bounds__log_p_is_above_the_exact_tail),
        cmocka_unit_test(test_bounds__variation_is_found),
        cmocka_unit_test(test_bounds__mean_found_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
