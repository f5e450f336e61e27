#include "common/text/tokenizer.h"
#include "common/text/utf8_stream.h"
#include "test_tokenizer_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cmocka needs these four in front of it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define DEMO  TANDEM_SOURCE_DIR "/launch/demo/target"
#define SPACE "\xE2\x96\x81"

static struct tokenizer *open_demo(void)
{
    struct tokenizer *tokenizer;

    assert_int_equal(tokenizer_open(DEMO, 0, &tokenizer), STATUS_OK);
    return tokenizer;
}

static struct tokenizer *open_text(const char *json)
{
    const char *path = test_tokenizer_files_scratch("small.json");
    struct tokenizer *tokenizer;

    test_tokenizer_files_write(path, json, strlen(json));
    assert_int_equal(tokenizer_open(path, 0, &tokenizer), STATUS_OK);
    return tokenizer;
}

static void check(const struct tokenizer *tokenizer, const char *text, int flags, const int32_t *ids, int count)
{
    int32_t *tokens;
    int got;

    assert_int_equal(tokenizer_encode(tokenizer, text, strlen(text), flags, &tokens, &got, NULL), STATUS_OK);
    assert_int_equal(got, count);
    assert_memory_equal(tokens, ids, (size_t)count * sizeof *ids);
    free(tokens);
}

#define CHECK(tokenizer, text, flags, ...)                                                                                                 \
    check(tokenizer, text, flags, (const int32_t[]){__VA_ARGS__}, (int)(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)))

/* Appends a random character of 1 to 4 bytes. */
static size_t random_character(char *to)
{
    static const unsigned limits[] = {0x80, 0x80, 0x800, 0x10000, 0x110000};
    unsigned code;

    do
        code = 1 + (unsigned)random() % (limits[random() % 5] - 1);
    while (code >= 0xD800 && code < 0xE000);
    if (code < 0x80)
        return to[0] = (char)code, 1;
    if (code < 0x800)
        return to[0] = (char)(0xC0 | code >> 6), to[1] = (char)(0x80 | (code & 0x3F)), 2;
    if (code < 0x10000) {
        to[0] = (char)(0xE0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 0x3F));
        to[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    to[0] = (char)(0xF0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 0x3F));
    to[2] = (char)(0x80 | (code >> 6 & 0x3F));
    to[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

/* The text comes back, whole and piece by piece, and what is shown on the way is whole characters. */
static void check_round_trip(const struct tokenizer *tokenizer, const char *text, size_t length)
{
    char back[4096], shown[4096];
    size_t at = 0, out = 0;
    struct utf8_stream stream;
    int32_t *tokens;
    int count;

    assert_int_equal(tokenizer_encode(tokenizer, text, length, 0, &tokens, &count, NULL), STATUS_OK);
    utf8_stream_init(&stream);
    for (int i = 0; i < count; i++) {
        size_t size, came;
        const char *piece = tokenizer_piece(tokenizer, tokens[i], i == 0, 0, &size);

        memcpy(back + at, piece, size);
        at += size;
        came = utf8_stream_push(&stream, piece, size, shown + out);
        assert_int_equal(utf8_valid(shown + out, came), came);
        out += came;
    }
    assert_int_equal(utf8_stream_finish(&stream, shown + out), 0);
    assert_int_equal(at, length);
    assert_int_equal(out, length);
    assert_memory_equal(back, text, length);
    assert_memory_equal(shown, text, length);
    free(tokens);
}

static void check_random_round_trips(const struct tokenizer *tokenizer)
{
    srandom(11);
    for (int round = 0; round < 500; round++) {
        char text[1024];
        size_t length = 0;

        for (int wanted = (int)(random() % 200); wanted > 0; wanted--)
            length += random_character(text + length);
        check_round_trip(tokenizer, text, length);
    }
}

static void test_tokenizer__byte_level_round_trips(void **state)
{
    struct tokenizer *tokenizer = open_demo();

    (void)state;
    check_random_round_trips(tokenizer);
    tokenizer_close(tokenizer);
}

static void test_tokenizer__llama2_c_round_trips(void **state)
{
    const char *path = test_tokenizer_files_shared("tinyllamas-260k/tok512.bin");
    struct tokenizer *tokenizer;

    (void)state;
    if (path == NULL)
        skip();
    assert_int_equal(tokenizer_open(path, 512, &tokenizer), STATUS_OK);
    check_random_round_trips(tokenizer);
    tokenizer_close(tokenizer);
}

static void check_packed_round_trips(const char *gz, const char *name)
{
    const char *path = test_tokenizer_files_shared(gz);
    struct tokenizer *tokenizer;

    if (path == NULL)
        skip();
    assert_int_equal(tokenizer_open(test_tokenizer_files_unpack(path, name), 0, &tokenizer), STATUS_OK);
    check_random_round_trips(tokenizer);
    tokenizer_close(tokenizer);
}

static void test_tokenizer__gpt2_round_trips(void **state)
{
    (void)state;
    check_packed_round_trips("tokenizers/gpt2-tokenizer.json.gz", "gpt2.json");
}

static void test_tokenizer__sentencepiece_round_trips(void **state)
{
    const char *gguf = test_tokenizer_files_shared("tokenizers/ggml-vocab-phi-3.gguf");
    const char *bin = test_tokenizer_files_scratch("phi3.bin"), *json = test_tokenizer_files_scratch("phi3.json");
    struct tokenizer *tokenizer;

    (void)state;
    if (gguf == NULL)
        skip();
    assert_int_equal(tokenizer_open(bin, test_tokenizer_files_convert_gguf(gguf, bin, json), &tokenizer), STATUS_OK);
    check_random_round_trips(tokenizer);
    check_round_trip(tokenizer, "  two spaces in front", 21);
    tokenizer_close(tokenizer);
    assert_int_equal(tokenizer_open(json, 0, &tokenizer), STATUS_OK);
    check_random_round_trips(tokenizer);
    check_round_trip(tokenizer, "  two spaces in front", 21);
    assert_int_equal(tokenizer_find(tokenizer, " Hello"), 15043);
    tokenizer_close(tokenizer);
}

static void test_tokenizer__invalid_text_is_refused_where_it_breaks(void **state)
{
    struct tokenizer *tokenizer = open_demo();
    int32_t *tokens = NULL;
    size_t bad = 99;
    int count = 5;

    (void)state;
    srandom(3);
    assert_int_equal(tokenizer_encode(tokenizer, "fine\xC3(", 6, 0, &tokens, &count, &bad), STATUS_DATA);
    assert_int_equal(bad, 4);
    assert_true(tokens == NULL && count == 5);
    assert_int_equal(tokenizer_encode(tokenizer, "\xED\xA0\x80", 3, 0, &tokens, &count, NULL), STATUS_DATA);
    for (int round = 0; round < 2000; round++) {
        char bytes[12];
        size_t valid;

        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)(random() % 3 == 0 ? random() % 256 : 'a');
        valid = utf8_valid(bytes, sizeof bytes);
        if (valid == sizeof bytes) {
            check_round_trip(tokenizer, bytes, sizeof bytes);
            continue;
        }
        assert_int_equal(tokenizer_encode(tokenizer, bytes, sizeof bytes, 0, &tokens, &count, &bad), STATUS_DATA);
        assert_int_equal(bad, valid);
    }
    tokenizer_close(tokenizer);
}

static void test_tokenizer__special_text_is_plain_unless_asked(void **state)
{
    struct tokenizer *tokenizer = open_demo();
    int32_t *tokens;
    int count;
    size_t length;

    (void)state;
    CHECK(tokenizer, "<|user|><|endoftext|>", TOKENIZER_PARSE_SPECIAL, 1, 0);
    assert_int_equal(tokenizer_encode(tokenizer, "<|user|>", 8, TOKENIZER_ADD_SPECIAL, &tokens, &count, NULL), STATUS_OK);
    for (int i = 0; i < count; i++)
        assert_false(tokenizer_is_special(tokenizer, tokens[i]));
    free(tokens);
    check_round_trip(tokenizer, "<|user|>", 8);
    assert_true(tokenizer_is_special(tokenizer, 1));
    assert_int_equal(tokenizer_find(tokenizer, "<|user|>"), 1);
    tokenizer_piece(tokenizer, 1, 0, 0, &length);
    assert_int_equal(length, 0);
    assert_memory_equal(tokenizer_piece(tokenizer, 1, 0, 1, &length), "<|user|>", 8);
    assert_int_equal(length, 8);
    tokenizer_close(tokenizer);
}

static void test_tokenizer__ids_outside_the_table_have_no_text(void **state)
{
    struct tokenizer *tokenizer = open_demo();
    int size = tokenizer_size(tokenizer);
    size_t length = 9;

    (void)state;
    assert_int_equal(size, 2048);
    tokenizer_piece(tokenizer, size, 0, 1, &length);
    assert_int_equal(length, 0);
    tokenizer_piece(tokenizer, -1, 0, 1, &length);
    assert_int_equal(length, 0);
    assert_false(tokenizer_is_special(tokenizer, size));
    assert_int_equal(tokenizer_find(tokenizer, "no such piece anywhere"), -1);
    tokenizer_close(tokenizer);
}

static void test_tokenizer__empty_text(void **state)
{
    struct tokenizer *tokenizer = open_demo();
    int32_t *tokens;
    int count;

    (void)state;
    assert_int_equal(tokenizer_encode(tokenizer, "", 0, 0, &tokens, &count, NULL), STATUS_OK);
    assert_int_equal(count, 0);
    free(tokens);
    tokenizer_close(tokenizer);
}

static void test_tokenizer__digest_is_of_the_spelling(void **state)
{
    struct tokenizer *target = open_demo(), *draft, *other;
    int count;

    (void)state;
    assert_int_equal(tokenizer_open(TANDEM_SOURCE_DIR "/launch/demo/draft", 0, &draft), STATUS_OK);
    assert_true(tokenizer_digest(target) == tokenizer_digest(draft));
    other = open_text("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}");
    draft = (tokenizer_close(draft), open_text("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"b\":0,\"a\":1},\"merges\":[]}}"));
    assert_true(tokenizer_digest(other) != tokenizer_digest(draft));
    assert_int_equal(tokenizer_difference(other, draft, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(tokenizer_difference(target, other, &count), 0);
    assert_int_equal(count, tokenizer_size(target) - 2 /* ids 2 and 3 are texts in neither */);
    draft = (tokenizer_close(draft), open_text("{\"added_tokens\":[{\"id\":3,\"content\":\"<end>\",\"special\":true},{\"id\":5,\"content\":\"<x>\"}],"
                                               "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"<end>\":3},\"merges\":[]}}"));
    assert_true(tokenizer_digest(other) == tokenizer_digest(draft));
    assert_int_equal(tokenizer_difference(other, draft, &count), -1);
    assert_int_equal(count, 0);
    tokenizer_close(target);
    tokenizer_close(draft);
    tokenizer_close(other);
}

#define VOCAB  "\"vocab\":{\"<unk>\":0,\"<s>\":1,\"</s>\":2,\"a\":3,\"b\":4,\"ab\":5,\"" SPACE "\":6,\"" SPACE "a\":7,\"aba\":8}"
#define MERGES "\"merges\":[[\"a\",\"b\"],\"" SPACE " a\",[\"ab\",\"a\"]]"

static void test_tokenizer__lowest_rank_first_then_leftmost(void **state)
{
    struct tokenizer *tokenizer = open_text("{\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\"," VOCAB "," MERGES "}}");

    (void)state;
    CHECK(tokenizer, "abab", 0, 5, 5); /* not 8, 4: both rank 0 merges come before the longer piece */
    CHECK(tokenizer, "aba", 0, 8);
    CHECK(tokenizer, "aabba", 0, 3, 5, 4, 3);
    CHECK(tokenizer, "axxb", 0, 3, 0, 0, 4);
    CHECK(tokenizer, SPACE "ab", 0, 6, 5);
    tokenizer_close(tokenizer);
}

static void test_tokenizer__unknown_characters_fuse_when_the_file_says_so(void **state)
{
    struct tokenizer *tokenizer =
        open_text("{\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"fuse_unk\":true," VOCAB "," MERGES "}}");

    (void)state;
    CHECK(tokenizer, "a\xC3\xA9xb", 0, 3, 0, 4);
    tokenizer_close(tokenizer);
}

static void test_tokenizer__template_and_stripping_added_tokens(void **state)
{
    struct tokenizer *tokenizer =
        open_text("{\"added_tokens\":[{\"id\":1,\"content\":\"<s>\",\"special\":true,\"lstrip\":true},"
                  "{\"id\":9,\"content\":\"ba\",\"single_word\":true,\"normalized\":false}],"
                  "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}},"
                  "{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"<s>\":{\"ids\":[1]}}},"
                  "\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\"," VOCAB "," MERGES "}}");

    (void)state;
    CHECK(tokenizer, "a", TOKENIZER_ADD_SPECIAL, 1, 3);
    CHECK(tokenizer, "", TOKENIZER_ADD_SPECIAL, 1);
    CHECK(tokenizer, "a \n<s>b", TOKENIZER_PARSE_SPECIAL, 3, 1, 4);
    CHECK(tokenizer, "ba", 0, 9);
    CHECK(tokenizer, "bab", 0, 4, 5);
    tokenizer_close(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokenizer__byte_level_round_trips),
        cmocka_unit_test(test_tokenizer__llama2_c_round_trips),
        cmocka_unit_test(test_tokenizer__gpt2_round_trips),
        cmocka_unit_test(test_tokenizer__sentencepiece_round_trips),
        cmocka_unit_test(test_tokenizer__invalid_text_is_refused_where_it_breaks),
        cmocka_unit_test(test_tokenizer__special_text_is_plain_unless_asked),
        cmocka_unit_test(test_tokenizer__ids_outside_the_table_have_no_text),
        cmocka_unit_test(test_tokenizer__empty_text),
        cmocka_unit_test(test_tokenizer__digest_is_of_the_spelling),
        cmocka_unit_test(test_tokenizer__lowest_rank_first_then_leftmost),
        cmocka_unit_test(test_tokenizer__unknown_characters_fuse_when_the_file_says_so),
        cmocka_unit_test(test_tokenizer__template_and_stripping_added_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
