#include "tests/backend/rig.h"

#include "common/base/math32.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int counts[] = {1, 3, 15, 16, 17, 63, 64, 65, 100, 2048, 5003};
enum { COUNTS = sizeof counts / sizeof *counts, MOST = 5003 };

/* Logits as a model gives them, with ties and a few that are excluded by minus infinity. */
static void make_logits(float *logits, int count, uint32_t seed)
{
    struct random random = {.state = seed};

    for (int i = 0; i < count; i++) {
        logits[i] = roundf(random_float(&random) * 60.0f) * 0.25f;
        if (random_word(&random) % 9 == 0)
            logits[i] = -INFINITY;
    }
    logits[random_word(&random) % (uint32_t)count] = 0.0f;
}

static void test_row_scan__is_max_lowest_index_and_sums(void **state)
{
    float logits[MOST];
    double first_sum = 0, first_below = 0;

    (void)state;
    for (int c = 0; c < COUNTS; c++)
        for (int i = 0; i < RIGS; i += 3) {
            struct backend_context *context = rig_open(i);
            struct row_stats stats;
            int argmax = 0;
            double sum = 0, below = 0;

            if (context == NULL)
                continue;
            make_logits(logits, counts[c], 77);
            for (int k = 1; k < counts[c]; k++)
                argmax = logits[k] > logits[argmax] ? k : argmax;
            for (int k = 0; k < counts[c]; k++) {
                sum += (double)math32_exp(logits[k] - logits[argmax]);
                below += logits[k] > -INFINITY ? ((double)logits[argmax] - logits[k]) * (double)math32_exp(logits[k] - logits[argmax]) : 0;
            }
            backend_cpu.row.scan(context, logits, counts[c], ROW_SUMS_BELOW, &stats);
            assert_int_equal(stats.argmax, argmax);
            assert_true(stats.max == logits[argmax]);
            assert_true(fabs(stats.sum - sum) <= 1e-12 * sum);
            first_sum = i == 0 ? stats.sum : first_sum;
            assert_memory_equal(&stats.sum, &first_sum, sizeof first_sum);
            assert_true(fabs(stats.below - below) <= 1e-6 * below);
            first_below = i == 0 ? stats.below : first_below;
            assert_memory_equal(&stats.below, &first_below, sizeof first_below);
            backend_cpu.close(context);
        }
}

static void test_row__not_a_number_hides_no_logit(void **state)
{
    enum { COUNT = 300, KEPT = 10 };
    struct scored_token best[KEPT];
    float logits[COUNT];

    (void)state;
    for (int i = 0; i < RIGS; i += 3) {
        struct backend_context *context = rig_open(i);
        struct row_stats stats;

        if (context == NULL)
            continue;
        for (int k = 0; k < COUNT; k++) /* the largest stands before what is none, which stands before others */
            logits[k] = k >= 64 && k < 128 ? NAN : -(float)abs(k - 5);
        backend_cpu.row.scan(context, logits, COUNT, ROW_SUMS_BELOW, &stats);
        assert_int_equal(stats.argmax, 5);
        assert_int_equal(backend_cpu.row.top(context, logits, COUNT, KEPT, best), KEPT);
        for (int k = 0; k < KEPT; k++)
            assert_true(best[k].score == -(float)((k + 1) / 2));
        backend_cpu.close(context);
    }
}

static void test_row_scan__minus_infinity_alone_has_no_mass(void **state)
{
    const float logits[3] = {-INFINITY, -INFINITY, -INFINITY};
    struct backend_context *context = rig_open(0);
    struct row_stats stats;

    (void)state;
    backend_cpu.row.scan(context, logits, 3, ROW_SUMS_BELOW, &stats);
    assert_true(stats.max == -INFINITY && stats.argmax == 0 && stats.sum == 0 && stats.below == 0);
    backend_cpu.close(context);
}

static struct scored_token naive_race(const float *logits, int count, int32_t first, const struct rng_key *key, const uint32_t *excluded)
{
    struct scored_token winner = {.score = -INFINITY, .token = -1};

    for (int i = 0; i < count; i++) {
        float score = logits[i] + rng_gumbel(key, RNG_RESIDUAL, (uint32_t)(first + i));

        if (excluded != NULL && (excluded[i / 32] >> (i % 32) & 1) != 0)
            continue;
        if (score > winner.score)
            winner = (struct scored_token){.score = score, .token = i};
    }
    return winner;
}

static void check_races(struct backend_context *context, int count, int positions)
{
    float logits[MOST];
    uint32_t excluded[(MOST + 31) / 32];
    struct random random = {.state = 4};

    for (int position = 0; position < positions; position++) {
        const struct rng_key key = {.seed = 0x123456789abcdef0, .request = 5, .position = (uint32_t)position};
        const uint32_t *set = position % 2 == 0 ? NULL : excluded;
        int32_t first = position % 3 * 1000 / 4 * 4;
        struct scored_token expected, winner;

        make_logits(logits, count, (uint32_t)position);
        if (position % 5 == 0) /* noise decides */
            for (int i = 0; i < count; i++)
                logits[i] *= 0.01f;
        for (int i = 0; i < (count + 31) / 32; i++)
            excluded[i] = random_word(&random) | (position % 4 == 1 ? 0xfffffff0 : 0);
        expected = naive_race(logits, count, first, &key, set);
        backend_cpu.row.gumbel_max(context, logits, count, first, &key, RNG_RESIDUAL, set, &winner);
        assert_int_equal(winner.token, expected.token);
        assert_memory_equal(&winner.score, &expected.score, sizeof winner.score);
    }
}

static void test_row_gumbel_max__winner_is_that_of_rng_gumbel(void **state)
{
    (void)state;
    for (int i = 0; i < RIGS; i += 3) {
        struct backend_context *context = rig_open(i);

        if (context == NULL)
            continue;
        for (int c = 0; c < COUNTS; c++)
            check_races(context, counts[c], 60);
        backend_cpu.close(context);
    }
}

static void test_row_gumbel_max__nothing_to_win_gives_no_token(void **state)
{
    const struct rng_key key = {.seed = 1};
    const uint32_t all = 0xffffffff;
    const float logits[4] = {1, 2, 3, 4}, low[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    struct backend_context *context = rig_open(0);
    struct scored_token winner;

    (void)state;
    backend_cpu.row.gumbel_max(context, logits, 4, 0, &key, RNG_RESIDUAL, &all, &winner);
    assert_int_equal(winner.token, -1);
    backend_cpu.row.gumbel_max(context, low, 4, 0, &key, RNG_RESIDUAL, NULL, &winner);
    assert_int_equal(winner.token, -1);
    backend_cpu.close(context);
}

static int by_score_then_token(const void *a, const void *b)
{
    const struct scored_token *x = a, *y = b;

    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->token - y->token;
}

/* On every instruction set.  shift: is added to each logit */
static void check_tops(float shift)
{
    static const int wanted[] = {1, 2, 7, 64, 256, 1024};
    struct scored_token sorted[MOST], best[1024];
    float logits[MOST];

    for (int i = 0; i < RIGS; i += 3) {
        struct backend_context *context = rig_open(i);

        for (int c = 0; c < COUNTS && context != NULL; c++) {
            make_logits(logits, counts[c], (uint32_t)c);
            for (int k = 0; k < counts[c]; k++) {
                logits[k] += shift;
                sorted[k] = (struct scored_token){.score = logits[k], .token = k};
            }
            qsort(sorted, (size_t)counts[c], sizeof *sorted, by_score_then_token);
            for (int w = 0; w < 6; w++) {
                int kept = wanted[w] < counts[c] ? wanted[w] : counts[c];

                assert_int_equal(backend_cpu.row.top(context, logits, counts[c], wanted[w], best), kept);
                assert_memory_equal(best, sorted, (size_t)kept * sizeof *best);
            }
        }
        backend_cpu.close(context);
    }
}

static void test_row_top__is_the_head_of_the_sorted_row(void **state)
{
    (void)state;
    check_tops(0);
}

/* Next to them an eighth is lost in rounding. */
static void test_row_top__of_large_logits_is_the_head_of_the_sorted_row(void **state)
{
    (void)state;
    check_tops(0x1p19f);
    check_tops(-0x1p19f);
    check_tops(0x1p24f);
    check_tops(-0x1p24f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_scan__is_max_lowest_index_and_sums),
        cmocka_unit_test(test_row_scan__minus_infinity_alone_has_no_mass),
        cmocka_unit_test(test_row_gumbel_max__winner_is_that_of_rng_gumbel),
        cmocka_unit_test(test_row_gumbel_max__nothing_to_win_gives_no_token),
        cmocka_unit_test(test_row_top__is_the_head_of_the_sorted_row),
        cmocka_unit_test(test_row_top__of_large_logits_is_the_head_of_the_sorted_row),
        cmocka_unit_test(test_row__not_a_number_hides_no_logit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
