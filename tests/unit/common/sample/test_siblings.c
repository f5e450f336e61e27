/* Siblings drawn from one q: the first as a chain's draft, none twice where they are drawn without replacement, as many as there are tokens. */
#include "common/sample/siblings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { TOKENS = 5, KEYS = 20000, MOST = 8 };

static const int32_t ids[TOKENS] = {2, 3, 9, 11, 40};
static const uint32_t weights[TOKENS] = {1, 40000, 20000, 5000, 535};
static const struct siblings_q q = {.count = TOKENS, .id = ids, .weight = weights};

static struct rng_key key_of(int i)
{
    return (struct rng_key){.seed = 5, .request = (uint32_t)i, .position = 7};
}

static void test_siblings__come_once_or_again(void **state)
{
    int again = 0;

    (void)state;
    for (int i = 0; i < KEYS; i++) {
        const struct rng_key key = key_of(i);

        for (int how = RULE_SIBLINGS_AGAIN; how <= RULE_SIBLINGS_WITHOUT; how++) {
            int32_t tokens[MOST];
            int count = 0;

            while (count < MOST && (tokens[count] = siblings_draw(&q, (enum rule_siblings)how, tokens, count, 0, &key)) >= 0) {
                assert_true(sparse_q_weight(ids, weights, TOKENS, tokens[count]) > 0);
                for (int before = 0; before < count; before++) {
                    assert_true(how == RULE_SIBLINGS_AGAIN || tokens[before] != tokens[count]);
                    again += tokens[before] == tokens[count];
                }
                count++;
            }
            assert_int_equal(count, how == RULE_SIBLINGS_AGAIN ? MOST : TOKENS);
            assert_int_equal(tokens[0], ids[rng_coin16(&key, RNG_DRAFT, 0) < 1       ? 0
                                            : rng_coin16(&key, RNG_DRAFT, 0) < 40001 ? 1
                                            : rng_coin16(&key, RNG_DRAFT, 0) < 60001 ? 2
                                            : rng_coin16(&key, RNG_DRAFT, 0) < 65001 ? 3
                                                                                     : 4]);
        }
    }
    assert_true(again > KEYS);
}

/* The second is independent of the first where it may come again, and follows the weights that are left where it may not: within six deviations. */
static void test_siblings__follow_the_weights(void **state)
{
    (void)state;
    for (int how = RULE_SIBLINGS_AGAIN; how <= RULE_SIBLINGS_WITHOUT; how++) {
        const int32_t first[] = {3};
        double left = siblings_left(&q, (enum rule_siblings)how, first, 1);
        int counts[TOKENS] = {0};

        assert_true(left == (how == RULE_SIBLINGS_AGAIN ? SPARSE_Q_SUM : SPARSE_Q_SUM - 40000));
        for (int i = 0; i < KEYS; i++) {
            const struct rng_key key = key_of(i);
            int32_t token = siblings_draw(&q, (enum rule_siblings)how, first, 1, 0, &key);

            for (int v = 0; v < TOKENS; v++)
                counts[v] += ids[v] == token;
        }
        for (int v = 0; v < TOKENS; v++) {
            double share = how == RULE_SIBLINGS_WITHOUT && v == 1 ? 0 : weights[v] / left, off = counts[v] - KEYS * share;

            assert_true(off * off <= 36 * KEYS * share * (1 - share) + 1);
        }
    }
}

static void test_siblings__none_is_left_of_one(void **state)
{
    static const int32_t id[] = {6};
    static const uint32_t weight[] = {SPARSE_Q_SUM};
    const struct siblings_q one = {.count = 1, .id = id, .weight = weight};
    const struct rng_key key = key_of(1);

    (void)state;
    assert_int_equal(siblings_draw(&one, RULE_SIBLINGS_WITHOUT, id, 0, 0, &key), 6);
    assert_int_equal(siblings_draw(&one, RULE_SIBLINGS_WITHOUT, id, 1, 0, &key), -1);
    assert_int_equal(siblings_draw(&one, RULE_SIBLINGS_AGAIN, id, 1, 0, &key), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_siblings__come_once_or_again),
        cmocka_unit_test(test_siblings__follow_the_weights),
        cmocka_unit_test(test_siblings__none_is_left_of_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
