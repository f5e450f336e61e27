#include "verifier/round/figures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_figures__alpha_is_the_share_of_judged_drafts(void **state)
{
    const struct figures figures = {
        .tested = {10, 6, 2}, .accepted_at = {6, 2, 1}, .drafted = 30, .accepted = 9, .rounds = 40, .drafted_rounds = 10, .answered_rounds = 20};

    (void)state;
    assert_true(figures_alpha(&figures) == 0.5); /* what came after a rejection was drafted but not tested */
    assert_true(figures_kept(&figures) == 0.3);
    assert_true(figures_drafted_rounds(&figures) == 0.25);
    assert_true(figures_drafts_per_proposal(&figures) == 1.5); /* half of them were empty */
}

static void test_figures__means_are_over_rounds_and_time(void **state)
{
    const struct figures figures = {.tokens = 300, .rounds = 100, .wall_ns = 2000000000};

    (void)state;
    assert_true(figures_mean_accepted_length(&figures) == 3.0);
    assert_true(figures_tokens_per_second(&figures) == 150.0);
}

/* Else the phases of a job that seldom drafts would be longer than its rounds. */
static void test_figures__rounds_without_a_proposal_count_in_the_time_of_drafting(void **state)
{
    const struct figures figures = {.rounds = 8};
    struct span_sum drafting = {0};

    (void)state;
    clock_add(&drafting, 12000);
    clock_add(&drafting, 4000);
    assert_true(figures_us_per_round(&figures, &drafting) == 2.0);
}

static void test_figures__nothing_gives_zero(void **state)
{
    const struct figures figures = {0};
    const struct span_sum drafting = {.ns = 1000, .count = 1};

    (void)state;
    assert_true(figures_alpha(&figures) == 0.0);
    assert_true(figures_kept(&figures) == 0.0 && figures_drafted_rounds(&figures) == 0.0);
    assert_true(figures_mean_accepted_length(&figures) == 0.0);
    assert_true(figures_tokens_per_second(&figures) == 0.0 && figures_drafts_per_proposal(&figures) == 0.0);
    assert_true(figures_us_per_round(&figures, &drafting) == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures__alpha_is_the_share_of_judged_drafts),
        cmocka_unit_test(test_figures__means_are_over_rounds_and_time),
        cmocka_unit_test(test_figures__rounds_without_a_proposal_count_in_the_time_of_drafting),
        cmocka_unit_test(test_figures__nothing_gives_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
