#include "common/sample/distribution.h"
#include "common/sample/penalty.h"
#include "tests/law/naive_law.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 40, ROWS = 10000, HISTORY = 12, PROMPT = 5 };

static double uniform(uint32_t at, uint32_t index)
{
    return rng_uniform(&(struct rng_key){.seed = 21, .request = at, .position = index}, RNG_TREE);
}

static struct sampling random_sampling(uint32_t at)
{
    struct sampling s = sampling_default;

    s.temperature = 0.2 + 2 * uniform(at, 1000);
    s.top_k = uniform(at, 1001) < 0.5 ? 0 : 1 + (int)(45 * uniform(at, 1002));
    s.top_p = uniform(at, 1003) < 0.4 ? 1 : 0.01 + 0.98 * uniform(at, 1004);
    s.min_p = uniform(at, 1005) < 0.5 ? 0 : 0.9 * uniform(at, 1006);
    s.repetition_penalty = uniform(at, 1007) < 0.5 ? 1 : 0.5 + 2 * uniform(at, 1008);
    s.presence_penalty = uniform(at, 1009) < 0.5 ? 0 : 4 * uniform(at, 1010) - 2;
    s.frequency_penalty = uniform(at, 1011) < 0.5 ? 0 : 4 * uniform(at, 1012) - 2;
    return s;
}

struct made {
    struct sampling sampling;
    int32_t history[HISTORY];
    float raw[VOCAB];
    struct scored_token best[VOCAB];
    double sum; /* of exp(score - best's) */
};

/* Logits through the real penalties and scale, sorted. */
static void make(uint32_t at, struct made *made)
{
    int32_t tally[VOCAB] = {0};
    float logits[VOCAB];

    made->sampling = random_sampling(at);
    for (uint32_t i = 0; i < HISTORY; i++)
        made->history[i] = (int32_t)(VOCAB * uniform(at, 2000 + i));
    for (uint32_t i = 0; i < VOCAB; i++)
        made->raw[i] = (float)(12 * uniform(at, i) - 6);
    for (int i = 0; at % 5 == 0 && i < VOCAB; i++)
        made->raw[i] = floorf(made->raw[i]); /* ties */
    memcpy(logits, made->raw, sizeof logits);
    penalty_apply(&made->sampling, &(struct history){.tokens = made->history, .base = HISTORY, .prompt_count = PROMPT}, logits, 0, VOCAB, tally);
    for (int i = 0; i < VOCAB; i++)
        made->best[i] = (struct scored_token){.score = logits[i] * distribution_scale(&made->sampling), .token = i};
    distribution_sort(made->best, VOCAB);
    made->sum = 0;
    for (int i = 0; i < VOCAB; i++)
        made->sum += exp((double)made->best[i].score - (double)made->best[0].score);
}

static void compare(const struct made *made, const double *expected, int kept, const double *p)
{
    double sum = 0;
    int count = 0;

    for (int i = 0; i < VOCAB; i++)
        count += expected[i] > 0;
    assert_int_equal(kept, count);
    for (int i = 0; i < kept; i++) {
        assert_true(fabs(p[i] - expected[made->best[i].token]) < 1e-12);
        sum += p[i];
    }
    assert_true(fabs(sum - 1) < 1e-12);
}

static void test_distribution__truncates_as_hugging_face_does(void **state)
{
    static struct made made;
    double expected[VOCAB], p[VOCAB];

    (void)state;
    for (uint32_t r = 0; r < ROWS; r++) {
        make(r, &made);
        if (naive_law(&made.sampling, made.raw, VOCAB, made.history, HISTORY, PROMPT, expected) < 1e-12)
            continue; /* two ways of rounding may differ */
        compare(&made, expected, distribution_truncate(&made.sampling, made.best, VOCAB, 1, made.sum, p), p);
    }
}

/* Would every row that begins with this list and has this mass be cut alike? What comes after the list may be anything from nothing to
 * as probable as its last token. */
static int is_decidable(const struct sampling *s, const struct made *made, int count)
{
    double listed = 0, best = (double)made->best[0].score;
    int by_k = s->top_k > 0 && s->top_k <= count, by_p = 0, by_min = 0;
    double mass = 0;

    for (int i = 0; i < (by_k ? s->top_k : VOCAB); i++)
        mass += exp((double)made->best[i].score - best);
    for (int i = 0; i < count; i++) {
        double weight = exp((double)made->best[i].score - best);

        listed += weight;
        by_p |= s->top_p < 1 && listed >= s->top_p * mass;
        by_min |= s->min_p > 0 && weight < s->min_p;
    }
    if (s->top_k > 0 && !by_k && s->top_p < 1)
        return 0; /* the mass of the k best is not known */
    return by_k || by_p || by_min;
}

static void test_distribution__short_list_gives_the_same_or_says_that_it_cannot(void **state)
{
    static struct made made;
    double expected[VOCAB], p[VOCAB];
    int decided = 0;

    (void)state;
    for (uint32_t r = 0; r < ROWS; r++) {
        int count = 1 + (int)(r % (VOCAB - 1));

        make(r, &made);
        if (naive_law(&made.sampling, made.raw, VOCAB, made.history, HISTORY, PROMPT, expected) < 1e-12)
            continue;
        int kept = distribution_truncate(&made.sampling, made.best, count, 0, made.sum, p);

        assert_int_equal(kept > 0, is_decidable(&made.sampling, &made, count));
        if (kept > 0)
            compare(&made, expected, kept, p);
        decided += kept > 0;
    }
    assert_true(decided > ROWS / 4 && decided < ROWS - ROWS / 10);
}

static void test_distribution__sort_puts_ties_by_rising_id(void **state)
{
    struct scored_token tokens[500];

    (void)state;
    for (uint32_t r = 0; r < 200; r++) {
        int count = (int)(r * 5 / 2);

        for (int i = 0; i < count; i++)
            tokens[i] = (struct scored_token){.score = floorf((float)(9 * uniform(r, (uint32_t)i))), .token = (i * 307) % 499};
        distribution_sort(tokens, count);
        for (int i = 1; i < count; i++)
            assert_true(tokens[i - 1].score > tokens[i].score ||
                        (tokens[i - 1].score == tokens[i].score && tokens[i - 1].token <= tokens[i].token));
    }
}

static void test_distribution__lists_that_are_merged_are_the_list_of_all(void **state)
{
    struct scored_token all[500], parts[500], list[500];

    (void)state;
    for (uint32_t r = 0; r < 200; r++) {
        int count = (int)(r * 5 / 2), first = (int)(uniform(r, 1000) * (count + 1)), second = first + (int)(uniform(r, 1001) * (count - first + 1));

        for (int i = 0; i < count; i++)
            all[i] = parts[i] = (struct scored_token){.score = floorf((float)(9 * uniform(r, (uint32_t)i))), .token = (i * 307) % 499};
        distribution_sort(all, count);
        distribution_sort(parts, first);
        distribution_sort(parts + first, second - first);
        distribution_sort(parts + second, count - second);
        distribution_merge(list, 0, parts, first);
        distribution_merge(list, first, parts + first, second - first);
        distribution_merge(list, second, parts + second, count - second);
        assert_memory_equal(list, all, (size_t)count * sizeof *all);
    }
}

static void test_distribution__tiny_temperature_keeps_logits_finite(void **state)
{
    struct sampling sampling = sampling_default;

    (void)state;
    assert_true(distribution_scale(&sampling) == 1.0f);
    sampling.temperature = 0.5;
    assert_true(distribution_scale(&sampling) == 2.0f);
    sampling.temperature = 5e-324;
    assert_true(isfinite(distribution_scale(&sampling) * 1e6f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distribution__truncates_as_hugging_face_does),
        cmocka_unit_test(test_distribution__short_list_gives_the_same_or_says_that_it_cannot),
        cmocka_unit_test(test_distribution__sort_puts_ties_by_rising_id),
        cmocka_unit_test(test_distribution__lists_that_are_merged_are_the_list_of_all),
        cmocka_unit_test(test_distribution__tiny_temperature_keeps_logits_finite),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
