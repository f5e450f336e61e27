/* Layer 3: speed is what the laws allow. Lossless but slow code (a bonus dropped, a coin too strict) passes every test of the law; it
 * fails here, because the expected length of a first round is known exactly and first rounds are independent. */
#include "common/base/bounds.h"
#include "tests/law/budget.h"
#include "tests/law/toy_exact.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { REQUESTS = BUDGET_SANITIZED ? 3000 : 150000 };

struct tally {
    double first_tokens, first_rounds;
    double tokens, rounds;
    double judged, stood;
};

static struct toy_law law;

static void count_outcome(void *user, const struct sequence *sequence, const struct outcome *outcome)
{
    struct tally *tally = user;

    if (sequence->rounds == 0) {
        tally->first_tokens += outcome->count;
        tally->first_rounds++;
    }
    tally->tokens += outcome->count;
    tally->rounds++;
    tally->judged += outcome->accepted < outcome->drafted ? outcome->accepted + 1 : outcome->accepted;
    tally->stood += outcome->accepted;
}

static void run(const struct toy_terms *terms, const struct toy_run *toy, struct tally *tally, struct toy_overlap *overlap)
{
    struct toy_round round = {.law = &law, .run = toy, .on_outcome = count_outcome, .user = tally};

    *tally = (struct tally){0};
    toy_law_fill(&law, terms);
    toy_round_run(&round, overlap);
}

static struct toy_run run_of(int draft_length, int shards, int support, int length)
{
    struct toy_run run = {.sampling = sampling_default,
                          .shards = shards,
                          .draft_length = draft_length,
                          .support = support,
                          .length = length,
                          .beyond = 7,
                          .count = REQUESTS};

    run.sampling.temperature = 1.0;
    run.sampling.seed = 4242;
    return run;
}

static void test_law_speed__first_round_is_as_long_as_p_and_q_say(void **state)
{
    static const double overlaps[] = {0, 0.5, 0.95};

    (void)state;
    for (int i = 0; i < 9; i++) {
        const struct toy_terms terms = {.tokens = 4, .overlap = overlaps[i % 3], .zeros = i / 3 == 1, .seed = 31 + (uint64_t)i};
        struct toy_run toy = run_of(1 + i % 5, i % 3 == 2 ? 4 : i % 3 + 1, i / 3 == 2 ? 2 : TOY_IDS, 1);
        struct tally tally;

        toy.sampling.top_p = i == 4 ? 0.9 : 1.0;
        run(&terms, &toy, &tally, NULL);
        double exact = toy_exact_first_round(&law, &toy), mean = tally.first_tokens / tally.first_rounds;
        double bound = bounds_mean(toy.draft_length, tally.first_rounds, BUDGET_ALARM);

        print_message("K %d, m %.2f: %.4f tokens in the first round, exactly %.4f, bound %.4f\n", toy.draft_length, terms.overlap, mean,
                      exact, bound);
        assert_true(fabs(mean - exact) < bound);
        assert_true(exact > 1 + 2 * bound || BUDGET_SANITIZED); /* a verifier that accepts nothing would be seen */
    }
}

/* Stood minus the sum of min(p, q) over judged drafts is a sum of differences of mean 0 and known variance: 6.9 standard errors. */
static void test_law_speed__alpha_by_counting_is_the_mean_overlap(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const struct toy_terms terms = {.tokens = 16, .overlap = 0.3 * i, .seed = 57 + (uint64_t)i};
        struct toy_run toy = run_of(3, 1 << (i % 3), i % 2 ? 8 : TOY_IDS, 8);
        struct toy_overlap overlap;
        struct tally tally;

        toy.count = REQUESTS / 3;
        run(&terms, &toy, &tally, &overlap);
        print_message("alpha by counting %.4f, mean of sum min(p, q) %.4f, over %.0f drafts\n", tally.stood / tally.judged,
                      overlap.sum / (double)overlap.judged, tally.judged);
        assert_true((double)overlap.judged == tally.judged);
        assert_true(fabs(tally.stood - overlap.sum) < 6.9 * sqrt(overlap.variance));
    }
}

/* Rows that are all alike make acceptances independent of one another: equation 1 of Leviathan et al. 2023 is exact. */
static void test_law_speed__tokens_per_round_follow_equation_1(void **state)
{
    (void)state;
    for (int k = 1; k <= 6; k++) {
        const struct toy_terms terms = {.tokens = 16, .overlap = 0.6, .flat = 1, .seed = 91};
        struct toy_run toy = run_of(k, 2, TOY_IDS, 1);
        struct tally tally;

        run(&terms, &toy, &tally, NULL);
        double alpha = tally.stood / tally.judged, expected = (1 - pow(alpha, k + 1)) / (1 - alpha), mean = tally.tokens / tally.rounds;

        print_message("K %d: alpha %.4f, %.4f tokens per round, equation 1 says %.4f\n", k, alpha, mean, expected);
        assert_true(fabs(mean / expected - 1) < 0.05); /* alpha and mean are of the same rounds */
        assert_true(fabs(mean - toy_exact_first_round(&law, &toy)) < bounds_mean(k, tally.rounds, BUDGET_ALARM));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law_speed__first_round_is_as_long_as_p_and_q_say),
        cmocka_unit_test(test_law_speed__alpha_by_counting_is_the_mean_overlap),
        cmocka_unit_test(test_law_speed__tokens_per_round_follow_equation_1),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
