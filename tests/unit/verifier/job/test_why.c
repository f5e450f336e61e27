/* Why drafts do not pay, from what a run has measured. */
#include "verifier/job/why.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Steps of 300, 450 and 900 us over 1, 2 and 4 rows. */
static struct adaptive timed(void)
{
    struct adaptive adaptive = {0};

    adaptive_work_add_step(&adaptive.work, 1, 300);
    adaptive_work_add_step(&adaptive.work, 2, 450);
    adaptive_work_add_step(&adaptive.work, 4, 900);
    return adaptive;
}

/* Rounds of one draft and of three, whose waits are 60 us for each draft, and half of whose first drafts are accepted. */
static struct adaptive drafted(void)
{
    struct adaptive adaptive = timed();

    for (int i = 0; i < 64; i++) {
        int length = i % 2 == 0 ? 1 : 3;
        const struct adaptive_round round = {.sequences = 1, .rows = length + 1, .longest = length, .tokens = 1 + i / 2 % 2,
                                             .work_us = length == 1 ? 450 : 900, .wait_us = 60 * length};

        adaptive_add_round(&adaptive, &round);
        adaptive_add_verdict(&adaptive, length, i / 2 % 2);
    }
    return adaptive;
}

static void test_why__is_unknown_before_steps_are_timed(void **state)
{
    struct adaptive nothing = {0};
    struct adaptive_terms terms;

    (void)state;
    assert_int_equal(adaptive_explain(&nothing, 1, 1, &terms), 0);
}

static void test_why__terms_are_those_of_the_round(void **state)
{
    struct adaptive adaptive = drafted();
    struct adaptive_terms terms, best;

    (void)state;
    assert_int_equal(adaptive_explain(&adaptive, 1, 3, &terms), 1);
    assert_true(terms.length == 3 && terms.rows == 4 && terms.alone == 1 && terms.waited && terms.judged);
    assert_true(fabs(terms.v - 3) < 0.05 && fabs(terms.c - 0.2) < 0.01);
    assert_in_range(1000 * terms.alpha, 300, 450); /* half of 64 first ones; of 16 second ones, none */
    assert_true(fabs(adaptive_expected_tokens(terms.alpha, 3) - terms.speedup * (terms.v + 3 * terms.c)) < 1e-6);
    assert_true(fabs(terms.speedup - adaptive_rate(&adaptive, 1, 3) / adaptive_rate(&adaptive, 1, 0)) < 1e-9);
    assert_int_equal(adaptive_explain(&adaptive, 1, 0, &best), 1);
    assert_true(best.length == 1 && best.speedup > terms.speedup && fabs(best.v - 1.5) < 0.05);
    assert_int_equal(adaptive_explain(&adaptive, 2, 1, &terms), 1); /* four rows against two */
    assert_true(terms.rows == 4 && terms.alone == 2 && fabs(terms.v - 2) < 0.05);
}

static void test_why__is_one_sentence_with_the_numbers(void **state)
{
    const struct adaptive_terms terms = {
        .length = 2, .rows = 3, .alone = 1, .v = 2, .c = 0.25, .alpha = 0.5, .waited = 1, .judged = 1, .speedup = 0.7};
    struct adaptive_terms guessed = terms;
    char text[WHY_TEXT];

    (void)state;
    why_write(&terms, 0, text);
    assert_string_equal(text,
                        "with K = 2 a step of 3 rows takes 2.00 of the time of one of 1 (v), each draft with its wire 0.25 (c), and of tested drafts "
                        "50 % are expected to be accepted (alpha): 1.75 tokens in v + K c = 2.50 are 0.70x");
    why_write(&terms, 0.69, text);
    assert_null(strstr(text, "other programs"));
    why_write(&terms, 0.5, text);
    assert_non_null(strstr(text, "are 0.70x, and the rest went into waits or to other programs on these cores"));
    guessed.waited = guessed.judged = 0;
    why_write(&guessed, 0, text);
    assert_non_null(strstr(text, "(c, guessed)"));
    assert_non_null(strstr(text, "(alpha, guessed)"));
    assert_true(why_is_asked(0.93) && why_is_asked(1.01) && !why_is_asked(1.05));
}

static void test_why__what_nothing_was_tested_for_is_a_guess(void **state)
{
    struct adaptive adaptive = timed();
    struct adaptive_terms terms;

    (void)state;
    assert_int_equal(adaptive_explain(&adaptive, 1, 0, &terms), 1);
    assert_true(!terms.waited && !terms.judged && fabs(terms.alpha - 0.7) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_why__is_unknown_before_steps_are_timed),
        cmocka_unit_test(test_why__terms_are_those_of_the_round),
        cmocka_unit_test(test_why__is_one_sentence_with_the_numbers),
        cmocka_unit_test(test_why__what_nothing_was_tested_for_is_a_guess),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
