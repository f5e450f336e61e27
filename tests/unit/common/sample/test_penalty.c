#include "common/base/rng.h"
#include "common/sample/penalty.h"
#include "tests/law/naive_law.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 64, LONGEST = 40 };

static uint32_t word(uint32_t at, uint32_t index)
{
    uint32_t words[4];

    rng_words(&(struct rng_key){.seed = 2, .request = at}, RNG_TREE, index, words);
    return words[0];
}

static struct sampling random_sampling(uint32_t at)
{
    static const double factors[] = {1.0, 1.3, 0.5, 4.0}, terms[] = {0.0, 0.7, -1.5, 2.0};
    struct sampling s = sampling_default;

    s.temperature = 1.0;
    s.repetition_penalty = factors[word(at, 500) % 4];
    s.presence_penalty = terms[word(at, 501) % 4];
    s.frequency_penalty = terms[word(at, 502) % 4];
    return s;
}

/* On the whole row and on four shards of it, against a count made for each token anew. */
static void test_penalty__equals_the_naive_count(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < 5000; r++) {
        const struct sampling sampling = random_sampling(r);
        int count = (int)(word(r, 600) % (LONGEST + 1)), prompt = count > 0 ? (int)(word(r, 601) % (uint32_t)count) : 0;
        int32_t history[LONGEST], tally[VOCAB] = {0};
        float raw[VOCAB], expected[VOCAB], got[VOCAB];

        for (int i = 0; i < count; i++)
            history[i] = (int32_t)(word(r, 700 + (uint32_t)i) % 24 * 3 % VOCAB);
        for (uint32_t i = 0; i < VOCAB; i++)
            raw[i] = (float)word(r, i) * 0x1p-29f - 4;
        naive_process(&sampling, raw, VOCAB, history, count, prompt, expected);
        for (int shards = 1; shards <= 4; shards *= 4) {
            memcpy(got, raw, sizeof got);
            for (int s = 0; s < shards; s++)
                penalty_apply(&sampling, &(struct history){.tokens = history, .base = count, .prompt_count = prompt}, got + s * VOCAB / shards,
                              s * VOCAB / shards, VOCAB / shards, tally);
            assert_memory_equal(got, expected, sizeof got);
            for (int i = 0; i < VOCAB; i++)
                assert_int_equal(tally[i], 0);
        }
    }
}

static void test_penalty__prompt_counts_for_repetition_alone(void **state)
{
    struct sampling sampling = sampling_default;
    const int32_t history[] = {1, 1, 2};
    int32_t tally[4] = {0};
    float logits[4] = {1, 1, 1, -1};

    (void)state;
    sampling.repetition_penalty = 2;
    sampling.presence_penalty = 0.25;
    sampling.frequency_penalty = 0.5;
    penalty_apply(&sampling, &(struct history){.tokens = history, .base = 3, .prompt_count = 2}, logits, 0, 4, tally);
    assert_true(logits[0] == 1.0f);
    assert_true(logits[1] == 0.5f);
    assert_true(logits[2] == 0.5f - 0.75f);
    assert_true(logits[3] == -1.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_penalty__equals_the_naive_count),
        cmocka_unit_test(test_penalty__prompt_counts_for_repetition_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
