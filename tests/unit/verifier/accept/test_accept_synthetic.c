/* Verdicts that are drawn: what they share with those of the law, and that their rate is what was asked for. */
#include "verifier/accept/accept_synthetic.h"

#include "verifier/result/journal_terms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { DRAFTED = 4 };

static const struct target_row winners[DRAFTED + 1] = {{.kind = TARGET_WINNER, .winner = 10},
                                                {.kind = TARGET_WINNER, .winner = 11},
                                                {.kind = TARGET_WINNER, .winner = 12},
                                                {.kind = TARGET_WINNER, .winner = 13},
                                                {.kind = TARGET_WINNER, .winner = 14}};

static struct rng_key key_of(uint32_t request)
{
    return (struct rng_key){.seed = 5, .request = request, .position = 100};
}

static void test_accept_synthetic__0_takes_none_and_1_takes_all(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        struct rng_key key = key_of(i);
        struct verdict none = accept_synthetic_decide(0, &sampling_default, winners, DRAFTED, &key),
                       all = accept_synthetic_decide(1, &sampling_default, winners, DRAFTED, &key);

        assert_int_equal(none.accepted, 0);
        assert_int_equal(none.token, 10);
        assert_int_equal(all.accepted, DRAFTED);
        assert_int_equal(verdict_row(&all, DRAFTED), DRAFTED);
        assert_int_equal(none.refused, 0);
        assert_int_equal(all.refused, -1);
        assert_int_equal(all.token, 14);
    }
}

static void test_accept_synthetic__the_next_token_is_the_targets_own(void **state)
{
    const struct target_row laws[2] = {{.kind = TARGET_SUPPORT, .winner = 7}, {.kind = TARGET_LIST}};
    struct sampling warm = sampling_default, cold = sampling_default;
    struct rng_key key = key_of(1);

    (void)state;
    warm.temperature = 1;
    assert_int_equal(accept_synthetic_decide(0, &warm, laws, 1, &key).draw, DRAW_PLAIN);
    assert_int_equal(accept_synthetic_decide(1, &warm, laws, 1, &key).draw, DRAW_PLAIN);
    assert_int_equal(accept_synthetic_decide(1, &warm, winners, 1, &key).draw, DRAW_NONE);
    assert_int_equal(accept_synthetic_decide(0, &cold, laws, 1, &key).draw, DRAW_NONE); /* of a rule that knows more than the best token */
    assert_int_equal(accept_synthetic_decide(0, &cold, laws, 1, &key).token, 7);
}

static void test_accept_synthetic__is_a_function_of_its_key(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        struct rng_key key = key_of(i);
        struct verdict once = accept_synthetic_decide(0.5, &sampling_default, winners, DRAFTED, &key),
                       fewer = accept_synthetic_decide(0.5, &sampling_default, winners, 2, &key);

        assert_int_equal(once.accepted, accept_synthetic_decide(0.5, &sampling_default, winners, DRAFTED, &key).accepted);
        assert_int_equal(fewer.accepted, once.accepted < 2 ? once.accepted : 2); /* a coin belongs to its position */
        assert_int_equal(key.position, 100);
    }
}

/* Hoeffding: of n judged drafts the share that stands is within sqrt(ln(2 / 1e-12) / 2n) of the rate but for a chance of 1e-12. */
static void test_accept_synthetic__drafts_stand_at_the_rate(void **state)
{
    static const double rates[] = {0.1, 0.5, 0.8, 0.95};

    (void)state;
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        double tested = 0, all = 0;

        for (uint32_t i = 0; i < 100000; i++) {
            struct rng_key key = key_of(i);
            int accepted = accept_synthetic_decide(rates[r], &sampling_default, winners, DRAFTED, &key).accepted;

            all += accepted;
            tested += accepted + (accepted < DRAFTED);
        }
        assert_true(fabs(all / tested - rates[r]) < sqrt(log(2e12) / (2 * tested)));
    }
}

/* Results of the law are not gone on with by drawn ones, nor the other way round; without them the terms are what they were. */
static void test_accept_synthetic__journals_are_kept_apart(void **state)
{
    struct options lawful = {.rounds.synthetic_acceptance = -1}, drawn = {.rounds.synthetic_acceptance = 0.5},
                   otherwise = {.rounds.synthetic_acceptance = 0.6};
    struct request_list none = {.count = 0};
    const struct options *options[] = {&lawful, &drawn, &otherwise};
    char *terms[3], reason[256];

    (void)state;
    for (int i = 0; i < 3; i++) {
        terms[i] = journal_terms_write(&(struct journal_terms){.options = options[i], .requests = &none});
        assert_non_null(terms[i]);
    }
    assert_null(strstr(terms[0], "synthetic"));
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            enum status status = journal_terms_compare(terms[i], strlen(terms[i]), terms[j], reason, sizeof reason);

            assert_int_equal(status, i == j ? STATUS_OK : STATUS_DATA);
            assert_true(i == j || strstr(reason, "synthetic-acceptance") != NULL);
        }
    for (int i = 0; i < 3; i++)
        free(terms[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accept_synthetic__0_takes_none_and_1_takes_all),
        cmocka_unit_test(test_accept_synthetic__the_next_token_is_the_targets_own),
        cmocka_unit_test(test_accept_synthetic__is_a_function_of_its_key),
        cmocka_unit_test(test_accept_synthetic__drafts_stand_at_the_rate),
        cmocka_unit_test(test_accept_synthetic__journals_are_kept_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
