/* JSON from outside: bounded before it is parsed, and refused in words that can be shown. */
#include "common/base/log.h"
#include "common/file/json_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* needs those above */

enum { DEPTH = 3, VALUES = 6 };

static void assert_read(const char *text, size_t size)
{
    static const struct json_text_limits limits = {.depth = DEPTH, .values = VALUES};
    char fault[JSON_TEXT_FAULT] = "";
    json_t *root = NULL;

    if (json_text_read(text, size, JSON_DECODE_ANY, &limits, &root, fault) != STATUS_OK)
        fail_msg("%s: refused: %s", text, fault);
    json_decref(root);
}

static void assert_refused(const char *text, size_t size, const char *part)
{
    static const struct json_text_limits limits = {.depth = DEPTH, .values = VALUES};
    char fault[JSON_TEXT_FAULT] = "";
    json_t *root = NULL;

    assert_int_equal(json_text_read(text, size, JSON_DECODE_ANY, &limits, &root, fault), STATUS_DATA);
    assert_null(root);
    if (strstr(fault, part) == NULL)
        fail_msg("%s: '%s', expected '%s'", text, fault, part);
    for (const char *c = fault; *c != '\0'; c++)
        assert_in_range((unsigned char)*c, ' ', '~');
}

static void test_json_text__bounds_depth(void **state)
{
    static const char bomb[] = "[[[[[[[[";

    (void)state;
    assert_read("[[[1]]]", 7);
    assert_read("[\"[[[[[[\\\"[[[\"]", 15); /* in a string they nest nothing */
    assert_refused("[[[[1]]]]", 9, "JSON nested deeper than 3");
    assert_refused(bomb, sizeof bomb - 1, "JSON nested deeper than 3"); /* before a parser that recurses */
    assert_refused("]]]]]", 5, "not valid JSON at byte");
}

static void test_json_text__bounds_values(void **state)
{
    (void)state;
    assert_read("[1,2,3,4,5,6]", 13);
    assert_refused("[1,2,3,4,5,6,7]", 15, "JSON of more than 6 values");
    assert_refused("{\"a\":1,\"b\":2,\"c\":3,\"d\":4}", 25, "JSON of more than 6 values");
}

static void test_json_text__is_strict(void **state)
{
    static const char *const wrong[] = {"",           "{",          "{\"a\":1,\"a\":2}", "\"\xC0\xAF\"",        "\"\xED\xA0\x80\"", "\"\\ud800\"",
                                        "\"\\udc00\"", "1 2",        "nul",              "NaN",
                                        "\"a\nb\"",    "\"\\u0000\"", "'a'",              "[1,]",                "01",               "\"\x1b[2J"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_refused(wrong[i], strlen(wrong[i]), "not valid JSON at byte");
    assert_refused("\"a\0b\"", 5, "not valid JSON at byte");
    assert_refused("9223372036854775808", 19, "JSON with too large a number at byte 19, expected at most 9223372036854775807");
    assert_refused("1e999", 5, "JSON with too large a number at byte 5");
    assert_read("9223372036854775807", 19);
    assert_read("\"\\ud83d\\ude00\"", 14);
}

/* All other numbers stay what they are, and digits of a string are no number. */
static void test_json_text__whole_numbers_beyond_64_bits_are_read_where_they_may_be(void **state)
{
    static const struct json_text_limits limits = {.depth = DEPTH, .values = 10, .wide = 1};
    static const char text[] = "[99999999999999999999,-9223372036854775809,9223372036854775808,9223372036854775807,-9223372036854775808,1,"
                               "\"\\\"99999999999999999999\"]",
                      wrong[] = "[99999999999999999999,1e999]";
    char fault[JSON_TEXT_FAULT];
    json_t *root = NULL;

    (void)state;
    assert_int_equal(json_text_read(text, sizeof text - 1, 0, &limits, &root, fault), STATUS_OK);
    assert_true(json_real_value(json_array_get(root, 0)) == 99999999999999999999.0);
    assert_true(json_real_value(json_array_get(root, 1)) == -9223372036854775808.0);
    assert_true(json_real_value(json_array_get(root, 2)) == 9223372036854775808.0);
    assert_true(json_integer_value(json_array_get(root, 3)) == INT64_MAX && json_integer_value(json_array_get(root, 4)) == INT64_MIN);
    assert_int_equal(json_integer_value(json_array_get(root, 5)), 1);
    assert_string_equal(json_string_value(json_array_get(root, 6)), "\"99999999999999999999");
    json_decref(root);
    assert_int_equal(json_text_read(wrong, sizeof wrong - 1, 0, &limits, &root, fault), STATUS_DATA);
    assert_non_null(strstr(fault, "JSON with too large a number at byte 21, expected"));
}

/* Longer than jansson asks for at once, with a token that its buffer must grow for many times. */
static void test_json_text__reads_long_texts_whole(void **state)
{
    enum { LONG = 100000 };
    char *text = malloc(LONG + 2), fault[JSON_TEXT_FAULT];
    static const struct json_text_limits limits = {.depth = DEPTH, .values = VALUES};
    json_t *root;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', LONG + 2);
    text[0] = text[LONG + 1] = '"';
    assert_int_equal(json_text_read(text, LONG + 2, JSON_DECODE_ANY, &limits, &root, fault), STATUS_OK);
    assert_int_equal(json_string_length(root), LONG);
    json_decref(root);
    free(text);
}

static void test_json_text__strings_that_are_not_utf8_are_escaped(void **state)
{
    static const char *const cases[][2] = {{"", ""}, {"a\xC3\xA9", "a\xC3\xA9"}, {"a\xC3", "a\\xc3"}, {"\xFFz\xC3\xA9", "\\xffz\\xc3\\xa9"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *value = json_text_string(cases[i][0]);

        assert_non_null(value);
        assert_string_equal(json_string_value(value), cases[i][1]);
        json_decref(value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_text__bounds_depth),
        cmocka_unit_test(test_json_text__bounds_values),
        cmocka_unit_test(test_json_text__is_strict),
        cmocka_unit_test(test_json_text__whole_numbers_beyond_64_bits_are_read_where_they_may_be),
        cmocka_unit_test(test_json_text__reads_long_texts_whole),
        cmocka_unit_test(test_json_text__strings_that_are_not_utf8_are_escaped),
    };

    log_init("test_json_text", LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
