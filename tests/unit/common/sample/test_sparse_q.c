#include "common/base/rng.h"
#include "common/sample/distribution.h"
#include "common/sample/sparse_q.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MOST = 1500, ROWS = 3000 };

struct row {
    int count, most;
    struct scored_token best[MOST];
    double p[MOST];
};

static struct row row;
static struct sparse_q q;

static double uniform(uint32_t at, uint32_t index)
{
    return rng_uniform(&(struct rng_key){.seed = 8, .request = at, .position = index}, RNG_TREE);
}

static void make_row(uint32_t at)
{
    double sum = 0, steep = 20 * uniform(at, 0);

    row.count = 1 + (int)(uniform(at, 1) * (at % 3 == 0 ? 6 : MOST - 1));
    row.most = 1 + (int)(uniform(at, 2) * (at % 2 ? 16 : SPARSE_Q_MAX));
    for (int i = 0; i < row.count; i++)
        row.best[i] = (struct scored_token){.score = (float)(steep * uniform(at, 10 + (uint32_t)i)), .token = (i * 7919) % 32003};
    distribution_sort(row.best, row.count);
    for (int i = 0; i < row.count; i++)
        sum += row.p[i] = exp((double)row.best[i].score);
    for (int i = 0; i < row.count; i++)
        row.p[i] /= sum;
    sparse_q_fill(&q, row.best, row.p, row.count, 1.0, row.most);
}

static void test_sparse_q__weights_sum_and_ids_rise(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < ROWS; r++) {
        uint32_t sum = 0;

        make_row(r);
        for (int i = 0; i < q.count; i++) {
            assert_true(q.weight[i] >= 1);
            assert_true(i == 0 || q.id[i] > q.id[i - 1]);
            sum += q.weight[i];
        }
        assert_int_equal(sum, SPARSE_Q_SUM);
    }
}

static void test_sparse_q__support_is_the_smallest_that_covers(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < ROWS; r++) {
        double held = 0;
        int count = 0;

        make_row(r);
        while (count < row.count && count < row.most && (count == 0 || held < SPARSE_Q_COVERAGE))
            held += row.p[count++];
        assert_int_equal(q.count, count);
        for (int i = 0; i < count; i++)
            assert_true(sparse_q_weight(q.id, q.weight, q.count, row.best[i].token) > 0);
    }
}

/* Rounding down loses less than 1 for each token, and what is lost or what the floor of 1 adds is settled at the top. */
static void test_sparse_q__quantising_moves_each_weight_by_less_than_the_count(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < ROWS; r++) {
        double held = 0, distance = 0;

        make_row(r);
        for (int i = 0; i < q.count; i++)
            held += row.p[i];
        for (int i = 0; i < q.count; i++) {
            double wanted = row.p[i] / held * SPARSE_Q_SUM, got = sparse_q_weight(q.id, q.weight, q.count, row.best[i].token);

            assert_true(fabs(got - wanted) <= (i == 0 ? q.count : q.count + 1));
            distance += fabs(got - wanted);
        }
        assert_true(distance <= 2.0 * q.count);
    }
}

static void test_sparse_q__draw_is_the_inverse_distribution_function(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < 40; r++) {
        uint32_t u = 0;

        make_row(r);
        for (int i = 0; i < q.count; i++)
            for (uint32_t w = 0; w < q.weight[i]; w++)
                assert_int_equal(sparse_q_draw(&q, u++), q.id[i]);
        assert_int_equal(u, SPARSE_Q_SUM);
    }
}

static void test_sparse_q__weight_is_0_outside(void **state)
{
    static const int32_t id[] = {3, 8, 10};
    static const uint32_t weight[] = {5, 6, 7};

    (void)state;
    for (int32_t token = 0; token < 12; token++)
        assert_int_equal(sparse_q_weight(id, weight, 3, token), token == 3 ? 5 : token == 8 ? 6 : token == 10 ? 7 : 0);
    assert_int_equal(sparse_q_weight(id, weight, 0, 3), 0);
}

/* Where every token is banned, p and what is held are 0 / 0: the one token that stands for them has all of q. */
static void test_sparse_q__nothing_held_is_a_point(void **state)
{
    const struct scored_token best = {.token = 4};
    const double p = NAN;

    (void)state;
    assert_int_equal(sparse_q_share(0, 0), 1);
    sparse_q_fill(&q, &best, &p, 1, NAN, 1);
    assert_int_equal(q.count, 1);
    assert_int_equal(q.weight[0], SPARSE_Q_SUM);
}

/* A row of as many tokens as there may be: the floor of 1 must not be undercut when too much is taken back. */
static void test_sparse_q__one_large_and_many_tiny_settle(void **state)
{
    uint32_t sum = 0;

    (void)state;
    for (int i = 0; i < SPARSE_Q_MAX; i++) {
        row.best[i] = (struct scored_token){.token = i};
        row.p[i] = i == 0 ? 0.98 : 0.02 / (SPARSE_Q_MAX * 50);
    }
    sparse_q_fill(&q, row.best, row.p, SPARSE_Q_MAX, 1.0, SPARSE_Q_MAX);
    assert_int_equal(q.count, SPARSE_Q_MAX);
    for (int i = 0; i < q.count; i++)
        sum += q.weight[i];
    assert_int_equal(sum, SPARSE_Q_SUM);
    assert_int_equal(q.weight[0], SPARSE_Q_SUM - (SPARSE_Q_MAX - 1));
}

/* A block of threads adds them in another order than a loop. */
static void test_sparse_q__parts_are_whole_numbers_of_at_most_one(void **state)
{
    (void)state;
    assert_true(sparse_q_part(0) == 0 && sparse_q_part(-0.0) == 0 && sparse_q_part(-1) == 0);
    assert_true(sparse_q_part(1) == SPARSE_Q_ONE && sparse_q_part(0.5) == SPARSE_Q_ONE / 2 && sparse_q_part(0x1p-47) == 1);
    assert_true(sparse_q_part(2) == SPARSE_Q_ONE && sparse_q_part(NAN) == SPARSE_Q_ONE && sparse_q_part(INFINITY) == SPARSE_Q_ONE);
    assert_int_equal(sparse_q_share(SPARSE_Q_ONE, SPARSE_Q_ONE), SPARSE_Q_SUM);
    assert_int_equal(sparse_q_share(SPARSE_Q_ONE / 3, SPARSE_Q_ONE), SPARSE_Q_SUM / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sparse_q__weights_sum_and_ids_rise),
        cmocka_unit_test(test_sparse_q__support_is_the_smallest_that_covers),
        cmocka_unit_test(test_sparse_q__quantising_moves_each_weight_by_less_than_the_count),
        cmocka_unit_test(test_sparse_q__draw_is_the_inverse_distribution_function),
        cmocka_unit_test(test_sparse_q__weight_is_0_outside),
        cmocka_unit_test(test_sparse_q__nothing_held_is_a_point),
        cmocka_unit_test(test_sparse_q__parts_are_whole_numbers_of_at_most_one),
        cmocka_unit_test(test_sparse_q__one_large_and_many_tiny_settle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
