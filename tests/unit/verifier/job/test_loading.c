/* What is said while a model is read, by a clock that the test moves. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "tests/support/capture.h"
#include "verifier/job/loading.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND ((int64_t)1000000000)

static int64_t now;
static struct loading loading;
static char *said;
static size_t length;

/* Where it is said, in place of what was said before. */
static FILE *open_said(void)
{
    FILE *to;

    free(said);
    said = NULL;
    to = open_memstream(&said, &length);
    assert_non_null(to);
    return to;
}

/* Reads 8 shards of 2.2 GB, in so many milliseconds and 64 parts. */
static void read_model(int bar, int ms)
{
    FILE *to = open_said();

    now = SECOND;
    clock_pretend(&now);
    loading_begin(&loading, to, bar);
    for (int i = 1; i <= 64; i++) {
        now += ms * SECOND / 1000 / 64;
        loading_tell(&loading,
                     &(struct model_reading){.file = (i + 7) / 8, .files = 8, .bytes = (size_t)i * 275000000, .total = (size_t)64 * 275000000});
    }
    loading_end(&loading);
    clock_pretend(NULL);
    fclose(to);
}

static int lines(void)
{
    int count = 0;

    for (const char *c = said; *c != '\0'; c++)
        count += *c == '\n';
    return count;
}

static void test_loading__says_nothing_of_what_is_soon_read(void **state)
{
    (void)state;
    read_model(0, 4000);
    assert_string_equal(said, "");
    read_model(1, 900);
    assert_null(strstr(said, "reading"));
}

static void test_loading__says_a_line_every_five_seconds(void **state)
{
    (void)state;
    read_model(0, 16000);
    assert_int_equal(lines(), 3);
    assert_ptr_equal(strstr(said, "reading shard 3 of 8, 5.5 of 17.6 GB, 1.1 GB/s\n"), said);
    assert_null(strchr(said, '\r'));
}

static void test_loading__a_terminals_line_is_redrawn_and_taken_away(void **state)
{
    const char clear[] = "\r\033[K";

    (void)state;
    read_model(1, 16000);
    assert_int_equal(lines(), 0);
    assert_ptr_equal(strstr(said, "\r\033[Kreading shard 1 of 8, 1.1 of 17.6 GB, 1.1 GB/s\r\033[K"), said);
    assert_string_equal(said + length - strlen(clear), clear);
    assert_false(loading.line.stands);
}

static void test_loading__one_file_is_no_shard_and_a_small_one_has_megabytes(void **state)
{
    FILE *to = open_said();

    (void)state;
    now = SECOND;
    clock_pretend(&now);
    loading_begin(&loading, to, 0);
    now += 10 * SECOND;
    loading_tell(&loading, &(struct model_reading){.file = 1, .files = 1, .bytes = 100000000, .total = 270000000});
    clock_pretend(NULL);
    fclose(to);
    assert_string_equal(said, "reading the weights, 100.0 of 270.0 MB, 10 MB/s\n");
}

static void test_loading__verbose_says_what_was_read(void **state)
{
    struct capture capture;
    char line[512];

    (void)state;
    log_init("test", LOG_DEBUG);
    capture_begin(&capture);
    read_model(0, 2000);
    capture_end(&capture, line, sizeof line);
    capture_assert_one_line(line, "17600.0 MB of 8 files were read in 2.0 s, 8800 MB/s");
    log_init("test", LOG_INFO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loading__says_nothing_of_what_is_soon_read),
        cmocka_unit_test(test_loading__says_a_line_every_five_seconds),
        cmocka_unit_test(test_loading__a_terminals_line_is_redrawn_and_taken_away),
        cmocka_unit_test(test_loading__one_file_is_no_shard_and_a_small_one_has_megabytes),
        cmocka_unit_test(test_loading__verbose_says_what_was_read),
    };

    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    free(said);
    return failed;
}
