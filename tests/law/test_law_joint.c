/* Layer 1: the joint law of several committed tokens through the real code of both roles, against the exactly enumerated law. One request is
 * one independent sample. Three statistics with proven bounds (common/base/bounds.h): a cell of probability 0 is never hit; G over all cells;
 * the largest N KL of a cell. The power is computed from each configuration and N: broken verifiers that it is there to find must be found
 * with twice the noncentrality that is needed, so that no edit takes the power away unseen. No retries; the seed is printed. */
#include "common/base/bounds.h"
#include "tests/law/budget.h"
#include "tests/law/law_options.h"
#include "tests/law/toy_exact.h"
#include "tests/law/toy_settings.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { MOST_CELLS = 256, QUICK_SETTINGS = TOY_WAYS };
enum { QUICK_REQUESTS = 20000, MANY_REQUESTS = 150000, MOST_REQUESTS = 400000, LONG_REQUESTS = 16000000, SANITIZED_REQUESTS = 2000 };

_Static_assert(2 * TOY_SETTINGS <= BUDGET_JOINT, "each compares two statistics with their bounds");

static struct law_options options;
static struct toy_law law;
static struct toy_exact exact;
static double target[MOST_CELLS], broken[TOY_MUTANTS][MOST_CELLS];
static int64_t counts[MOST_CELLS];
static int64_t fetched; /* drafts made ahead that were used */

static void count_end(void *user, uint32_t request, const int32_t *tokens)
{
    (void)request;
    counts[toy_exact_cell(&law, user, tokens)]++;
}

/* Fills the laws of a setting, right and broken; returns the degrees of freedom. */
static int enumerate(const struct toy_setting *setting)
{
    int cells = toy_exact_cells(&law, &setting->run), df = -1;

    assert_in_range(cells, 2, MOST_CELLS);
    toy_law_fill(&law, &setting->terms);
    toy_exact_init(&exact, &law, &setting->run);
    toy_exact_joint(&exact, TOY_RIGHT, target);
    for (int m = TOY_RIGHT + 1; m < TOY_MUTANTS; m++)
        toy_exact_joint(&exact, m, broken[m]);
    for (int i = 0; i < cells; i++)
        df += target[i] > 0;
    return df;
}

/* The broken verifiers that a setting must find. The others it may find; together all are found often, see the power test. */
static int must_see(const struct toy_setting *setting, enum toy_mutant mutant)
{
    int often = setting->terms.overlap < 0.9; /* drafts are often rejected */

    if (setting->run.sampling.accept == ACCEPT_COUPLED)
        return mutant == TOY_P_IS_WARMER;
    switch (mutant) {
    case TOY_P_OF_NEXT_ROW:
        return 1;
    case TOY_Q_OF_NEXT_ROW:
        return setting->run.draft_length > 1;
    case TOY_BONUS_FROM_DRAFTER:
    case TOY_BONUS_OF_ROW_BEFORE:
        return often && setting->run.draft_length == 1;
    case TOY_RESIDUAL_IS_P:
    case TOY_RESIDUAL_IS_DISTANCE:
    case TOY_DRAFT_COIN:
    case TOY_ALL_STAND:
        return often;
    default:
        return 0;
    }
}

/* Requests at which the mutant is found with twice the noncentrality that is needed. */
static double requests_for(enum toy_mutant mutant, int cells)
{
    return bounds_samples(broken[mutant], target, cells, BUDGET_ALARM);
}

/* By default the first half of the settings is run, which has all that they mix; */
static int is_run(int i)
{
    return i < TOY_SETTINGS / 2 || options.is_wide || options.is_long || options.requests > 0 || BUDGET_SANITIZED;
}

/* and the first half of those with many requests, the others with those that what they must see needs. */
static int has_many(int i)
{
    return !options.is_quick && (options.is_wide || i < TOY_SETTINGS / 4);
}

static int choose_count(int i, const struct toy_setting *setting, int cells)
{
    double wanted = has_many(i) ? MANY_REQUESTS : QUICK_REQUESTS;

    if (BUDGET_SANITIZED || options.requests > 0 || options.is_long)
        return BUDGET_SANITIZED ? SANITIZED_REQUESTS : options.requests > 0 ? (int)options.requests : LONG_REQUESTS;
    for (int m = TOY_RIGHT + 1; m < TOY_MUTANTS; m++)
        if (must_see(setting, m))
            wanted = fmax(wanted, requests_for(m, cells));
    return (int)ceil(fmin(wanted, MOST_REQUESTS));
}

static void run_requests(struct toy_setting *setting)
{
    struct toy_round round = {.law = &law, .run = &setting->run, .on_end = count_end, .user = &setting->run};

    memset(counts, 0, sizeof counts);
    toy_round_run(&round, NULL);
    fetched += round.fetched;
}

static int settings(void)
{
    return options.is_quick ? QUICK_SETTINGS : TOY_SETTINGS;
}

static void check(int i)
{
    struct toy_setting setting;
    struct bounds_fit fit;
    int cells, df, seen = 0;

    toy_setting_fill(&setting, i, options.seed);
    toy_law_fill(&law, &setting.terms);
    cells = toy_exact_cells(&law, &setting.run);
    df = enumerate(&setting);
    setting.run.count = choose_count(i, &setting, cells);
    for (int m = TOY_RIGHT + 1; m < TOY_MUTANTS; m++) {
        int is_seen = setting.run.count >= requests_for(m, cells);

        seen += is_seen;
        if (must_see(&setting, m) && !is_seen && !BUDGET_SANITIZED && options.requests == 0)
            fail_msg("%s: %d requests cannot show '%s', which needs %.0f", setting.name, setting.run.count, toy_exact_name(m),
                     requests_for(m, cells));
    }
    clock_t start = clock();
    run_requests(&setting);
    fit = bounds_compare(counts, target, cells);
    print_message("%s: N %d, df %d, G %.0f < %.0f, cell %.1f < %.1f, sees %d mutants, KL above %.1e; %.1f s\n", setting.name,
                  setting.run.count, df, fit.g, bounds_g(df, BUDGET_ALARM), fit.cell, bounds_cell(df, BUDGET_ALARM), seen,
                  bounds_noncentrality(df, BUDGET_ALARM) / 2 / setting.run.count, (double)(clock() - start) / CLOCKS_PER_SEC);
    assert_int_equal(fit.impossible, 0);
    assert_true(fit.g < bounds_g(df, BUDGET_ALARM));
    assert_true(fit.cell < bounds_cell(df, BUDGET_ALARM));
}

static void test_law_joint__committed_tokens_follow_the_targets_law(void **state)
{
    (void)state;
    for (int i = options.part; i < settings(); i += options.parts)
        if (is_run(i))
            check(i);
    print_message("%lld drafts were made ahead and used\n", (long long)fetched);
    assert_true(fetched > 0 || options.parts > 2); /* a part of few settings may have none that runs ahead */
}

/* Every broken verifier is found by many settings at the number of requests of this form. */
static void test_law_joint__every_mutant_is_seen_by_many_settings(void **state)
{
    int seen[TOY_MUTANTS] = {0}, run = 0;

    (void)state;
    for (int i = 0; i < TOY_SETTINGS; i++) {
        struct toy_setting setting;

        if (!is_run(i))
            continue;
        run++;
        toy_setting_fill(&setting, i, options.seed);
        toy_law_fill(&law, &setting.terms);
        enumerate(&setting);
        int cells = toy_exact_cells(&law, &setting.run);
        for (int m = TOY_RIGHT + 1; m < TOY_MUTANTS && (setting.run.sampling.accept != ACCEPT_COUPLED || m == TOY_P_IS_WARMER); m++)
            seen[m] += requests_for(m, cells) <= (has_many(i) || options.is_quick ? MANY_REQUESTS : QUICK_REQUESTS);
    }
    for (int m = TOY_RIGHT + 1; m < TOY_MUTANTS; m++) {
        print_message("'%s': found in %d of %d settings\n", toy_exact_name(m), seen[m], run);
        assert_true(seen[m] >= (options.is_wide || options.is_quick ? run / 4 : run / 8));
    }
}

/* The settings mix: each way of sampling meets each regime, draft length and number of shards, and these meet each other. */
static void test_law_joint__settings_cover_all_pairs(void **state)
{
    int way_regime[TOY_WAYS][TOY_REGIMES] = {0}, way_draft[TOY_WAYS][TOY_DRAFTS] = {0}, way_sharding[TOY_WAYS][TOY_SHARDINGS] = {0};
    int regime_draft[TOY_REGIMES][TOY_DRAFTS] = {0}, draft_sharding[TOY_DRAFTS][TOY_SHARDINGS] = {0};
    int way_zeros[TOY_WAYS][2] = {0}, regime_zeros[TOY_REGIMES][2] = {0};

    (void)state;
    for (int i = 0; i < TOY_SETTINGS; i++) {
        struct toy_setting s;

        toy_setting_fill(&s, i, options.seed);
        way_regime[s.way][s.regime]++;
        way_draft[s.way][s.draft]++;
        way_sharding[s.way][s.sharding]++;
        regime_draft[s.regime][s.draft]++;
        way_zeros[s.way][s.terms.zeros]++;
        regime_zeros[s.regime][s.terms.zeros]++;
        draft_sharding[s.draft][s.sharding]++;
    }
    for (int w = 0; w < TOY_WAYS; w++) {
        assert_true(way_zeros[w][0] > 0 && way_zeros[w][1] > 0);
        for (int r = 0; r < TOY_REGIMES; r++)
            assert_true(way_regime[w][r] > 0 && way_sharding[w][r] > 0); /* as many shardings as regimes */
        for (int d = 0; d < TOY_DRAFTS; d++)
            assert_true(way_draft[w][d] > 0);
    }
    for (int r = 0; r < TOY_REGIMES; r++) {
        assert_true(regime_zeros[r][0] > 0 && regime_zeros[r][1] > 0);
        for (int d = 0; d < TOY_DRAFTS; d++)
            assert_true(regime_draft[r][d] > 0 && draft_sharding[d][r] > 0);
    }
}

/* And so do those of the default form, in each of its two parts. */
static void test_law_joint__the_default_settings_have_every_value(void **state)
{
    (void)state;
    for (int part = 0; part < 2; part++) {
        int way[TOY_WAYS] = {0}, regime[TOY_REGIMES] = {0}, draft[TOY_DRAFTS] = {0}, sharding[TOY_SHARDINGS] = {0};
        int zeros[2] = {0}, length[TOY_POSITIONS + 1] = {0}, tokens[TOY_MOST + 1] = {0};

        for (int i = part; i < TOY_SETTINGS / 2; i += 2) {
            struct toy_setting s;

            toy_setting_fill(&s, i, options.seed);
            way[s.way]++, regime[s.regime]++, draft[s.draft]++, sharding[s.sharding]++;
            zeros[s.terms.zeros]++, length[s.run.length]++, tokens[s.terms.tokens]++;
        }
        for (int w = part; w < TOY_WAYS; w += 2)
            assert_true(way[w] > 0);
        for (int r = 0; r < TOY_REGIMES; r++)
            assert_true(regime[r] > 0 && sharding[r] > 0);
        for (int d = 0; d < TOY_DRAFTS; d++)
            assert_true(draft[d] > 0);
        assert_true(zeros[0] > 0 && zeros[1] > 0 && tokens[4] > 0 && tokens[16] > 0 && length[2] > 0 && length[3] > 0 && length[4] > 0);
    }
}

/* The same statistics refuse laws that are wrong: the right code's tokens against the laws of broken verifiers. */
static void test_law_joint__other_laws_are_refused(void **state)
{
    struct toy_setting setting;
    int cells, df, refused = 0;

    (void)state;
    toy_setting_fill(&setting, 43, options.seed);
    toy_law_fill(&law, &setting.terms);
    cells = toy_exact_cells(&law, &setting.run);
    df = enumerate(&setting);
    setting.run.count = BUDGET_SANITIZED ? 2 * SANITIZED_REQUESTS : 2 * QUICK_REQUESTS;
    run_requests(&setting);
    for (int m = TOY_RIGHT + 1; m < TOY_MUTANTS; m++) {
        struct bounds_fit fit = bounds_compare(counts, broken[m], cells);
        double lambda = 2 * setting.run.count * bounds_divergence(target, broken[m], cells);

        if (lambda < 2 * bounds_noncentrality(df, BUDGET_ALARM))
            continue;
        assert_true(fit.impossible > 0 || fit.g > bounds_g(fit.df, BUDGET_ALARM));
        refused++;
    }
    print_message("%d of %d other laws refused with %d requests\n", refused, TOY_MUTANTS - 1, setting.run.count);
    assert_true(refused >= 8 || BUDGET_SANITIZED);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law_joint__settings_cover_all_pairs),
        cmocka_unit_test(test_law_joint__the_default_settings_have_every_value),
        cmocka_unit_test(test_law_joint__every_mutant_is_seen_by_many_settings),
        cmocka_unit_test(test_law_joint__other_laws_are_refused),
        cmocka_unit_test(test_law_joint__committed_tokens_follow_the_targets_law),
    };

    options = law_options_read(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
