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
        fail_msg("not refused: %.200s", bytes);
}

static void test_tokenizer__bad_files_are_refused(void **state)
{
#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}"
#define METASPACE  "{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\"}"
#define METASPACES METASPACE "," METASPACE "," METASPACE
#define SEQUENCE   "{\"Sequence\":{\"id\":\"A\"}}"
#define SPECIAL    "{\"SpecialToken\":{\"id\":\"s\"}}"
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
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"z a\"]}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\" \"]}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\",0]]}}",
        "{\"model\":{\"type\":\"a name that is longer than what is shown of the name of a type\"}}",
        "{\"model\":{\"type\":\"BPE\",\"dropout\":0.1,\"vocab\":{\"a\":0},\"merges\":[]}}",
        "{\"model\":{\"type\":\"BPE\",\"unk_token\":\"z\",\"vocab\":{\"a\":0},\"merges\":[]}}",
        "{\"normalizer\":{\"type\":\"Lowercase\"}," MODEL,
        "{\"normalizer\":{}," MODEL,
        "{\"decoder\":{\"type\":\"WordPiece\"}," MODEL,
        "{\"pre_tokenizer\":{\"type\":\"Whitespace\"}," MODEL,
        "{\"decoder\":{\"type\":\"ByteLevel\"}," MODEL,
        "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"},\"behavior\":\"Isolated\"}," MODEL,
        "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Removed\"}," MODEL,
        "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"}}," MODEL,
        "{\"pre_tokenizer\":{\"type\":\"Metaspace\"}," MODEL,
        "{\"decoder\":{\"type\":\"Strip\",\"start\":1,\"stop\":0}," MODEL,
        "{\"decoder\":{\"type\":\"Strip\",\"content\":\" \",\"start\":-1,\"stop\":0}," MODEL,
        "{\"decoder\":{\"type\":\"Strip\",\"content\":\" \",\"start\":2,\"stop\":0}," MODEL,
        "{\"decoder\":{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":1}," MODEL,
        "{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[" METASPACES "," METASPACES "," METASPACES "]}," MODEL,
        "{\"post_processor\":{\"type\":\"BertProcessing\"}," MODEL,
        "{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{}}," SEQUENCE "]}," MODEL,
        "{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[" SEQUENCE "," SEQUENCE "]}," MODEL,
        "{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[" SPECIAL "," SEQUENCE
        "],\"special_tokens\":{\"s\":{\"ids\":[-1]}}}," MODEL,
        "{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[" SPECIAL "," SEQUENCE "],\"special_tokens\":{\"s\":{\"ids\":[2]}}},"
        "\"added_tokens\":[{\"id\":3,\"content\":\"behind a gap\"}]," MODEL,
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
    check_refused("short.bin", entry, sizeof entry - 1, INT32_MAX);
    assert_int_equal(tokenizer_open("/nowhere/at/all", 0, &tokenizer), STATUS_NOINPUT);
    assert_int_equal(tokenizer_open(TANDEM_SOURCE_DIR "/common", 0, &tokenizer), STATUS_NOINPUT);
}

static void test_tokenizer__more_merges_than_two_million_are_refused(void **state)
{
    enum { MOST = 2 << 20 };
    static const char begin[] = "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"aa\":1},\"merges\":[\"a a\"", more[] = ",\"a a\"";
    char *json = malloc(sizeof begin + (sizeof more - 1) * MOST + sizeof "]}}");
    size_t used = sizeof begin - 1;

    (void)state;
    assert_non_null(json);
    memcpy(json, begin, used);
    for (int i = 0; i < MOST; i++, used += sizeof more - 1)
        memcpy(json + used, more, sizeof more - 1);
    strcpy(json + used, "]}}");
    check_refused("merges.json", json, used + 3, 0);
    free(json);
}

/* What older files spell out, and what says that nothing is done. */
static void test_tokenizer__options_that_change_nothing_are_taken(void **state)
{
    static const char json[] = "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"add_prefix_space\":false},"
                               "\"decoder\":{\"type\":\"Strip\",\"content\":\" \",\"start\":0,\"stop\":0},"
                               "\"model\":{\"type\":\"BPE\",\"dropout\":0.0,\"continuing_subword_prefix\":\"\",\"end_of_word_suffix\":null,"
                               "\"vocab\":{\"a\":0,\"\xE2\x96\x81\":1},\"merges\":[]}}";
    static const int32_t expected[] = {0, 1, 0};
    const char *path = test_tokenizer_files_scratch("nothing.json");
    struct tokenizer *tokenizer;
    int32_t *tokens;
    int count;

    (void)state;
    test_tokenizer_files_write(path, json, strlen(json));
    assert_int_equal(tokenizer_open(path, 0, &tokenizer), STATUS_OK);
    assert_int_equal(tokenizer_encode(tokenizer, "a a", 3, 0, &tokens, &count, NULL), STATUS_OK);
    assert_int_equal(count, 3);
    assert_memory_equal(tokens, expected, sizeof expected);
    free(tokens);
    tokenizer_close(tokenizer);
}

/* A byte-level file may hold a piece that is spelled in characters which stand for no byte. */
static void test_tokenizer__a_piece_of_no_bytes_spells_itself(void **state)
{
    static const char json[] = "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
                               "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\xE6\x97\xA5\":1},\"merges\":[]}}";
    const char *path = test_tokenizer_files_scratch("spelled.json"), *text;
    struct tokenizer *tokenizer;
    int32_t *tokens;
    size_t length;
    int count;

    (void)state;
    test_tokenizer_files_write(path, json, strlen(json));
    assert_int_equal(tokenizer_open(path, 0, &tokenizer), STATUS_OK);
    text = tokenizer_piece(tokenizer, 1, 0, 0, &length);
    assert_int_equal(length, 3);
    assert_memory_equal(text, "\xE6\x97\xA5", 3);
    assert_int_equal(tokenizer_encode(tokenizer, "a\xE6\x97\xA5", 4, 0, &tokens, &count, NULL), STATUS_OK);
    assert_int_equal(count, 1); /* no text becomes it */
    assert_int_equal(tokens[0], 0);
    free(tokens);
    tokenizer_close(tokenizer);
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
        cmocka_unit_test(test_tokenizer__more_merges_than_two_million_are_refused),
        cmocka_unit_test(test_tokenizer__options_that_change_nothing_are_taken),
        cmocka_unit_test(test_tokenizer__a_piece_of_no_bytes_spells_itself),
        cmocka_unit_test(test_tokenizer__a_runaway_pattern_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
