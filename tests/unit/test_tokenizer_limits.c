/* What a tokenizer refuses, and what it takes in good time: bad files, runaway patterns, long runs. */
#include "common/text/tokenizer.h"
#include "test_tokenizer_files.h"

#include <stdlib.h>
#include <string.h>

/* cmocka needs these four in front of it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The run would take an hour in quadratic time. */
static void test_tokenizer__long_runs_of_one_character(void **state)
{
    enum { LENGTH = 4 << 20 };
    struct tokenizer *tokenizer;
    char *text = malloc(LENGTH);

    (void)state;
    assert_non_null(text);
    assert_int_equal(tokenizer_open(TANDEM_SOURCE_DIR "/launch/demo/target", 0, &tokenizer), STATUS_OK);
    for (const char *byte = "a \n0e"; *byte != '\0'; byte++) {
        size_t total = 0;
        int32_t *tokens;
        int count;

        memset(text, *byte, LENGTH);
        assert_int_equal(tokenizer_encode(tokenizer, text, LENGTH, 0, &tokens, &count, NULL), STATUS_OK);
        for (int i = 0; i < count; i++) {
            size_t length;

            tokenizer_piece(tokenizer, tokens[i], 0, 0, &length);
            total += length;
        }
        assert_int_equal(total, LENGTH);
        free(tokens);
    }
    free(text);
    tokenizer_close(tokenizer);
}

static void check_refused(const char *name, const char *bytes, size_t length, int vocab_size)
{
    const char *path = test_tokenizer_files_scratch(name);
    struct tokenizer *tokenizer = NULL;

    test_tokenizer_files_write(path, bytes, length);
    if (tokenizer_open(path, vocab_size, &tokenizer) != STATUS_DATA || tokenizer != NULL)
        fail_msg("not refused: %s", bytes);
}

static void test_tokenizer__bad_files_are_refused(void **state)
{
#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}"
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"a\":1,\"a\":2}",
        "nul\001",
        "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0.0]]}}",
        "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}",
        "{\"model\":{\"type\":\"x\\nforged: line\"}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":99999999999},\"merges\":[]}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0.5},\"merges\":[]}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}",
        "{\"model\":{\"type\":\"BPE\",\"dropout\":0.1,\"vocab\":{\"a\":0},\"merges\":[]}}",
        "{\"model\":{\"type\":\"BPE\",\"unk_token\":\"z\",\"vocab\":{\"a\":0},\"merges\":[]}}",
        "{\"normalizer\":{\"type\":\"Lowercase\"}," MODEL,
        "{\"normalizer\":{}," MODEL,
        "{\"decoder\":{\"type\":\"WordPiece\"}," MODEL,
        "{\"pre_tokenizer\":{\"type\":\"Whitespace\"}," MODEL,
        "{\"decoder\":{\"type\":\"ByteLevel\"}," MODEL,
        "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"},\"behavior\":\"Isolated\"}," MODEL,
        "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Removed\"}," MODEL,
        "{\"post_processor\":{\"type\":\"BertProcessing\"}," MODEL,
        "{\"added_tokens\":[{\"id\":1,\"content\":\"a\"}]," MODEL,
        "{\"added_tokens\":[{\"id\":1,\"content\":\"z\"}]," MODEL,
    };
    static const char entry[] = "\5\0\0\0\0\0\0\0\1\0\0\0a";
    struct tokenizer *tokenizer;
    char *deep = malloc(100001);

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check_refused("bad.json", bad[i], strlen(bad[i]), 0);
    memset(deep, '[', 100000);
    deep[100000] = '\0';
    check_refused("deep.json", deep, 100000, 0);
    free(deep);
    check_refused("short.bin", entry, 2, 3);
    check_refused("short.bin", entry, sizeof entry - 1, 3);
    check_refused("short.bin", entry, sizeof entry - 1, 0);
    assert_int_equal(tokenizer_open("/nowhere/at/all", 0, &tokenizer), STATUS_NOINPUT);
    assert_int_equal(tokenizer_open(TANDEM_SOURCE_DIR "/common", 0, &tokenizer), STATUS_NOINPUT);
}

/* A pattern that backtracks without end meets its limit, not the watchdog. */
static void test_tokenizer__a_runaway_pattern_ends(void **state)
{
    static const char json[] =
        "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"^(a+)+$\"},\"behavior\":\"Isolated\"}," MODEL;
    const char *path = test_tokenizer_files_scratch("runaway.json");
    struct tokenizer *tokenizer;
    int32_t *tokens;
    int count;

    (void)state;
    test_tokenizer_files_write(path, json, strlen(json));
    assert_int_equal(tokenizer_open(path, 0, &tokenizer), STATUS_OK);
    assert_int_equal(tokenizer_encode(tokenizer, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 46, 0, &tokens, &count, NULL),
                     STATUS_DATA);
    tokenizer_close(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokenizer__long_runs_of_one_character),
        cmocka_unit_test(test_tokenizer__bad_files_are_refused),
        cmocka_unit_test(test_tokenizer__a_runaway_pattern_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
