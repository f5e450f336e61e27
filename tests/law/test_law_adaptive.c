/* The joint law where the draft length is chosen as the job goes, from verdicts and times: it is the target's, however the length jumps about. One
 * that looks at the proposal first is not lawful, and the same statistics say so. Requests share the length, so they are not independent of each
 * other in how many rounds they take; their tokens are. */
#include "common/base/bounds.h"
#include "tests/law/budget.h"
#include "tests/law/law_options.h"
#include "tests/law/toy_exact.h"
#include "tests/law/toy_settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_CELLS = 256, SETTINGS = 6, REQUESTS = 30000, QUICK_REQUESTS = 10000, SANITIZED_REQUESTS = 2000 };

_Static_assert(3 * 2 * SETTINGS <= BUDGET_ADAPTIVE, "each compares two statistics with their bounds, chosen in three ways");

static struct law_options options;
static struct toy_law law;
static struct toy_exact exact;
static double target[MOST_CELLS];
static int64_t counts[MOST_CELLS], rounds_of[MESSAGE_MAX_DRAFT + 1];

static void count_end(void *user, uint32_t request, const int32_t *tokens)
{
    (void)request;
    counts[toy_exact_cell(&law, user, tokens)]++;
}

static void count_length(void *user, const struct sequence *sequence, const struct outcome *outcome)
{
    (void)user;
    (void)sequence;
    rounds_of[outcome->drafted]++;
}

/* Runs requests of a setting of rejection sampling; how their tokens fit the target's law. */
static struct bounds_fit run(int i, enum toy_length by, int *df)
{
    static const int settings[SETTINGS] = {0, 2, 5, 13, 19, 43};
    struct toy_setting setting;
    struct bounds_fit fit;
    int cells;

    toy_setting_fill(&setting, settings[i], options.seed);
    setting.run.length_by = by;
    setting.run.count = BUDGET_SANITIZED ? SANITIZED_REQUESTS : options.is_quick ? QUICK_REQUESTS : REQUESTS;
    assert_int_equal(setting.run.sampling.accept, ACCEPT_REJECTION);
    toy_law_fill(&law, &setting.terms);
    toy_exact_init(&exact, &law, &setting.run);
    cells = toy_exact_cells(&law, &setting.run);
    assert_in_range(cells, 2, MOST_CELLS);
    toy_exact_joint(&exact, TOY_RIGHT, target);
    *df = -1;
    for (int c = 0; c < cells; c++)
        *df += target[c] > 0;
    memset(counts, 0, sizeof counts);
    memset(rounds_of, 0, sizeof rounds_of);
    struct toy_round round = {.law = &law, .run = &setting.run, .on_outcome = count_length, .on_end = count_end, .user = &setting.run};

    toy_round_run(&round, NULL);
    fit = bounds_compare(counts, target, cells);
    print_message("%s, length by %d: N %d, df %d, G %.0f < %.0f, cell %.1f < %.1f\n", setting.name, (int)by, setting.run.count, *df, fit.g,
                  bounds_g(*df, BUDGET_ALARM), fit.cell, bounds_cell(*df, BUDGET_ALARM));
    return fit;
}

/* Lengths that a run had more than a handful of rounds of. */
static int lengths(void)
{
    int many = 0;

    for (int k = 0; k <= MESSAGE_MAX_DRAFT; k++)
        many += rounds_of[k] > 20;
    return many;
}

static void holds(enum toy_length by, int least_lengths)
{
    int most_lengths = 0;

    for (int i = 0; i < SETTINGS; i++) {
        int df;
        struct bounds_fit fit = run(i, by, &df);

        assert_int_equal(fit.impossible, 0);
        assert_true(fit.g < bounds_g(df, BUDGET_ALARM));
        assert_true(fit.cell < bounds_cell(df, BUDGET_ALARM));
        most_lengths = lengths() > most_lengths ? lengths() : most_lengths;
    }
    assert_true(most_lengths >= least_lengths); /* or nothing was chosen */
}

static void test_law_adaptive__a_length_that_is_chosen_keeps_the_law(void **state)
{
    (void)state;
    holds(TOY_ADAPTIVE, 2);
}

static void test_law_adaptive__a_length_that_jumps_with_verdicts_and_times_keeps_the_law(void **state)
{
    (void)state;
    holds(TOY_JUMPY, 3);
}

static void test_law_adaptive__a_length_by_a_sequences_own_verdicts_keeps_the_law(void **state)
{
    (void)state;
    holds(TOY_HEURISTIC, 3);
}

static void test_law_adaptive__a_length_that_looks_at_the_proposal_does_not(void **state)
{
    int refused = 0;

    (void)state;
    for (int i = 0; i < SETTINGS; i++) {
        int df;
        struct bounds_fit fit = run(i, TOY_PEEKS, &df);

        refused += fit.g >= bounds_g(df, BUDGET_ALARM);
    }
    assert_true(refused >= 4 || BUDGET_SANITIZED);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law_adaptive__a_length_that_is_chosen_keeps_the_law),
        cmocka_unit_test(test_law_adaptive__a_length_that_jumps_with_verdicts_and_times_keeps_the_law),
        cmocka_unit_test(test_law_adaptive__a_length_by_a_sequences_own_verdicts_keeps_the_law),
        cmocka_unit_test(test_law_adaptive__a_length_that_looks_at_the_proposal_does_not),
    };

    options = law_options_read(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
