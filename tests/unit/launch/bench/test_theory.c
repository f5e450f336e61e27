/* The functions of the theory against the paper's own numbers (Leviathan et al. 2023, Table 1, Table 2, Corollary 3.9). */
#include "launch/bench/report/theory.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_theory__table_1_of_the_paper(void **state)
{
    static const struct {
        double alpha;
        int gamma;
        double operations, speed;
    } rows[] = {{0.6, 2, 1.53, 1.96}, {0.7, 3, 1.58, 2.53}, {0.8, 2, 1.23, 2.44}, {0.8, 5, 1.63, 3.69}, {0.9, 2, 1.11, 2.71}, {0.9, 10, 1.60, 6.86}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(fabs(theory_operations(rows[i].alpha, rows[i].gamma, 0) - rows[i].operations) < 0.00501);
        assert_true(fabs(theory_improvement(rows[i].alpha, rows[i].gamma, 0) - rows[i].speed) < 0.00501);
        assert_true(fabs(theory_tokens(rows[i].alpha, rows[i].gamma) - rows[i].speed) < 0.00501); /* at c = 0 they are one */
    }
}

static void test_theory__ends_of_equation_1(void **state)
{
    (void)state;
    for (int gamma = 0; gamma <= 12; gamma++) {
        assert_true(theory_tokens(0, gamma) == 1);
        assert_true(theory_tokens(1, gamma) == gamma + 1);
        assert_true(fabs(theory_tokens(0.7, gamma) - (1 - pow(0.7, gamma + 1)) / 0.3) < 1e-12);
    }
}

/* No gamma does better than the oracle, and one that knows that nothing or all is accepted drafts nothing or all. */
static void test_theory__an_oracle_is_never_beaten(void **state)
{
    (void)state;
    for (int a = 0; a < 10; a++)
        for (int c = 0; c <= 10; c++)
            for (int gamma = 0; gamma <= 32; gamma++)
                assert_true(theory_improvement(a / 10.0, gamma, c / 10.0) <= theory_oracle(a / 10.0, c / 10.0) + 1e-12);
    assert_true(fabs(theory_oracle(0.8, 0.05) - 1 / (1 - 0.8 + 0.04)) < 1e-12); /* 4 drafts a round, 5 tokens: 5 / (1 + 4 x 0.05) */
    assert_true(fabs(theory_oracle(0.8, 0.05) - 5 / 1.2) < 1e-12);
    assert_true(theory_oracle(0, 0.5) == 1);
}

/* The target's weights are read once for the tokens of a round. */
static void test_theory__weights_are_read_once_a_round(void **state)
{
    (void)state;
    assert_true(theory_reads(0, 0, 0.1) == 1);
    assert_true(fabs(theory_reads(0.5, 1, 0) - 1 / 1.5) < 1e-12);
    assert_true(fabs(theory_reads(1, 4, 0.1) - 1.4 / 5) < 1e-12);
}

/* If alpha > c there is a gamma that pays, and by at least (1 + alpha) / (1 + c). */
static void test_theory__corollary_3_9(void **state)
{
    (void)state;
    for (int a = 1; a < 20; a++)
        for (int c = 0; c < 20; c++) {
            double alpha = a / 20.0, cost = c / 20.0;
            int best = theory_best_gamma(alpha, cost, THEORY_MOST_GAMMA);

            assert_int_equal(alpha > cost, best > 0);
            if (best > 0)
                assert_true(theory_improvement(alpha, best, cost) >= (1 + alpha) / (1 + cost) - 1e-12);
        }
}

static void test_theory__best_gamma_is_the_best(void **state)
{
    (void)state;
    for (int a = 0; a <= 19; a++) {
        int best = theory_best_gamma(a / 20.0, 0.05, 40);

        for (int gamma = 0; gamma <= 40; gamma++)
            assert_true(theory_improvement(a / 20.0, gamma, 0.05) <= theory_improvement(a / 20.0, best, 0.05));
    }
    assert_int_equal(theory_best_gamma(0.8, 0.02, 40), 11); /* 4.656 / 1.22 = 3.817, before 3.809 and 3.811 of its neighbours */
    assert_int_equal(theory_best_gamma(1, 0, 40), 40);
}

static void test_theory__measured_terms_add_to_the_assumed(void **state)
{
    (void)state;
    for (int gamma = 0; gamma < 10; gamma++)
        assert_true(theory_improvement_measured(0.75, gamma, 0.1, 1, 0) == theory_improvement(0.75, gamma, 0.1));
    assert_true(fabs(theory_improvement_measured(0.75, 4, 0.1, 1.5, 0.2) - theory_tokens(0.75, 4) / 2.1) < 1e-12);
    assert_true(fabs(theory_operations(0.8, 5, 0.1) - 6.5 / theory_tokens(0.8, 5)) < 1e-12);
}

static void test_theory__alpha_comes_back_from_tokens(void **state)
{
    double rounds[5] = {3, 0, 10, 0, 7};

    (void)state;
    for (int a = 0; a <= 20; a++) {
        double alpha = a / 20.0;

        assert_true(fabs(theory_alpha(theory_tokens(alpha, 4), 4) - alpha) < 1e-9);
        assert_true(fabs(theory_alpha_mixed(rounds, 4, 3 + 10 * theory_tokens(alpha, 2) + 7 * theory_tokens(alpha, 4)) - alpha) < 1e-9);
    }
    assert_true(theory_alpha(0.5, 4) < 1e-9);
    assert_true(theory_alpha(9, 4) > 1 - 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_theory__table_1_of_the_paper),
        cmocka_unit_test(test_theory__ends_of_equation_1),
        cmocka_unit_test(test_theory__an_oracle_is_never_beaten),
        cmocka_unit_test(test_theory__weights_are_read_once_a_round),
        cmocka_unit_test(test_theory__corollary_3_9),
        cmocka_unit_test(test_theory__best_gamma_is_the_best),
        cmocka_unit_test(test_theory__measured_terms_add_to_the_assumed),
        cmocka_unit_test(test_theory__alpha_comes_back_from_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
