/* Where added tokens are found in a text, and how much of it they take. */
#include "common/text/added_tokens.h"
#include "common/text/tokenizer.h"
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

static struct added_tokens one(const char *text, unsigned flags)
{
    struct added_tokens added = {0};

    assert_int_equal(added_tokens_put(&added, text, strlen(text), 7, flags), STATUS_OK);
    return added;
}

static int may(void *context, size_t start, size_t stop, int32_t token, unsigned flags)
{
    const int *special = context;

    (void)start;
    (void)stop;
    (void)token;
    return *special || !(flags & ADDED_SPECIAL);
}

static int find(const struct added_tokens *added, const char *text, size_t length, size_t from, int special, struct added_match *match)
{
    return added_tokens_find(added, text, length, from, may, &special, match);
}

/* Is "ab" found between the two, as a word of its own? */
static int is_word_between(const char *before, const char *after)
{
    struct added_tokens added = one("ab", ADDED_SINGLE_WORD);
    struct added_match match;
    char text[32];
    int length = snprintf(text, sizeof text, "%sab%s", before, after), found;

    found = find(&added, text, (size_t)length, 0, 0, &match);
    if (found) {
        assert_int_equal(match.start, strlen(before));
        assert_int_equal(match.stop, strlen(before) + 2);
        assert_int_equal(match.token, 7);
    }
    added_tokens_release(&added);
    return found;
}

static void test_added_tokens__letters_digits_marks_and_connectors_touch_a_word(void **state)
{
    static const char *const touching[] = {"x", "Z", "7", "_", "\xCC\x81", "\xE6\x97\xA5", "\xC2\xAA", "\xE2\x85\xA7", "\xF0\x90\x90\x80"};
    static const char *const apart[] = {"",        " ", "\n", ".", "-", "$", "\xE2\x82\xAC", "\xE3\x80\x80", "\xCD\xB8" /* assigned to nothing */,
                                        "\xC2\xB2"};

    (void)state;
    for (size_t i = 0; i < sizeof touching / sizeof touching[0]; i++) {
        assert_false(is_word_between(touching[i], ""));
        assert_false(is_word_between("", touching[i]));
    }
    for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++)
        for (size_t j = 0; j < sizeof apart / sizeof apart[0]; j++)
            assert_true(is_word_between(apart[i], apart[j]));
}

/* What "ab" takes of BEFORE ab AFTER, looked for from byte `from` on. */
static void assert_takes(unsigned flags, const char *before, const char *after, size_t from, size_t start, size_t stop)
{
    struct added_tokens added = one("ab", flags);
    struct added_match match;
    char text[64];
    int length = snprintf(text, sizeof text, "%sab%s", before, after);

    assert_int_equal(find(&added, text, (size_t)length, from, 0, &match), 1);
    assert_int_equal(match.start, start);
    assert_int_equal(match.stop, stop);
    added_tokens_release(&added);
}

static void test_added_tokens__a_strip_takes_white_space_of_every_kind(void **state)
{
    static const char *const spaces[] = {"\t", "\r", " ", "\xC2\x85", "\xC2\xA0", "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x8A", "\xE2\x80\xA8",
                                         "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80"};
    static const char *const others[] = {"x", "\x08", "\x0E", "\xE2\x80\x8B", "\xE1\xA0\x8E", "\xE3\x80\x81", "\xE1\xBF\xBF"};

    (void)state;
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
        const size_t size = strlen(spaces[i]);

        assert_takes(ADDED_LSTRIP, spaces[i], spaces[i], 0, 0, size + 2);
        assert_takes(ADDED_RSTRIP, spaces[i], spaces[i], 0, size, 2 * size + 2);
        assert_takes(ADDED_LSTRIP | ADDED_RSTRIP, spaces[i], spaces[i], 0, 0, 2 * size + 2);
        assert_takes(0, spaces[i], spaces[i], 0, size, size + 2);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_takes(ADDED_LSTRIP | ADDED_RSTRIP, others[i], others[i], 0, strlen(others[i]), strlen(others[i]) + 2);
    assert_takes(ADDED_LSTRIP | ADDED_RSTRIP, "x \n", "\t\t x", 0, 1, 8);
    assert_takes(ADDED_LSTRIP, "   ", "", 2, 2, 5); /* what stands before `from` is another's */
}

static void test_added_tokens__the_leftmost_then_the_longest(void **state)
{
    struct added_tokens added = {0};
    struct added_match match;

    (void)state;
    assert_int_equal(find(&added, "ab", 2, 0, 0, &match), 0);
    assert_int_equal(added_tokens_put(&added, "abcd", 4, 1, 0), STATUS_OK);
    assert_int_equal(added_tokens_put(&added, "ab", 2, 2, 0), STATUS_OK);
    assert_int_equal(added_tokens_put(&added, "bc", 2, 3, ADDED_SPECIAL), STATUS_OK);
    assert_int_equal(find(&added, "xabcd", 5, 0, 1, &match), 1);
    assert_int_equal(match.token, 1);
    assert_int_equal(find(&added, "xabcx", 5, 0, 1, &match), 1);
    assert_true(match.token == 2 && match.start == 1 && match.stop == 3);
    assert_int_equal(find(&added, "xabc", 4, 2, 1, &match), 1);
    assert_true(match.token == 3 && match.start == 2 && match.stop == 4);
    assert_int_equal(find(&added, "xabc", 4, 2, 0, &match), 0); /* special text is plain unless asked */
    assert_int_equal(added_tokens_put(&added, "ab", 2, 4, 0), STATUS_OK);
    assert_int_equal(find(&added, "ab", 2, 0, 0, &match), 1);
    assert_int_equal(match.token, 4);
    added_tokens_release(&added);
}

/* The model has "b" and "ab"; "<x>" is nobody's but the list's. */
static void test_added_tokens__a_special_piece_of_the_model_is_made_by_no_merge(void **state)
{
#define JSON(special)                                                                                                                      \
    "{\"added_tokens\":[{\"id\":2,\"content\":\"ab\",\"special\":" special ",\"single_word\":true}, "                                      \
    "{\"id\":5,\"content\":\"<x>\",\"special\":" special "}],"                                                                            \
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}"
    static const char *const json[] = {JSON("false"), JSON("true")};
    static const int32_t expected[2][3] = {{0, 2, 5}, {0, 0, 1}};

    (void)state;
    for (int special = 0; special < 2; special++) {
        const char *path = test_tokenizer_files_scratch("special.json");
        struct tokenizer *tokenizer;
        int32_t *tokens;
        int count;

        test_tokenizer_files_write(path, json[special], strlen(json[special]));
        assert_int_equal(tokenizer_open(path, 0, &tokenizer), STATUS_OK);
        assert_int_equal(tokenizer_is_special(tokenizer, 2), special);
        assert_int_equal(tokenizer_is_special(tokenizer, 5), special);
        assert_int_equal(tokenizer_encode(tokenizer, "aab<x>", 6, 0, &tokens, &count, NULL), STATUS_OK);
        assert_int_equal(count, 3); /* '<', 'x' and '>' have no piece */
        assert_memory_equal(tokens, expected[special], sizeof expected[special]);
        free(tokens);
        tokenizer_close(tokenizer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_added_tokens__letters_digits_marks_and_connectors_touch_a_word),
        cmocka_unit_test(test_added_tokens__a_strip_takes_white_space_of_every_kind),
        cmocka_unit_test(test_added_tokens__the_leftmost_then_the_longest),
        cmocka_unit_test(test_added_tokens__a_special_piece_of_the_model_is_made_by_no_merge),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
