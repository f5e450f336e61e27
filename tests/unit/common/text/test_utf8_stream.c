#include "common/text/utf8_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cmocka needs these four in front of it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char *show(const char *bytes, size_t count, size_t step)
{
    static char out[4096];
    struct utf8_stream stream;
    size_t written = 0;

    utf8_stream_init(&stream);
    for (size_t at = 0; at < count; at += step) {
        size_t now = count - at < step ? count - at : step, came = utf8_stream_push(&stream, bytes + at, now, out + written);

        assert_true(came <= 3 * (now + 3));
        assert_int_equal(utf8_valid(out + written, came), came); /* only whole characters come out */
        written += came;
    }
    written += utf8_stream_finish(&stream, out + written);
    out[written] = '\0';
    return out;
}

static void test_utf8_stream__holds_back_unfinished_characters(void **state)
{
    static const char text[] = "a\xC3\xA9\xE2\x96\x81\xF0\x9F\x98\x80z";

    (void)state;
    for (size_t step = 1; step < sizeof text; step++)
        assert_string_equal(show(text, sizeof text - 1, step), text);
}

static void test_utf8_stream__bad_bytes_become_replacements(void **state)
{
#define BAD "\xEF\xBF\xBD"
    (void)state;
    assert_string_equal(show("a\x80z", 3, 1), "a" BAD "z");
    assert_string_equal(show("\xC0\xAF", 2, 1), BAD BAD);                 /* overlong */
    assert_string_equal(show("\xED\xA0\x80", 3, 1), BAD BAD BAD);         /* surrogate */
    assert_string_equal(show("\xF4\x90\x80\x80", 4, 4), BAD BAD BAD BAD); /* above U+10FFFF */
    assert_string_equal(show("\xE2\x96(", 3, 1), BAD "(");                /* broken off by another character */
    assert_string_equal(show("\xE2\x96\xC3\xA9", 4, 2), BAD "\xC3\xA9");
    assert_string_equal(show("x\xF0\x9F\x98", 4, 1), "x" BAD); /* ends unfinished */
#undef BAD
}

static void test_utf8_stream__steps_do_not_matter_for_random_bytes(void **state)
{
    char bytes[300], whole[4096];

    (void)state;
    srandom(5);
    for (int round = 0; round < 300; round++) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)(random() % 4 == 0 ? random() % 127 + 1 : 0x80 + random() % 128);
        snprintf(whole, sizeof whole, "%s", show(bytes, sizeof bytes, sizeof bytes));
        assert_string_equal(show(bytes, sizeof bytes, 1), whole);
        assert_string_equal(show(bytes, sizeof bytes, 7), whole);
    }
}

static void test_utf8_valid__says_where(void **state)
{
    (void)state;
    assert_int_equal(utf8_valid("", 0), 0);
    assert_int_equal(utf8_valid("plain text, long enough for words\xC3\xA9", 35), 35);
    assert_int_equal(utf8_valid("plain text, long\xFF", 17), 16);
    assert_int_equal(utf8_valid("ab\xE2\x96", 4), 2);
    assert_int_equal(utf8_valid("ab\xED\xA0\x80", 5), 2);
    assert_int_equal(utf8_valid("a\xC1\x81", 3), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8_stream__holds_back_unfinished_characters),
        cmocka_unit_test(test_utf8_stream__bad_bytes_become_replacements),
        cmocka_unit_test(test_utf8_stream__steps_do_not_matter_for_random_bytes),
        cmocka_unit_test(test_utf8_valid__says_where),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
