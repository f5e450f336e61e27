#include "common/sample/bias.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 1000 };

/* One of everything. */
static struct bias some(void)
{
    struct bias bias;

    memset(&bias, 0, sizeof bias);
    bias_add_token(&bias, 7, -1.5);
    bias_add_token(&bias, 3, 100);
    bias.words = 2;
    bias.length[0] = 1;
    bias.word[0][0] = 5;
    bias.length[1] = 2;
    bias.word[1][0] = 6;
    bias.word[1][1] = 999;
    bias.min_tokens = 4;
    bias.enders = 1;
    bias.ender[0] = 9;
    return bias;
}

static void expect(const struct bias *bias, int vocab, const char *part)
{
    char reason[160] = "";
    enum status status = bias_check(bias, vocab, reason, sizeof reason);

    assert_int_equal(status, part == NULL ? STATUS_OK : STATUS_USAGE);
    if (part != NULL && strstr(reason, part) == NULL)
        fail_msg("got \"%s\", expected \"%s\"", reason, part);
}

static void test_bias__tokens_stand_in_order_and_once(void **state)
{
    struct bias bias = some();

    (void)state;
    assert_int_equal(bias.token[0], 3);
    assert_int_equal(bias.token[1], 7);
    assert_true(bias.value[0] == 100 && bias.value[1] == -1.5);
    assert_int_equal(bias_add_token(&bias, 7, 2), 0);
    assert_int_equal(bias_add_token(&bias, 5, 2), 1);
    assert_int_equal(bias.tokens, 3);
    assert_true(bias.value[1] == 2 && bias.value[2] == -1.5);
    expect(&bias, VOCAB, NULL);
}

static void test_bias__what_is_out_of_range_is_named(void **state)
{
    struct bias bias = some();

    (void)state;
    expect(&bias, VOCAB, NULL);
    expect(&bias, 999, "bad_words has token 999, expected an id from 0 to 998");
    bias.token[1] = -1;
    expect(&bias, VOCAB, "logit_bias is for token -1");
    bias.token[1] = 3;
    expect(&bias, VOCAB, "logit_bias is for token 3 twice");
    bias.token[1] = VOCAB;
    expect(&bias, VOCAB, "logit_bias is for token 1000, expected an id from 0 to 999");
    bias = some();
    for (int i = 0; i < 3; i++) {
        bias.value[1] = (double[]){NAN, INFINITY, 100.5}[i];
        expect(&bias, VOCAB, "expected a number from -100 to 100");
    }
    bias = some();
    bias.tokens = BIAS_MAX_TOKENS + 1;
    expect(&bias, VOCAB, "logit_bias has 301 tokens, expected at most 300");
    bias = some();
    bias.words = BIAS_MAX_WORDS + 1;
    expect(&bias, VOCAB, "bad_words has 65 token sequences, expected at most 64");
    bias = some();
    bias.length[1] = 0;
    expect(&bias, VOCAB, "a sequence of bad_words has 0 tokens, expected 1 to 16");
    bias.length[1] = BIAS_MAX_WORD + 1;
    expect(&bias, VOCAB, "a sequence of bad_words has 17 tokens, expected 1 to 16");
    bias = some();
    bias.ender[0] = VOCAB;
    expect(&bias, VOCAB, "stop_token_ids has token 1000");
    bias.enders = BIAS_MAX_ENDERS + 1;
    expect(&bias, VOCAB, "stop_token_ids has 74 tokens");
    bias = some();
    bias.min_tokens = -1;
    expect(&bias, VOCAB, "min_tokens is -1");
}

static void test_bias__never_bans_all_tokens(void **state)
{
    struct bias bias;

    (void)state;
    bias_init(&bias);
    for (; bias.words < 7; bias.words++) {
        bias.length[bias.words] = 1;
        bias.word[bias.words][0] = bias.words;
    }
    expect(&bias, 8, NULL);
    expect(&bias, 7, "could ban all 7 tokens");
    bias.min_tokens = 1;
    bias.ender[bias.enders++] = 7;
    expect(&bias, 8, "could ban all 8 tokens");
}

/* The digest covers every number in use and none that is not. */
static void test_bias__digest_covers_all_that_is_asked(void **state)
{
    struct bias whole = some();
    int32_t *const number[] = {&whole.tokens,     &whole.words,      &whole.enders,     &whole.min_tokens, &whole.token[0], &whole.token[1],
                               &whole.length[0],  &whole.length[1],  &whole.word[0][0], &whole.word[1][0], &whole.word[1][1], &whole.ender[0]};
    uint64_t digest = bias_digest(&whole, 77);

    (void)state;
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) {
        ++*number[i];
        assert_true(bias_digest(&whole, 77) != digest);
        --*number[i];
    }
    for (int i = 0; i < 2; i++) {
        whole.value[i] += 0.5;
        assert_true(bias_digest(&whole, 77) != digest);
        whole.value[i] -= 0.5;
    }
    whole.token[2] = 1;
    whole.word[0][1] = 1;
    whole.length[2] = 1;
    whole.ender[1] = 1;
    assert_int_equal(bias_digest(&whole, 77), digest);
    assert_true(bias_digest(&whole, 78) != digest);
}

static void test_bias__digest_of_nothing_is_none(void **state)
{
    struct bias bias = some();

    (void)state;
    bias_init(&bias);
    assert_true(bias_is_empty(&bias) && bias_is_empty(NULL));
    assert_int_equal(bias_digest(&bias, 77), 77);
    assert_int_equal(bias_digest(NULL, 77), 77);
    bias.enders = 1; /* held back for no tokens */
    assert_int_equal(bias_digest(&bias, 77), 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bias__tokens_stand_in_order_and_once),  cmocka_unit_test(test_bias__what_is_out_of_range_is_named),
        cmocka_unit_test(test_bias__never_bans_all_tokens),           cmocka_unit_test(test_bias__digest_covers_all_that_is_asked),
        cmocka_unit_test(test_bias__digest_of_nothing_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
