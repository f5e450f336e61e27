#include "common/base/visible.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void shows(const char *text, const char *kept, const char *expected)
{
    char out[VISIBLE_MOST * 64 + 1];

    out[visible_write(text, strlen(text), kept, out)] = '\0';
    assert_string_equal(out, expected);
}

static void test_visible__what_a_terminal_obeys_is_shown(void **state)
{
    (void)state;
    shows("a\033]0;title\ab\033[2J", "", "a\\x1b]0;title\\x07b\\x1b[2J");
    shows("\x7f\r\b", "\n\t", "\\x7f\\x0d\\x08");
    shows("C1 \xc2\x9b"
          "31m \xc2\x80 \xc2\x9f",
          "", "C1 \\u009b31m \\u0080 \\u009f");
    shows("a\xe2\x80\xae" "b\xe2\x81\xa6" "c\xe2\x80\x8f", "", "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6" "c\\xe2\\x80\\x8f"); /* turns what follows */
    shows("\xe2\x80\x93 \xe2\x80\x99 \xe2\x81\xa0 \xe2\x80\xa9", "", "\xe2\x80\x93 \xe2\x80\x99 \xe2\x81\xa0 \xe2\x80\xa9");
}

static void test_visible__text_stays_as_it_is(void **state)
{
    (void)state;
    shows("The sea, \xc2\xa0\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x8b \\x1b", "", "The sea, \xc2\xa0\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x8b \\x1b");
    shows("two\nlines\tand", "\n\t", "two\nlines\tand");
    shows("two\nlines\tand", "", "two\\x0alines\\x09and");
}

static void test_visible__bytes_that_are_no_text_are_shown(void **state)
{
    (void)state;
    shows("\x9b"
          "31m \xff \xc2",
          "", "\\x9b31m \\xff \\xc2");
    shows("\xe0\x82\x9b \xf0\x80\x82\x9b \xc0\x9b", "", "\\xe0\\x82\\x9b \\xf0\\x80\\x82\\x9b \\xc0\\x9b"); /* longer forms of U+009B */
    shows("\xe2\x82", "", "\\xe2\\x82");
}

/* Whatever comes: nothing below a space, no DEL, no C1, never more than the room that is said; and doing it twice changes nothing more. */
static void test_visible__what_stays_as_it_is_is_known(void **state)
{
    static const struct {
        const char *text, *kept;
        int is_plain;
    } cases[] = {{"", "", 1},           {"a \303\274 \344\270\255", "", 1}, {"a\tb", "", 0},   {"a\tb", "\t", 1}, {"a\nb", "\t", 0},
                 {"\033[31m", "\t", 0}, {"\302\233", "", 0},             {"\233", "", 0}, {"a\177", "", 0},  {"\302", "", 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (visible_is_plain(cases[i].text, strlen(cases[i].text), cases[i].kept) != cases[i].is_plain)
            fail_msg("case %zu, expected %d", i, cases[i].is_plain);
}

static void test_visible__no_bytes_reach_the_terminal_that_it_obeys(void **state)
{
    enum { BYTES = 64, TEXTS = 20000 };
    static const unsigned char telling[] = {0, 7, 10, 27, 0x7f, 0x80, 0x9b, 0xa0, 0xc2, 0xc3, 0xe0, 0xe2, 0xf0, 0xf4, 0xff, 'a'};
    char text[BYTES], out[VISIBLE_MOST * BYTES], again[VISIBLE_MOST * VISIBLE_MOST * BYTES];
    uint32_t draw = 1;

    (void)state;
    for (int n = 0; n < TEXTS; n++) {
        size_t used;

        for (int i = 0; i < BYTES; i++) {
            draw = draw * 1664525u + 1013904223u;
            text[i] = (char)telling[draw >> 28];
        }
        used = visible_write(text, BYTES, "", out);
        assert_true(used <= sizeof out);
        for (size_t i = 0; i < used; i++) {
            assert_true((unsigned char)out[i] >= ' ' && out[i] != 0x7f);
            assert_false((unsigned char)out[i] == 0xc2 && i + 1 < used && (unsigned char)out[i + 1] < 0xa0);
        }
        assert_int_equal(visible_write(out, used, "", again), used);
        assert_memory_equal(out, again, used);
    }
}

static void test_visible__a_long_text_goes_out_in_parts_without_a_cut_character(void **state)
{
    char text[3000], *out;
    size_t size, used = 0;
    FILE *to = open_memstream(&out, &size);

    (void)state;
    text[used++] = 'a';
    while (used + 3 <= sizeof text) {
        memcpy(text + used, "\xe2\x82\xac", 3);
        used += 3;
    }
    visible_put(text, used, "", to);
    fclose(to);
    assert_int_equal(size, used);
    assert_memory_equal(out, text, used);
    free(out);
}

static void test_visible__a_quote_is_one_line_and_says_what_it_leaves_out(void **state)
{
    static const struct {
        const char *text;
        size_t count, most;
        const char *quoted;
    } cases[] = {
        {"", 0, 8, "\"\""},
        {"sea", 3, 8, "\"sea\""},
        {"sea", 3, 3, "\"sea\""},
        {"the sea", 7, 3, "\"the..\""},
        {"a\n\tb", 4, 8, "\"a\\n\\tb\""},
        {"\"\\", 2, 8, "\"\\\"\\\\\""},
        {"\x1b[0m", 4, 8, "\"\\x1b[0m\""},
        {"\xc2\x9b!", 3, 8, "\"\\u009b!\""},
        {"\xff\xe2\x82", 3, 8, "\"\\xff\\xe2\\x82\""},
        {"a\xe2\x82\xac", 4, 3, "\"a..\""}, /* no cut within a character */
        {"a\xe2\x82\xac", 4, 4, "\"a\xe2\x82\xac\""},
    };
    char out[VISIBLE_QUOTED(8)], *put;
    size_t size;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(visible_quote(cases[i].text, cases[i].count, cases[i].most, out), strlen(cases[i].quoted));
        assert_string_equal(out, cases[i].quoted);
        if (cases[i].count > cases[i].most)
            continue;
        FILE *to = open_memstream(&put, &size);

        visible_put_quoted(cases[i].text, cases[i].count, to);
        fclose(to);
        assert_string_equal(put, cases[i].quoted);
        free(put);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visible__what_a_terminal_obeys_is_shown),
        cmocka_unit_test(test_visible__text_stays_as_it_is),
        cmocka_unit_test(test_visible__bytes_that_are_no_text_are_shown),
        cmocka_unit_test(test_visible__what_stays_as_it_is_is_known),
        cmocka_unit_test(test_visible__no_bytes_reach_the_terminal_that_it_obeys),
        cmocka_unit_test(test_visible__a_long_text_goes_out_in_parts_without_a_cut_character),
        cmocka_unit_test(test_visible__a_quote_is_one_line_and_says_what_it_leaves_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
