#include "verifier/pace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A machine whose times are known: a step of r rows takes step + row r, a proposal of k tokens wire + token k. */
struct machine {
    double step, row, wire, token, alpha;
    int sequences;
};

static double rate(const struct machine *machine, int k)
{
    double us = machine->step + machine->row * machine->sequences * (k + 1) + (k > 0 ? machine->wire + k * machine->token : 0);

    return pace_expected_tokens(machine->alpha, k) / us;
}

/* Runs rounds on the machine; every 10th is a hiccup of ten times the usual. Returns the choice that was made most often at the end. */
static int settle(const struct machine *machine, int hiccups)
{
    struct pace pace = {0};
    int length = 4, chosen[PACE_MOST + 1] = {0}, most = 0;
    double owed = 0;

    for (int round = 0; round < 600; round++) {
        double slow = hiccups && round % 10 == 3 ? 10 : 1;
        int rows = machine->sequences * (length + 1);

        pace_add_step(&pace, rows, slow * (machine->step + machine->row * rows));
        pace_add_draft(&pace, length, slow * (machine->wire + machine->token * length));
        for (int i = 0; i < length; i++) { /* as many stand as alpha says, in the long run */
            owed += machine->alpha;
            pace_add_verdict(&pace, 1, owed >= 1);
            owed -= owed >= 1;
        }
        length = pace_choose(&pace, machine->sequences);
        assert_in_range(length, 0, PACE_MOST);
        if (round >= 400)
            chosen[length]++;
    }
    for (int k = 0; k <= PACE_MOST; k++)
        most = chosen[k] > chosen[most] ? k : most;
    return most;
}

static const struct machine machines[] = {
    {360, 15, 50, 15, 0.75, 1}, {200, 20, 100, 25, 0.75, 1}, {360, 60, 60, 40, 0.75, 8}, {360, 60, 60, 40, 0.75, 2},
    {1000, 1, 20, 5, 0.9, 1},   {100, 50, 200, 200, 0.5, 1}, {1000, 5, 20, 20, 0.3, 4},
};

static void test_pace__finds_a_length_within_two_percent_of_the_best(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
        double best = 0;

        for (int k = 0; k <= PACE_MOST; k++)
            best = fmax(best, rate(&machines[m], k));
        assert_true(rate(&machines[m], settle(&machines[m], 0)) >= 0.98 * best);
    }
}

static void test_pace__survives_hiccups_within_ten_percent_of_the_best(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
        double best = 0;

        for (int k = 0; k <= PACE_MOST; k++)
            best = fmax(best, rate(&machines[m], k));
        assert_true(rate(&machines[m], settle(&machines[m], 1)) >= 0.9 * best);
    }
}

static void test_pace__asks_ever_more_rarely_where_drafting_never_pays(void **state)
{
    struct pace pace = {0};
    int length = 4, drafted[2] = {0};

    (void)state;
    for (int round = 0; round < 4000; round++) {
        pace_add_step(&pace, length + 1, 100 + 5 * (length + 1));
        pace_add_draft(&pace, length, 500 + 300 * length);
        pace_add_verdict(&pace, length, length / 2);
        length = pace_choose(&pace, 1);
        if (round >= 100)
            drafted[round / 2000] += length > 0;
    }
    assert_in_range(drafted[0], 4, 16);
    assert_in_range(drafted[1], 1, 4); /* but it does not give up */
}

static void test_pace__drafts_nothing_where_drafting_cannot_pay(void **state)
{
    const struct machine slow_drafter = {.step = 100, .row = 5, .wire = 500, .token = 300, .alpha = 0.7, .sequences = 1};

    (void)state;
    assert_int_equal(settle(&slow_drafter, 0), 0);
}

static void test_pace__still_probes_when_it_drafts_nothing(void **state)
{
    struct pace pace = {0};
    int probes = 0, length = 4;

    (void)state;
    for (int round = 0; round < 200; round++) {
        pace_add_step(&pace, length + 1, 100 + 5 * length);
        pace_add_draft(&pace, length, 800 + 300 * length);
        pace_add_verdict(&pace, length, length / 2);
        length = pace_choose(&pace, 1);
        probes += round >= 100 && length > 0;
    }
    assert_in_range(probes, 2, 12);
}

static void test_pace__expected_tokens_is_equation_1(void **state)
{
    (void)state;
    for (double alpha = 0.1; alpha < 0.95; alpha += 0.1)
        for (int k = 0; k < 8; k++)
            assert_true(fabs(pace_expected_tokens(alpha, k) - (1 - pow(alpha, k + 1)) / (1 - alpha)) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pace__finds_a_length_within_two_percent_of_the_best),
        cmocka_unit_test(test_pace__survives_hiccups_within_ten_percent_of_the_best),
        cmocka_unit_test(test_pace__asks_ever_more_rarely_where_drafting_never_pays),
        cmocka_unit_test(test_pace__drafts_nothing_where_drafting_cannot_pay),
        cmocka_unit_test(test_pace__still_probes_when_it_drafts_nothing),
        cmocka_unit_test(test_pace__expected_tokens_is_equation_1),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
