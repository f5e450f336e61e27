/* Which texts a drafter drafts for beforehand, by what came of the drafts before. */
#include "drafter/outcomes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { DRAFTED = 4, ALL = (DRAFTED + 1) * MIRROR_GUESSES };

static const int many[DRAFTED + 1] = {MIRROR_GUESSES, MIRROR_GUESSES, MIRROR_GUESSES, MIRROR_GUESSES, MIRROR_GUESSES};

static void add_often(struct outcomes *outcomes, int times, int accepted, int guess)
{
    for (int i = 0; i < times; i++)
        outcomes_add(outcomes, DRAFTED, accepted, guess);
}

static void test_outcomes__shares_are_a_distribution(void **state)
{
    struct outcomes outcomes = {0};

    (void)state;
    for (int round = 0; round < 50; round++) {
        double sum = 0;

        for (int after = 0; after <= DRAFTED; after++)
            for (int guess = 0; guess <= MIRROR_GUESSES; guess++) {
                double share = outcomes_share(&outcomes, DRAFTED, after, guess);

                assert_true(share > 0);
                sum += share;
            }
        assert_true(fabs(sum - 1) < 1e-9);
        outcomes_add(&outcomes, DRAFTED, round % (DRAFTED + 1), round % 11 - 1 > MIRROR_GUESSES ? -1 : round % 11 - 1);
    }
}

static void test_outcomes__the_most_probable_come_first(void **state)
{
    struct outcome_choice choice[ALL];
    struct outcomes outcomes = {0};

    (void)state;
    for (int warm = 0; warm <= 1; warm++) {
        double before = 1;
        int next[DRAFTED + 1] = {0};

        assert_int_equal(outcomes_choose(&outcomes, DRAFTED, many, ALL, 0, choice), ALL);
        for (int i = 0; i < ALL; i++) {
            double share = outcomes_share(&outcomes, DRAFTED, choice[i].after, choice[i].guess);

            assert_int_equal(choice[i].guess, next[choice[i].after]++);
            assert_true(share <= before);
            before = share;
        }
        for (int i = 0; i < 40; i++) /* such that later guesses stay less probable */
            add_often(&outcomes, 1, i % 5, i % 7 == 0);
    }
}

static void test_outcomes__what_came_often_is_expected(void **state)
{
    struct outcome_choice choice;

    (void)state;
    for (int accepted = 0; accepted <= DRAFTED; accepted++) {
        struct outcomes outcomes = {0};

        add_often(&outcomes, 1000, accepted, 0);
        assert_int_equal(outcomes_choose(&outcomes, DRAFTED, many, 1, 0, &choice), 1);
        assert_int_equal(choice.after, accepted);
        assert_true(outcomes_share(&outcomes, DRAFTED, accepted, 0) > 0.6);
        add_often(&outcomes, 100, (accepted + 1) % (DRAFTED + 1), 0); /* the text has changed */
        outcomes_choose(&outcomes, DRAFTED, many, 1, 0, &choice);
        assert_int_equal(choice.after, (accepted + 1) % (DRAFTED + 1));
    }
}

/* The third guess may come more often than the first; that it is better is what the draft model says. */
static void test_outcomes__no_guess_comes_before_a_better_one(void **state)
{
    struct outcome_choice choice[3];
    struct outcomes outcomes = {0};

    (void)state;
    add_often(&outcomes, 100, 1, 2);
    assert_int_equal(outcomes_choose(&outcomes, DRAFTED, many, 3, 0, choice), 3);
    for (int i = 0, next[DRAFTED + 1] = {0}; i < 3; i++)
        assert_int_equal(choice[i].guess, next[choice[i].after]++);
}

static void test_outcomes__there_are_no_more_than_there_are_guesses(void **state)
{
    static const int few[DRAFTED + 1] = {0, 1, 0, 2, 0};
    struct outcome_choice choice[ALL];
    struct outcomes outcomes = {0};

    (void)state;
    assert_int_equal(outcomes_choose(&outcomes, DRAFTED, few, ALL, 0, choice), 3);
    for (int i = 0; i < 3; i++)
        assert_true(choice[i].guess < few[choice[i].after]);
    assert_int_equal(outcomes_choose(&outcomes, DRAFTED, few, 2, 0, choice), 2);
}

static void test_outcomes__what_seldom_comes_is_not_chosen(void **state)
{
    struct outcome_choice all[ALL], choice[ALL];
    struct outcomes outcomes = {0};

    (void)state;
    outcomes_choose(&outcomes, DRAFTED, many, ALL, 0, all);
    for (int i = 1; i < ALL; i++) {
        double least = outcomes_share(&outcomes, DRAFTED, all[i - 1].after, all[i - 1].guess);

        assert_in_range(outcomes_choose(&outcomes, DRAFTED, many, ALL, least, choice), i, ALL);
        assert_in_range(outcomes_choose(&outcomes, DRAFTED, many, ALL, least * (1 + 1e-9), choice), 0, i);
    }
}

/* As where all drafts were accepted before the last of them was fed. */
static void test_outcomes__where_no_guess_is_known_only_the_number_counts(void **state)
{
    struct outcomes outcomes = {0}, known = {0};

    (void)state;
    add_often(&outcomes, 20, DRAFTED, -1);
    add_often(&known, 20, DRAFTED, 1);
    assert_memory_equal(outcomes.accepted, known.accepted, sizeof known.accepted);
    for (int guess = 0; guess <= MIRROR_GUESSES; guess++)
        assert_true(outcomes.bonus[guess] == 0);
    assert_true(outcomes_share(&known, DRAFTED, DRAFTED, 1) > outcomes_share(&outcomes, DRAFTED, DRAFTED, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outcomes__shares_are_a_distribution),
        cmocka_unit_test(test_outcomes__the_most_probable_come_first),
        cmocka_unit_test(test_outcomes__what_came_often_is_expected),
        cmocka_unit_test(test_outcomes__no_guess_comes_before_a_better_one),
        cmocka_unit_test(test_outcomes__there_are_no_more_than_there_are_guesses),
        cmocka_unit_test(test_outcomes__what_seldom_comes_is_not_chosen),
        cmocka_unit_test(test_outcomes__where_no_guess_is_known_only_the_number_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
