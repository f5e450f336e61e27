/* The guesses behind drafts: what the target would come to there if its row were the draft's. */
#include "common/base/rng.h"
#include "common/sample/choice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 9, ROWS = 400 };

/* A row of logits that falls, answered as choice_ask asks. */
static struct row_query answered(const struct sampling *sampling, uint32_t row, struct scored_token *best /* [VOCAB] */)
{
    struct row_query query = {.key = {.seed = 3, .request = 1, .position = row}, .best = best, .best_count = VOCAB};

    choice_ask(sampling, VOCAB, 0, &query);
    query.stats = (struct row_stats){.max = 2.0f, .argmax = 4};
    for (int i = 0; i < VOCAB; i++) {
        best[i] = (struct scored_token){.score = 2.0f - 0.3f * (float)i, .token = (4 + 2 * i) % VOCAB};
        query.stats.sum += exp((double)best[i].score - 2.0);
    }
    query.winner = (struct scored_token){.score = 9, .token = 7};
    return query;
}

/* The best of these with the noise of this purpose, but for those that are marked: what the target's draw is of its own row. */
static int32_t best_with(const struct row_query *query, int kept, enum rng_purpose purpose, const int *marked /* [VOCAB] */)
{
    struct scored_token best = {.score = -INFINITY, .token = -1};

    for (int i = 0; i < kept; i++) {
        float score = query->best[i].score + rng_gumbel(&query->key, purpose, (uint32_t)query->best[i].token);

        if (score > best.score && !marked[query->best[i].token])
            best = (struct scored_token){.score = score, .token = query->best[i].token};
    }
    return best.token;
}

/* Asserts that the guesses are those of the row's noise, best first, without what was drafted. */
static void assert_ranks(const struct sampling *sampling, const struct row_query *query, int kept, enum rng_purpose purpose, int32_t drafted)
{
    struct scored_token best[VOCAB];
    int marked[VOCAB] = {0}, count;
    int32_t tokens[VOCAB];

    memcpy(best, query->best, sizeof best);
    if (drafted >= 0)
        marked[drafted] = 1;
    count = choice_rank(sampling, &query->key, drafted, best, kept, VOCAB, tokens, NULL);
    for (int i = 0; i < count; i++) {
        assert_int_equal(tokens[i], best_with(query, kept, purpose, marked));
        marked[tokens[i]] = 1;
    }
    assert_int_equal(best_with(query, kept, purpose, marked), -1); /* none is missing */
}

/* Where q is drawn from, a correction and a bonus have a noise of their own; a rule that compares tokens knows the target's. */
static void test_choice__guesses_are_ranked_by_the_noise_that_the_target_will_use(void **state)
{
    struct sampling sampling = sampling_default;

    (void)state;
    sampling.temperature = 1.0;
    for (int accept = 0; accept < ACCEPT_MODES; accept++)
        for (int truncates = 0; truncates <= 1; truncates++)
            for (uint32_t row = 0; row < ROWS; row++) {
                enum rng_purpose purpose = accept == ACCEPT_COUPLED || accept == ACCEPT_WALK ? RNG_NOISE : RNG_RESIDUAL;
                struct scored_token best[VOCAB];
                double p[VOCAB];

                sampling.accept = accept;
                sampling.top_k = truncates ? 3 : 0;
                struct row_query query = answered(&sampling, row, best);

                assert_int_equal(choice_listed(&sampling, VOCAB, &query, p), truncates ? 3 : VOCAB);
                assert_ranks(&sampling, &query, truncates ? 3 : VOCAB, purpose, -1);
                assert_ranks(&sampling, &query, truncates ? 3 : VOCAB, purpose, (int32_t)row % VOCAB);
            }
}

static void test_choice__at_temperature_0_guesses_are_the_largest(void **state)
{
    static const int32_t expected[] = {4, 6, 8, 1, 3};
    struct sampling sampling = sampling_default;
    struct scored_token best[VOCAB];
    int32_t tokens[VOCAB];
    double p[VOCAB];

    (void)state;
    sampling.temperature = 0;
    sampling.top_k = 3; /* without effect */
    struct row_query query = answered(&sampling, 0, best);

    assert_int_equal(choice_listed(&sampling, VOCAB, &query, p), VOCAB);
    best[0].score = 2;
    assert_int_equal(choice_rank(&sampling, &query.key, 4, best, VOCAB, 4, tokens, NULL), 4);
    assert_memory_equal(tokens, expected + 1, 4 * sizeof *tokens);
}

/* They are no guesses. */
static void test_choice__what_is_banned_is_not_guessed(void **state)
{
    struct scored_token best[] = {{-INFINITY, 1}, {1, 2}, {-INFINITY, 3}};
    const struct rng_key key = {.seed = 1};
    struct sampling sampling = sampling_default;
    int32_t tokens[3];

    (void)state;
    sampling.temperature = 0;
    assert_int_equal(choice_rank(&sampling, &key, -1, best, 3, 3, tokens, NULL), 1);
    assert_int_equal(tokens[0], 2);
}

static void test_choice__asks_for_as_many_as_are_to_be_listed(void **state)
{
    struct sampling sampling = sampling_default;
    struct row_query query = {0};

    (void)state;
    for (int coupled = 0; coupled <= 1; coupled++)
        for (int listed = 0; listed <= 8; listed += 8) {
            sampling.temperature = coupled;
            sampling.accept = coupled ? ACCEPT_COUPLED : ACCEPT_REJECTION;
            choice_ask(&sampling, 4, listed, &query);
            assert_int_equal(query.top, listed);
            assert_int_equal(query.gumbel, coupled);
            sampling.accept = ACCEPT_REJECTION;
            sampling.temperature = 1;
            choice_ask(&sampling, 4, listed, &query);
            assert_int_equal(query.top, listed > 4 ? listed : 4);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice__guesses_are_ranked_by_the_noise_that_the_target_will_use),
        cmocka_unit_test(test_choice__at_temperature_0_guesses_are_the_largest),
        cmocka_unit_test(test_choice__what_is_banned_is_not_guessed),
        cmocka_unit_test(test_choice__asks_for_as_many_as_are_to_be_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
