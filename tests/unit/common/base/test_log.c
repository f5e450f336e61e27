/* A line of the log is one line, whatever it quotes. */
#include "common/base/log.h"
#include "tests/support/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* needs those above */

enum { LONGEST_LINE = 2048 };

static void test_log__a_quoted_line_end_does_not_end_the_line(void **state)
{
    struct capture capture;
    char text[256];

    (void)state;
    log_init("test", LOG_ERROR);
    capture_begin(&capture);
    log_error("unknown key \"%s\"", "a\nerror: b\x1b[2J\r\x7f\xC3\xA9\xC2\x9b");
    capture_end(&capture, text, sizeof text);
    assert_string_equal(text, "test: error: unknown key \"a\\x0aerror: b\\x1b[2J\\x0d\\x7f\xC3\xA9\\u009b\"\n");
}

static void test_log__a_long_line_is_cut_and_still_ends(void **state)
{
    static char long_text[2 * LONGEST_LINE], text[2 * LONGEST_LINE];
    struct capture capture;

    (void)state;
    memset(long_text, 'x', sizeof long_text - 1);
    log_init("test", LOG_ERROR);
    capture_begin(&capture);
    log_error("%s", long_text);
    capture_end(&capture, text, sizeof text);
    assert_int_equal(strlen(text), LONGEST_LINE - 1);
    capture_assert_one_line(text, "test: error: xxx");
}

/* A bar has no end of line. */
static void test_log__a_bar_is_cleared_before_a_line(void **state)
{
    struct capture capture;
    char text[256];

    (void)state;
    log_init("test", LOG_WARN);
    log_clear_lines(1);
    capture_begin(&capture);
    log_warn("a\033[2Jb");
    log_info("not shown");
    log_init("test", LOG_WARN);
    log_warn("c");
    capture_end(&capture, text, sizeof text);
    assert_string_equal(text, "\r\033[Ktest: warning: a\\x1b[2Jb\ntest: warning: c\n");
}

/* Where stdout goes to the same place its reader sees both in the order in which they were written. */
static void test_log__lines_go_where_they_are_sent(void **state)
{
    struct capture capture;
    char text[256], there[64] = "";
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    log_init("test", LOG_WARN);
    capture_begin(&capture);
    log_to(ends[1]);
    log_warn("a");
    log_init("test", LOG_WARN);
    log_warn("b");
    capture_end(&capture, text, sizeof text);
    assert_string_equal(text, "test: warning: b\n");
    assert_true(read(ends[0], there, sizeof there - 1) > 0);
    assert_string_equal(there, "test: warning: a\n");
    close(ends[0]);
    close(ends[1]);
}

static void test_log__lines_that_are_held_are_told_or_forgotten(void **state)
{
    struct capture capture;
    char text[256];

    (void)state;
    log_init("test", LOG_WARN);
    capture_begin(&capture);
    log_hold();
    log_error("one");
    log_warn("two");
    log_let_go(1);
    log_hold();
    log_error("three");
    log_let_go(0);
    log_info("four");
    capture_end(&capture, text, sizeof text);
    assert_string_equal(text, "test: warning: two\ntest: error: one\n");
}

/* As the ranks and looks of a job do: each reads the same files. */
static void test_log__a_warning_of_a_file_is_said_once_and_by_one(void **state)
{
    struct capture capture;
    char text[256];

    (void)state;
    log_init("test", LOG_WARN);
    capture_begin(&capture);
    log_file_warning("%s: %d", "a", 1);
    log_file_warning("%s: %d", "b", 1);
    log_file_warning("%s: %d", "a", 1);
    log_leave_files();
    log_file_warning("%s: %d", "c", 1);
    log_warn("d");
    log_init("test", LOG_WARN);
    log_file_warning("%s: %d", "a", 1);
    capture_end(&capture, text, sizeof text);
    assert_string_equal(text, "test: warning: a: 1\ntest: warning: b: 1\ntest: warning: d\ntest: warning: a: 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log__a_quoted_line_end_does_not_end_the_line),
        cmocka_unit_test(test_log__a_long_line_is_cut_and_still_ends),
        cmocka_unit_test(test_log__a_bar_is_cleared_before_a_line),
        cmocka_unit_test(test_log__lines_go_where_they_are_sent),
        cmocka_unit_test(test_log__lines_that_are_held_are_told_or_forgotten),
        cmocka_unit_test(test_log__a_warning_of_a_file_is_said_once_and_by_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
