/* The token that is expected behind a draft: what the target would add there if its row were the draft's. */
#include "common/base/rng.h"
#include "common/sample/choice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { VOCAB = 9, ROWS = 400 };

/* A row of logits that falls, answered as choice_ask asks. */
static struct row_query answered(const struct sampling *sampling, uint32_t row, struct scored_token *best /* [VOCAB] */)
{
    struct row_query query = {.key = {.seed = 3, .request = 1, .position = row}, .best = best, .best_count = VOCAB};

    choice_ask(sampling, VOCAB, &query);
    query.stats = (struct row_stats){.max = 2.0f, .argmax = 4};
    for (int i = 0; i < VOCAB; i++) {
        best[i] = (struct scored_token){.score = 2.0f - 0.3f * (float)i, .token = (4 + 2 * i) % VOCAB};
        query.stats.sum += exp((double)best[i].score - 2.0);
    }
    query.winner = (struct scored_token){.score = 9, .token = 7};
    return query;
}

/* The best of these with the noise of this purpose: what the target's draw is of its own row. */
static int32_t best_with(const struct row_query *query, int kept, enum rng_purpose purpose)
{
    struct scored_token best = {.score = -INFINITY, .token = -1};

    for (int i = 0; i < kept; i++) {
        float score = query->best[i].score + rng_gumbel(&query->key, purpose, (uint32_t)query->best[i].token);

        if (score > best.score)
            best = (struct scored_token){.score = score, .token = query->best[i].token};
    }
    return best.token;
}

static void test_choice__behind_drafts_of_a_q_the_bonus_is_expected_by_its_own_noise(void **state)
{
    struct sampling sampling = sampling_default;
    int differs = 0;

    (void)state;
    sampling.temperature = 1.0;
    for (int truncates = 0; truncates <= 1; truncates++) {
        sampling.top_k = truncates ? 3 : 0;
        for (uint32_t row = 0; row < ROWS; row++) {
            struct scored_token best[VOCAB];
            struct row_query query = answered(&sampling, row, best);
            double p[VOCAB];
            int32_t expected = best_with(&query, truncates ? 3 : VOCAB, RNG_RESIDUAL);

            assert_int_equal(choice_expect(&sampling, VOCAB, &query, p), expected);
            differs += expected != best_with(&query, truncates ? 3 : VOCAB, RNG_NOISE);
        }
    }
    assert_true(differs > ROWS / 4);
}

static void test_choice__point_masses_expect_what_they_would_draft(void **state)
{
    struct sampling sampling = sampling_default;
    struct scored_token best[VOCAB];
    struct sparse_q q;
    double p[VOCAB];

    (void)state;
    for (int coupled = 0; coupled <= 1; coupled++) {
        sampling.temperature = coupled ? 0.7 : 0.0;
        sampling.accept = coupled ? ACCEPT_COUPLED : ACCEPT_REJECTION;
        struct row_query query = answered(&sampling, 5, best);

        assert_int_equal(choice_expect(&sampling, VOCAB, &query, p), coupled ? 7 : 4);
        assert_int_equal(choice_expect(&sampling, VOCAB, &query, p), choice_draw(&sampling, VOCAB, VOCAB, &query, p, &q));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice__behind_drafts_of_a_q_the_bonus_is_expected_by_its_own_noise),
        cmocka_unit_test(test_choice__point_masses_expect_what_they_would_draft),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
