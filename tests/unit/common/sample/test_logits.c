#include "common/base/rng.h"
#include "common/sample/logits.h"
#include "tests/law/naive_bias.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 64, LONGEST = 40, CASES = 5000, IDS = 12 /* that occur: few, so that bad words are met */ };

static uint32_t word(uint32_t at, uint32_t index)
{
    uint32_t words[4];

    rng_words(&(struct rng_key){.seed = 3, .request = at}, RNG_TREE, index, words);
    return words[0];
}

static int is_banned(float logit)
{
    return logit == -INFINITY;
}

static int32_t token(uint32_t at, uint32_t index)
{
    return (int32_t)(word(at, index) % IDS * 5);
}

static struct sampling random_sampling(uint32_t at)
{
    static const double factors[] = {1.0, 1.3, 0.5, 4.0}, terms[] = {0.0, 0.7, -1.5, 2.0}, temperatures[] = {0.0, 0.7, 1.0, 2.0};
    struct sampling s = sampling_default;

    s.temperature = temperatures[word(at, 503) % 4];
    s.repetition_penalty = factors[word(at, 500) % 4];
    s.presence_penalty = terms[word(at, 501) % 4];
    s.frequency_penalty = terms[word(at, 502) % 4];
    return s;
}

static void random_bias(uint32_t at, struct bias *bias)
{
    memset(bias, 0x5a, sizeof *bias); /* what is not in use is not read */
    bias_init(bias);
    for (uint32_t i = 0; i < word(at, 800) % 6; i++)
        bias_add_token(bias, token(at, 810 + i), (double)(int32_t)word(at, 820 + i) * 0x1p-31 * BIAS_LIMIT);
    for (uint32_t w = 0; w < word(at, 801) % 6; w++) {
        bias->length[w] = 1 + (int32_t)(word(at, 830 + w) % (w == 0 ? BIAS_MAX_WORD : 3));
        for (uint32_t i = 0; i < (uint32_t)bias->length[w]; i++)
            bias->word[w][i] = token(at, 840 + 16 * w + i);
        bias->words++;
    }
    bias->min_tokens = (int32_t)(word(at, 802) % 30);
    for (uint32_t i = 0; i < word(at, 803) % 4; i++)
        bias->ender[bias->enders++] = token(at, 960 + i);
}

/* On the whole row and on 2 and 4 shards of it, against the definitions written out. */
static void test_logits__equal_the_processors_of_hugging_face(void **state)
{
    int banned = 0, by_long_words = 0;

    (void)state;
    for (uint32_t r = 0; r < CASES; r++) {
        const struct sampling sampling = random_sampling(r);
        int count = (int)(word(r, 600) % (LONGEST + 1)), prompt = count > 0 ? (int)(word(r, 601) % (uint32_t)count) : 0;
        int32_t tokens[LONGEST], tally[VOCAB] = {0};
        float raw[VOCAB], expected[VOCAB], got[VOCAB];
        struct bias bias;

        random_bias(r, &bias);
        for (int i = 0; i < count; i++)
            tokens[i] = token(r, 700 + (uint32_t)i);
        for (uint32_t i = 0; i < VOCAB; i++)
            raw[i] = (float)word(r, i) * 0x1p-29f - 4;
        naive_bias_process(&sampling, &bias, raw, VOCAB, tokens, count, prompt, expected);
        const struct history history = {.tokens = tokens, .base = count, .prompt_count = prompt};
        for (int shards = 1; shards <= 4; shards *= 2) {
            memcpy(got, raw, sizeof got);
            for (int s = 0; s < shards; s++)
                logits_process(&sampling, &bias, &history, got + s * VOCAB / shards, s * VOCAB / shards, VOCAB / shards, tally);
            assert_memory_equal(got, expected, sizeof got);
            assert_true(logits_are_processed(&sampling, &bias) || memcmp(got, raw, sizeof got) == 0);
        }
        for (int v = 0; v < VOCAB; v++)
            banned += is_banned(got[v]);
        for (int w = 0; w < bias.words; w++)
            by_long_words += bias.length[w] == 3 && is_banned(got[bias.word[w][2]]);
    }
    assert_true(banned > CASES / 2 && by_long_words > 20); /* they happened */
}

enum { NODES = 24, BASE = 9 };

/* A random tree of drafts behind BASE committed tokens: each node's mask holds itself and its ancestors. */
static void random_tree(uint32_t at, uint64_t *ancestors)
{
    for (uint32_t node = 0; node < NODES; node++) {
        uint32_t parent = word(at, 400 + node) % (node + 1); /* 0: behind the committed tokens, else the node before it */

        ancestors[node] = UINT64_C(1) << node | (parent > 0 ? ancestors[parent - 1] : 0);
    }
}

/* Against the same path as a chain, whatever lies between its places. */
static void test_logits__a_node_of_a_tree_sees_its_ancestors_and_not_its_siblings(void **state)
{
    int by_siblings = 0, forks = 0;

    (void)state;
    for (uint32_t r = 0; r < 300; r++) {
        const struct sampling sampling = random_sampling(r);
        int32_t tokens[BASE + NODES], tally[VOCAB] = {0};
        uint64_t ancestors[NODES] = {0};
        struct bias bias;

        random_bias(r, &bias);
        random_tree(r, ancestors);
        for (int i = 0; i < BASE + NODES; i++)
            tokens[i] = token(r, 700 + (uint32_t)i);
        for (int node = 0; node < NODES; node++) {
            float got[VOCAB], expected[VOCAB], by_place[VOCAB];
            int32_t path[BASE + NODES];
            int count = BASE;

            memcpy(path, tokens, BASE * sizeof *path);
            for (int i = 0; i <= node; i++)
                if (ancestors[node] >> i & 1)
                    path[count++] = tokens[BASE + i];
            for (uint32_t v = 0; v < VOCAB; v++)
                got[v] = expected[v] = by_place[v] = (float)word(r, v) * 0x1p-29f - 4;
            logits_process(&sampling, &bias, &(struct history){tokens, BASE, ancestors[node], 4}, got, 0, VOCAB, tally);
            logits_process(&sampling, &bias, &(struct history){path, count, 0, 4}, expected, 0, VOCAB, tally);
            logits_process(&sampling, &bias, &(struct history){tokens, BASE + node + 1, 0, 4}, by_place, 0, VOCAB, tally);
            assert_memory_equal(got, expected, sizeof got);
            forks += count < BASE + node + 1;
            by_siblings += memcmp(got, by_place, sizeof got) != 0;
        }
    }
    assert_true(forks > 300 * NODES / 2 && by_siblings > forks / 2); /* what a chain by place would have made of it */
}

static void process(const struct sampling *sampling, const struct bias *bias, const int32_t *tokens, int count, int prompt, float *logits)
{
    const struct history history = {.tokens = tokens, .base = count, .prompt_count = prompt};
    int32_t tally[4] = {0};

    logits_process(sampling, bias, &history, logits, 0, 4, tally);
}

static void test_logits__bias_is_added_before_the_repetition_penalty(void **state)
{
    struct sampling sampling = sampling_default;
    struct bias bias;
    const int32_t tokens[] = {1};
    float logits[4] = {1, -1, 1, 1};

    (void)state;
    bias_init(&bias);
    bias_add_token(&bias, 1, 3.0);
    bias_add_token(&bias, 0, -0.5);
    sampling.repetition_penalty = 2;
    process(&sampling, &bias, tokens, 1, 1, logits);
    assert_true(logits[0] == 0.5f && logits[1] == 1.0f && logits[2] == 1.0f); /* (-1 + 3) / 2 */
}

static void test_logits__a_bad_word_is_banned_behind_its_first_tokens_alone(void **state)
{
    struct bias bias;
    const int32_t tokens[] = {3, 1, 2};

    (void)state;
    bias_init(&bias);
    bias.words = 2;
    bias.length[0] = 3;
    memcpy(bias.word[0], (int32_t[]){1, 2, 0}, 3 * sizeof(int32_t));
    bias.length[1] = 1;
    bias.word[1][0] = 3;
    for (int count = 0; count <= 3; count++) {
        float logits[4] = {0};

        process(&sampling_default, &bias, tokens, count, 2, logits); /* the word begins in the prompt */
        assert_int_equal(is_banned(logits[0]), count == 3);
        assert_true(is_banned(logits[3]));
        assert_false(is_banned(logits[1]) || is_banned(logits[2]));
    }
}

static void test_logits__a_ban_is_stronger_than_any_bias_and_penalty(void **state)
{
    struct sampling sampling = sampling_default;
    struct bias bias;
    const int32_t tokens[] = {2, 2, 2};
    float logits[4] = {0, 0, 5, 0};

    (void)state;
    bias_init(&bias);
    bias_add_token(&bias, 2, BIAS_LIMIT);
    bias.words = 1;
    bias.length[0] = 1;
    bias.word[0][0] = 2;
    sampling.repetition_penalty = 0.01;
    sampling.presence_penalty = sampling.frequency_penalty = -2;
    sampling.temperature = 0.01;
    process(&sampling, &bias, tokens, 3, 0, logits);
    assert_true(is_banned(logits[2]));
}

static void test_logits__enders_come_after_min_tokens_generated_ones(void **state)
{
    struct bias bias;
    const int32_t tokens[] = {1, 1, 2, 2, 2};

    (void)state;
    bias_init(&bias);
    bias.min_tokens = 2;
    bias.enders = 2;
    bias.ender[0] = 0;
    bias.ender[1] = 3;
    for (int count = 2; count <= 5; count++) {
        float logits[4] = {0};

        process(&sampling_default, &bias, tokens, count, 2, logits);
        assert_int_equal(is_banned(logits[0]), count - 2 < 2);
        assert_int_equal(is_banned(logits[3]), count - 2 < 2);
        assert_false(is_banned(logits[1]));
    }
}

static void test_logits__an_empty_bias_changes_nothing(void **state)
{
    struct bias bias;
    struct sampling sampling = sampling_default;

    (void)state;
    bias_init(&bias);
    assert_false(logits_are_processed(&sampling, &bias));
    assert_false(logits_are_processed(&sampling, NULL));
    bias.min_tokens = 5; /* with nothing that it could hold back */
    assert_false(logits_are_processed(&sampling, &bias));
    bias.enders = 1;
    assert_true(logits_are_processed(&sampling, &bias));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits__equal_the_processors_of_hugging_face),
        cmocka_unit_test(test_logits__a_node_of_a_tree_sees_its_ancestors_and_not_its_siblings),
        cmocka_unit_test(test_logits__bias_is_added_before_the_repetition_penalty),
        cmocka_unit_test(test_logits__a_bad_word_is_banned_behind_its_first_tokens_alone),
        cmocka_unit_test(test_logits__a_ban_is_stronger_than_any_bias_and_penalty),
        cmocka_unit_test(test_logits__enders_come_after_min_tokens_generated_ones),
        cmocka_unit_test(test_logits__an_empty_bias_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
