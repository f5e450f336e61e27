/* Layer 1 for the other rules that are lossless: the joint law of several committed tokens, over several rounds, through the real code of both roles,
 * as test_law_joint has it for the rule that is the default, on a part of its settings. A rule that looks at drafts behind the last accepted one must
 * not use their coins again: rounds behind each other would depend on each other, and only a test of several of them sees that. */
#include "common/base/bounds.h"
#include "common/sample/rule.h"
#include "tests/law/budget.h"
#include "tests/law/law_options.h"
#include "tests/law/toy_exact.h"
#include "tests/law/toy_settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_CELLS = 256, SETTINGS = 5, WIDE_SETTINGS = 12, STOPPING_SETTINGS = 3, TREE_RULES = 7, TREE_SETTINGS = TREE_RULES + 2, TREE_MORE = 4 };
enum {
    QUICK_REQUESTS = 40000,
    REQUESTS = 60000,
    TREE_REQUESTS = 200000, /* fewer do not see that a token of another path is counted */
    WIDE_REQUESTS = 150000,
    LONG_REQUESTS = 16000000,
    SANITIZED_REQUESTS = 2000
};

static struct law_options options;
static struct toy_law law;
static struct toy_exact exact;
static double target[MOST_CELLS];
static int64_t counts[MOST_CELLS], drafted, accepted, rounds, told, forks;

static void count_end(void *user, uint32_t request, const int32_t *tokens)
{
    (void)request;
    counts[toy_exact_cell(&law, user, tokens)]++;
}

static void count_outcome(void *user, const struct sequence *sequence, const struct outcome *outcome)
{
    (void)user;
    if (sequence->owns > 0) { /* what it says where its text goes on is what comes out */
        assert_int_equal(sequence->owns, outcome->drafted + 1);
        assert_int_equal(sequence->own[0], outcome->token[0]);
        told++;
    }
    forks += sequence->linked > 1 && sequence->merged.is_there && sequence->merged.proposal.is_tree;
    rounds++;
    drafted += outcome->drafted;
    accepted += outcome->accepted;
}

/* Those of which test_law_joint and test_law_coupled do not show it, and which are not those on a chain. */
static int is_shown_here(int accept)
{
    return rule_row(accept)->lossless && !rule_row(accept)->usual && rule_row(accept)->siblings == RULE_SIBLINGS_ANY;
}

static int count_of_requests(int is_tree)
{
    if (BUDGET_SANITIZED)
        return SANITIZED_REQUESTS;
    if (options.requests > 0)
        return (int)options.requests;
    return options.is_quick ? QUICK_REQUESTS : options.is_long ? LONG_REQUESTS : options.is_wide ? WIDE_REQUESTS : is_tree ? TREE_REQUESTS : REQUESTS;
}

/* The n-th setting in which tokens are drawn, several at a time, and many rounds follow each other. */
static void fill_setting(int n, int accept, struct toy_setting *setting)
{
    for (int i = 0;; i++) {
        toy_setting_fill(setting, i, options.seed);
        if (setting->run.draft_length > 1 && setting->run.length > 2 && setting->run.sampling.accept != ACCEPT_COUPLED && n-- == 0)
            break;
    }
    setting->run.sampling.accept = accept;
}

static void check_of(int n, int accept, const struct toy_run *how)
{
    struct toy_setting setting;
    struct toy_round round = {.law = &law, .run = &setting.run, .on_end = count_end, .on_outcome = count_outcome, .user = &setting.run};
    struct toy_overlap overlap;
    struct bounds_fit fit;
    int cells, df = -1;

    fill_setting(n, accept, &setting);
    setting.run.stopping = how->stopping;
    setting.run.shape = how->shape;
    setting.run.copies = how->copies;
    setting.run.lookahead = how->lookahead;
    setting.run.merges = how->merges;
    setting.run.draft_length = how->merges == TOY_MERGES_BLIND ? 2 : how->merges == TOY_MERGES_LEARNT ? 4 : setting.run.draft_length;
    setting.run.count = count_of_requests(how->shape.kind != TREE_CHAIN);
    setting.run.draft_length += how->shape.kind != TREE_CHAIN ? TREE_MORE : 0;
    toy_law_fill(&law, &setting.terms);
    cells = toy_exact_cells(&law, &setting.run);
    assert_in_range(cells, 2, MOST_CELLS);
    toy_exact_init(&exact, &law, &setting.run);
    toy_exact_joint(&exact, TOY_RIGHT, target);
    for (int i = 0; i < cells; i++)
        df += target[i] > 0;
    memset(counts, 0, sizeof counts);
    drafted = accepted = rounds = told = forks = 0;
    toy_round_run(&round, &overlap);
    assert_int_equal(overlap.tested > 0, rule_row(accept)->overlaps); /* nothing is said of what it does not tell */
    fit = bounds_compare(counts, target, cells);
    print_message("%s%s, %s: N %d, %.2f drafts a round, %.0f %% copied, %.0f %% forked, %.0f %% accepted, G %.0f < %.0f, cell %.1f < %.1f\n",
                  rule_name(accept),
                  how->stopping.kind != STOPPING_NEVER ? ", stopping"
                  : how->lookahead                     ? ", lookahead"
                  : how->merges                        ? ", two drafters"
                  : how->shape.kind != TREE_CHAIN      ? ", a tree"
                  : how->copies.first > 0              ? ", copies first"
                  : how->copies.after > 0              ? ", copies after"
                                                       : "",
                  setting.name, setting.run.count, (double)drafted / (double)rounds, 100.0 * (double)round.copied / (double)rounds,
                  100.0 * (double)forks / (double)rounds, 100.0 * (double)accepted / (double)drafted, fit.g, bounds_g(df, BUDGET_ALARM), fit.cell,
                  bounds_cell(df, BUDGET_ALARM));
    assert_true(accepted > 0 && accepted < drafted); /* else nothing was shown */
    assert_true((round.copied > rounds / 40) == (how->copies.first > 0 || how->copies.after > 0) && round.copied < rounds);
    assert_int_equal(told, how->lookahead && rule_row(accept)->matches ? rounds : 0);
    assert_int_equal(fit.impossible, 0);
    assert_true(fit.g < bounds_g(df, BUDGET_ALARM));
    assert_true(fit.cell < bounds_cell(df, BUDGET_ALARM));
}

static void check(int n, int accept, struct stopping stopping, struct tree_shape shape, struct draft_copies copies)
{
    check_of(n, accept, &(struct toy_run){.stopping = stopping, .shape = shape, .copies = copies});
}

static void test_law_rules__committed_tokens_follow_the_targets_law(void **state)
{
    int settings = options.is_wide || options.is_long ? WIDE_SETTINGS : SETTINGS, compared = 0;

    (void)state;
    for (int accept = 0; accept < ACCEPT_MODES; accept++)
        for (int n = 0; is_shown_here(accept) && n < settings; n++, compared += 2)
            if (n % options.parts == options.part)
                check(n, accept, (struct stopping){0}, (struct tree_shape){0}, (struct draft_copies){0});
    assert_in_range(compared, 1, BUDGET_RULES);
}

/* What stops a draft is known before its next token is drawn, and is a function of the text: so whether a token is sent tells nothing of it. A rule
 * that looked at the token would keep back those that it finds unlikely (mutant stops_at_an_unlikely_token). */
static void test_law_rules__a_draft_that_stops_by_its_distribution_leaves_the_law(void **state)
{
    static const struct stopping stopping[] = {{STOPPING_CONFIDENCE, 0.5}, {STOPPING_ENTROPY, 0.5}, {STOPPING_BATCH, 0.4}};
    int least = 1;

    (void)state;
    for (int n = 0; n < STOPPING_SETTINGS; n++)
        if (n % options.parts == options.part) {
            check(n, ACCEPT_REJECTION, stopping[n], (struct tree_shape){0}, (struct draft_copies){0});
            least--;
        }
    assert_true(least <= 0);
}

/* Which kind drafts is a function of the text: copies, each with a point mass for its q, where its last two tokens have occurred before, else the
 * model's drafts; a proposal of one kind follows one of the other. */
static void test_law_rules__copies_that_come_first_leave_the_law(void **state)
{
    static const int accept[] = {ACCEPT_REJECTION, ACCEPT_BLOCK};
    int checked = 0;

    (void)state;
    for (int n = 3; n < 5; n++) /* texts long enough to repeat themselves */
        if (n % options.parts == options.part) {
            check(n, accept[n % 2], (struct stopping){0}, (struct tree_shape){0}, (struct draft_copies){.first = 2});
            check(n, accept[n % 2], (struct stopping){0}, (struct tree_shape){0}, (struct draft_copies){.after = 1});
            checked++;
        }
    assert_true(checked > 0);
}

/* Trees of what the target said of earlier drafts, with the very noise that decides about them; and by a rule with coins chains of what other texts
 * have. */
static void test_law_rules__what_the_target_drafts_for_itself_leaves_the_law(void **state)
{
    static const int accept[] = {ACCEPT_WALK, ACCEPT_REJECTION, ACCEPT_COUPLED};
    int checked = 0;

    (void)state;
    for (int n = 2; n < 5; n++)
        if (n % options.parts == options.part) {
            check_of(n, accept[n - 2], &(struct toy_run){.shape = {.kind = TREE_OWN}, .lookahead = 1});
            checked++;
        }
    assert_true(checked > 0);
}

/* Two drafters for each text, which draw with coins of their own from q's that differ. Where the second one's chain ends follows from what it drew.
 */
static void test_law_rules__several_drafters_leave_the_law(void **state)
{
    static const struct {
        int accept;
        enum toy_merges how;
    } cases[] = {{ACCEPT_MULTISTEP, TOY_MERGES_BLIND},
                 {ACCEPT_MULTISTEP, TOY_MERGES_BLIND},
                 {ACCEPT_MULTISTEP, TOY_MERGES_LEARNT},
                 {ACCEPT_WALK, TOY_MERGES_LEARNT},
                 {ACCEPT_MULTISTEP, TOY_MERGES_BLIND}};
    int checked = 0;

    (void)state;
    for (int n = 0; n < (int)(sizeof cases / sizeof *cases); n++)
        if (n % options.parts == options.part) {
            check_of(n, cases[n].accept, &(struct toy_run){.merges = cases[n].how});
            assert_true(cases[n].how == TOY_MERGES_LEARNT || forks > rounds / 5); /* else hardly a draft is tested behind another */
            checked++;
        }
    assert_true(checked > 0);
}

/* Rules that decide about trees, and several sequences in one step, each with a tree of its own. */
static void test_law_rules__the_path_of_a_tree_follows_the_targets_law(void **state)
{
    static const int accept[TREE_RULES] = {ACCEPT_WALK,      ACCEPT_TRAVERSAL, ACCEPT_COUPLED,     ACCEPT_WITHOUT_REPLACEMENT,
                                           ACCEPT_MULTISTEP, ACCEPT_TRAVERSAL, ACCEPT_K_SEQUENTIAL};
    static const int has_the_other_shape[TREE_RULES] = {1, 0, 0, 0, 0, 1, 1}; /* which the wide form changes in its second half */
    int checked = 0, settings = options.is_wide || options.is_long ? 2 * TREE_RULES : TREE_SETTINGS;

    (void)state;
    for (int n = 0; n < settings; n++)
        if (n % options.parts == options.part) {
            int rule = n % TREE_RULES;
            enum tree_kind other = rule_row(accept[rule])->siblings != RULE_SIBLINGS_ANY ? TREE_IID : TREE_DYNAMIC;

            check(n, accept[rule], (struct stopping){0},
                  (struct tree_shape){.kind = has_the_other_shape[rule] != (n >= TREE_RULES) ? other : TREE_TOP_K}, (struct draft_copies){0});
            checked++;
        }
    assert_true(checked > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law_rules__the_path_of_a_tree_follows_the_targets_law),
        cmocka_unit_test(test_law_rules__committed_tokens_follow_the_targets_law),
        cmocka_unit_test(test_law_rules__a_draft_that_stops_by_its_distribution_leaves_the_law),
        cmocka_unit_test(test_law_rules__copies_that_come_first_leave_the_law),
        cmocka_unit_test(test_law_rules__what_the_target_drafts_for_itself_leaves_the_law),
        cmocka_unit_test(test_law_rules__several_drafters_leave_the_law),
    };

    options = law_options_read(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
