/* Layer 3: speed is what the laws allow. Lossless but slow code (a bonus dropped, a coin too strict) passes every test of the law; it
 * fails here, because the expected length of a first round is known exactly and first rounds are independent. Each test computes from its
 * configuration and N that such code would lie outside the bound. */
#include "common/base/bounds.h"
#include "tests/law/budget.h"
#include "tests/law/law_options.h"
#include "tests/law/toy_exact.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { FIRST_ROUNDS = 9, OVERLAPS = 4, LONGEST_DRAFT = 6 };
enum {
    QUICK_REQUESTS = 60000,
    DEFAULT_REQUESTS = 75000,
    WIDE_REQUESTS = 150000,
    MOST_REQUESTS = 600000,
    LONG_REQUESTS = 20000000,
    SANITIZED_REQUESTS = 3000
};

_Static_assert(FIRST_ROUNDS + OVERLAPS + LONGEST_DRAFT <= BUDGET_SPEED, "each compares one statistic with its bound");

struct tally {
    double first_tokens, first_rounds;
    double tested, accepted;
};

static struct law_options options;
static struct toy_law law;

static void count_outcome(void *user, const struct sequence *sequence, const struct outcome *outcome)
{
    struct tally *tally = user;

    if (sequence->rounds == 0) {
        tally->first_tokens += outcome->count;
        tally->first_rounds++;
    }
    tally->tested += outcome->accepted < outcome->drafted ? outcome->accepted + 1 : outcome->accepted;
    tally->accepted += outcome->accepted;
}

static void run(const struct toy_run *toy, struct tally *tally, struct toy_overlap *overlap)
{
    struct toy_round round = {.law = &law, .run = toy, .on_outcome = count_outcome, .user = tally};

    *tally = (struct tally){0};
    toy_round_run(&round, overlap);
}

static struct toy_run run_of(int draft_length, int shards, int support, int length)
{
    struct toy_run run = {.sampling = sampling_default,
                          .shards = shards,
                          .draft_length = draft_length,
                          .support = support,
                          .length = length,
                          .beyond = 7};

    run.sampling.temperature = 1.0;
    run.sampling.seed = options.seed;
    return run;
}

static int usual_requests(void)
{
    return options.is_quick ? QUICK_REQUESTS : options.is_wide ? WIDE_REQUESTS : DEFAULT_REQUESTS;
}

/* The mean may lie anywhere within the bound, and so may that of slow code: twice the bound lies between them. */
static int choose_count(double gap, int draft_length)
{
    double wanted = usual_requests();

    if (BUDGET_SANITIZED || options.requests > 0 || options.is_long)
        return BUDGET_SANITIZED ? SANITIZED_REQUESTS : options.requests > 0 ? (int)options.requests : LONG_REQUESTS;
    wanted = fmax(wanted, pow(bounds_mean(draft_length, 1, BUDGET_ALARM) * 2 / gap, 2) + 1);
    return (int)fmin(wanted, MOST_REQUESTS);
}

/* The mean length of the first rounds lies at its expectation, and what is slower lies beyond the bound. */
static void expect_first_round(struct toy_run *toy, const char *name)
{
    double exact = toy_exact_first_round(&law, toy, TOY_SPEED_RIGHT), no_bonus = toy_exact_first_round(&law, toy, TOY_SPEED_NO_BONUS);
    double point_mass = toy_exact_first_round(&law, toy, TOY_SPEED_POINT_MASS), mean, bound;
    struct tally tally;

    toy->count = choose_count(fmin(exact - no_bonus, exact - point_mass), toy->draft_length);
    bound = bounds_mean(toy->draft_length, toy->count, BUDGET_ALARM);
    if (!BUDGET_SANITIZED && options.requests == 0)
        assert_true(exact - no_bonus > 2 * bound && exact - point_mass > 2 * bound);
    run(toy, &tally, NULL);
    mean = tally.first_tokens / tally.first_rounds;
    print_message("%s: N %d, %.4f tokens in the first round, exactly %.4f +- %.4f; without bonus %.4f, q as a point mass %.4f\n", name,
                  toy->count, mean, exact, bound, no_bonus, point_mass);
    assert_int_equal((int)tally.first_rounds, toy->count);
    assert_true(fabs(mean - exact) < bound);
}

static void test_law_speed__first_round_is_as_long_as_p_and_q_say(void **state)
{
    static const double overlaps[] = {0, 0.5, 0.95};

    (void)state;
    for (int i = options.part; i < (options.is_quick ? 3 : FIRST_ROUNDS); i += options.parts) {
        const struct toy_terms terms = {.tokens = 4, .overlap = overlaps[i % 3], .zeros = i / 3 == 1, .seed = 31 + (uint64_t)i};
        int draft_length = i % 3 == 0 ? 1 + i / 3 : 1 + (2 * i + i / 3) % 5; /* short where few drafts are accepted: a bonus is rare there */
        struct toy_run toy = run_of(draft_length, i % 3 == 2 ? 4 : i % 3 + 1, i / 3 == 2 ? 2 : TOY_MOST, 1);
        char name[64];

        toy.sampling.seed += (uint64_t)i;
        toy.sampling.top_p = i == 4 ? 0.9 : 1.0;
        toy_law_fill(&law, &terms);
        snprintf(name, sizeof name, "K %d, m %.2f, %d shards, support %d", toy.draft_length, terms.overlap, toy.shards, toy.support);
        expect_first_round(&toy, name);
    }
}

/* Accepted drafts minus the sum of min(p, q) over tested drafts are a sum of martingale differences: given all that was before, a tested draft is
 * accepted with probability min(p, q) summed, and that is what the verifier measures. */
static void test_law_speed__alpha_by_counting_is_the_mean_overlap(void **state)
{
    (void)state;
    for (int i = options.part; i < (options.is_quick ? 1 : OVERLAPS); i += options.parts) {
        const struct toy_terms terms = {.tokens = 16, .overlap = 0.3 * i, .seed = 57 + (uint64_t)i};
        struct toy_run toy = run_of(3, 1 << (i % 3), i % 2 ? 8 : TOY_MOST, 8);
        struct toy_overlap overlap;
        struct tally tally;
        double bound;

        toy.sampling.seed += 100 + (uint64_t)i;
        if (options.requests > 0)
            toy.count = (int)options.requests;
        else
            toy.count = (BUDGET_SANITIZED ? SANITIZED_REQUESTS : options.is_wide ? WIDE_REQUESTS : DEFAULT_REQUESTS) / 3;
        toy_law_fill(&law, &terms);
        run(&toy, &tally, &overlap);
        bound = bounds_martingale(overlap.variance, 1.2 * toy.count, BUDGET_ALARM);
        print_message("alpha by counting %.4f, mean of sum min(p, q) %.4f +- %.4f, over %.0f drafts\n", tally.accepted / tally.tested,
                      overlap.sum / (double)overlap.tested, bound / tally.tested, tally.tested);
        assert_true((double)overlap.tested == tally.tested);
        assert_true(fabs(tally.accepted - overlap.sum) < bound);
        if (!BUDGET_SANITIZED && options.requests == 0)
            assert_true(2 * bound < 0.02 * tally.tested); /* an alpha that is wrong by 2 % would be seen */
    }
}

/* Rows that are all alike make acceptances independent of one another: equation 1 of Leviathan et al. 2023 is exact. */
static void test_law_speed__tokens_per_round_follow_equation_1(void **state)
{
    const struct toy_terms terms = {.tokens = 16, .overlap = 0.6, .flat = 1, .seed = 91};
    struct toy_run one = run_of(1, 2, TOY_MOST, 1);

    (void)state;
    toy_law_fill(&law, &terms);
    double alpha = toy_exact_first_round(&law, &one, TOY_SPEED_RIGHT) - 1;

    for (int k = 1 + options.part; k <= (options.is_quick ? 2 : LONGEST_DRAFT); k += options.parts) {
        struct toy_run toy = run_of(k, 2, TOY_MOST, 1);
        double exact = toy_exact_first_round(&law, &toy, TOY_SPEED_RIGHT);
        char name[64];

        toy.sampling.seed += 200 + (uint64_t)k;
        snprintf(name, sizeof name, "K %d, alpha %.4f", k, alpha);
        assert_true(fabs((1 - pow(alpha, k + 1)) / (1 - alpha) - exact) < 1e-9);
        expect_first_round(&toy, name);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law_speed__first_round_is_as_long_as_p_and_q_say),
        cmocka_unit_test(test_law_speed__alpha_by_counting_is_the_mean_overlap),
        cmocka_unit_test(test_law_speed__tokens_per_round_follow_equation_1),
    };

    options = law_options_read(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
