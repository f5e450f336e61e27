/* When a line of progress is due, and that none is left on a terminal, by a clock that the test moves. */
#include "common/base/clock.h"
#include "verifier/job/progress_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS ((int64_t)1000000)
#define CLEARED "\r\033[K"

static int64_t now;
static char *said;
static size_t length;

static void write_word(const void *state, FILE *to)
{
    fputs(state, to);
}

static struct progress_line line_begun(int redrawn, int at_once)
{
    struct progress_line line = {.redrawn = redrawn};

    now = 1000 * MS;
    clock_pretend(&now);
    assert_non_null(line.to = open_memstream(&said, &length));
    progress_line_begin(&line, at_once);
    return line;
}

static void assert_said(struct progress_line *line, const char *expected)
{
    fclose(line->to);
    clock_pretend(NULL);
    assert_string_equal(said, expected);
    free(said);
}

/* Is the next line due after so long, and not before? It is written then. */
static void assert_due_after(struct progress_line *line, int ms)
{
    now += ms * MS - 1;
    assert_false(progress_line_is_due(line));
    now += 1;
    assert_true(progress_line_is_due(line));
    progress_line_tell(line, write_word, "half");
}

static void test_progress_line__on_a_terminal_it_is_redrawn_after_a_second_and_cleared(void **state)
{
    struct progress_line line = line_begun(1, 0);

    (void)state;
    assert_due_after(&line, 1000);
    assert_due_after(&line, 100);
    progress_line_clear(&line);
    progress_line_clear(&line); /* nothing stands any more */
    assert_due_after(&line, 1000);
    assert_said(&line, CLEARED "half" CLEARED "half" CLEARED CLEARED "half");
}

static void test_progress_line__elsewhere_it_comes_every_five_seconds_and_is_not_cleared(void **state)
{
    struct progress_line line = line_begun(0, 1);

    (void)state;
    assert_due_after(&line, 5000);
    assert_due_after(&line, 5000);
    progress_line_clear(&line);
    assert_said(&line, "half\nhalf\n");
}

static void test_progress_line__at_once_it_stands_from_the_start(void **state)
{
    struct progress_line line = line_begun(1, 1);

    (void)state;
    assert_true(progress_line_is_due(&line));
    assert_said(&line, "");
}

static void test_progress_line__nowhere_it_is_never_due(void **state)
{
    struct progress_line line = {.redrawn = 1};

    (void)state;
    now = 0;
    clock_pretend(&now);
    progress_line_begin(&line, 1);
    now += 60000 * MS;
    assert_false(progress_line_is_due(&line));
    progress_line_clear(&line);
    clock_pretend(NULL);
}

/* What is done first is no measure of the rest: with less than ten seconds or a hundredth there is no guess. */
static void test_progress_line__what_is_left_is_said_of_what_says_enough(void **state)
{
    (void)state;
    assert_true(progress_line_left(10, 1, 100) == 990);
    assert_true(progress_line_left(10, 100, 100) == 0);
    assert_true(progress_line_left(9.9, 50, 100) < 0);
    assert_true(progress_line_left(3600, 0.9, 100) < 0);
    assert_true(progress_line_left(3600, 0, 100) < 0);
    assert_true(progress_line_left(3600, 0, 0) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_progress_line__on_a_terminal_it_is_redrawn_after_a_second_and_cleared),
        cmocka_unit_test(test_progress_line__elsewhere_it_comes_every_five_seconds_and_is_not_cleared),
        cmocka_unit_test(test_progress_line__at_once_it_stands_from_the_start),
        cmocka_unit_test(test_progress_line__nowhere_it_is_never_due),
        cmocka_unit_test(test_progress_line__what_is_left_is_said_of_what_says_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
