/* What jobs leave of their times and drafts: what was written is read, by its own kind and terms alone, and a file that is damaged, hostile or not
 * there is none. */
#include "verifier/job/times.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { NOW = 1800000000 }; /* seconds since the epoch */

static char folder[] = "/tmp/tandem-times-XXXXXX", path[PATH_MAX];

static const char by[] = "greedy";

static struct times some(double us)
{
    return (struct times){.steps.us = {[0] = us + 3, [1] = us + 50, [9] = 10 * us},
                          .drafts = {.tokens = {.tested = {40, 30.5}, .accepted = {us / 10, 0}},
                                     .wait = {.us = {[2] = us, [12] = 0}, .rounds = {[2] = 3, [12] = 1}},
                                     .ratio = {{1, 5}, 1.25},
                                     .rest_us = 100 * us,
                                     .alone_us = us,
                                     .rests = 5}};
}

static int are_close(const double *a, const double *b, int count)
{
    int close = 1;

    for (int i = 0; i < count; i++)
        close &= fabs(a[i] - b[i]) < 1e-2;
    return close;
}

static int are_equal(const struct times *a, const struct times *b)
{
    const struct adaptive_past *x = &a->drafts, *y = &b->drafts;

    return are_close(a->steps.us, b->steps.us, ADAPTIVE_KNOTS) && are_close(x->tokens.tested, y->tokens.tested, ADAPTIVE_MOST) &&
           are_close(x->tokens.accepted, y->tokens.accepted, ADAPTIVE_MOST) && are_close(x->wait.us, y->wait.us, ADAPTIVE_MOST + 1) &&
           memcmp(x->wait.rounds, y->wait.rounds, sizeof x->wait.rounds) == 0 && memcmp(x->ratio.rows, y->ratio.rows, sizeof x->ratio.rows) == 0 &&
           are_close(&x->ratio.of_time, &y->ratio.of_time, 1) && are_close(&x->rest_us, &y->rest_us, 1) && are_close(&x->alone_us, &y->alone_us, 1) &&
           x->rests == y->rests;
}

static int is_none(const char *of)
{
    static const struct times none;
    struct times times = some(7);

    times_read(path, of, by, NOW, &times);
    return memcmp(&times, &none, sizeof none) == 0;
}

/* The ratio of the kind's drafts by these terms; 0: it has none. */
static double ratio(const char *of, const char *terms)
{
    struct times times = some(7);

    times_read(path, of, terms, NOW, &times);
    return times.drafts.ratio.of_time;
}

static void write_text(const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* How many the file has. */
static int kinds(void)
{
    static const char key[] = "\"of\"";
    char text[4096];
    FILE *file = fopen(path, "r");
    int count = 0;

    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (const char *at = text; (at = strstr(at, key)) != NULL; at += strlen(key))
        count++;
    return count;
}

static int set_up(void **state)
{
    (void)state;
    if (folder[strlen(folder) - 1] == 'X' && mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/cache/tandem/times.json", folder);
    return 0;
}

static int remove_all(void **state)
{
    char above[PATH_MAX];

    (void)state;
    unlink(path);
    for (int i = 0; i < 3; i++) {
        snprintf(above, sizeof above, "%s%s", folder, (const char *[]){"/cache/tandem", "/cache", ""}[i]);
        if (rmdir(above) != 0)
            return -1; /* something was left beside the file */
    }
    return 0;
}

static void test_times__are_those_of_their_kind_and_the_last(void **state)
{
    const struct times a = some(100), b = some(333), c = some(105);
    struct times times;

    (void)state;
    assert_true(is_none("a")); /* no folder yet */
    times_write(path, "a", by, NOW, &a);
    times_write(path, "b \xff", by, NOW, &b); /* a path that is no text */
    times_read(path, "a", by, NOW, &times);
    assert_true(are_equal(&times, &a));
    times_read(path, "b \xff", by, NOW, &times);
    assert_true(are_equal(&times, &b));
    assert_true(is_none("c"));
    times_write(path, "b \xff", by, NOW, &b); /* in the place of what there was */
    assert_int_equal(kinds(), 2);
    times_write(path, "a", by, NOW, &c);
    times_read(path, "a", by, NOW, &times);
    assert_true(are_equal(&times, &c));
}

static void test_times__the_newest_kinds_are_kept(void **state)
{
    char of[32];

    (void)state;
    for (int i = 0; i < TIMES_MOST + 3; i++) {
        const struct times times = some(i + 1);

        snprintf(of, sizeof of, "kind %d", i);
        times_write(path, of, by, NOW, &times);
    }
    assert_true(is_none("kind 2"));
    assert_false(is_none("kind 3"));
    assert_false(is_none("kind 66"));
}

static void test_times__drafts_are_those_of_their_terms_and_the_newest_are_kept(void **state)
{
    const struct times without = {.steps.us = {100, 120}};
    struct times with = some(100);
    char terms[32];

    (void)state;
    for (int i = 0; i < TIMES_BY_MOST + 1; i++) {
        snprintf(terms, sizeof terms, "temperature %d", i);
        with.drafts.ratio.of_time = 2 + i;
        times_write(path, "c", terms, NOW, &with);
    }
    times_write(path, "c", "temperature 2", NOW, &without); /* which drafted nothing */
    assert_true(ratio("c", "temperature 0") == 0);
    for (int i = 1; i < TIMES_BY_MOST + 1; i++) {
        snprintf(terms, sizeof terms, "temperature %d", i);
        assert_true(ratio("c", terms) == 2 + i);
    }
    with.drafts.ratio.of_time = 7;
    times_write(path, "c", "temperature 2", NOW, &with); /* in the place of what there was */
    assert_true(ratio("c", "temperature 2") == 7 && ratio("c", "temperature 1") == 3);
}

#define STEPS                         "[{\"of\": \"a\", \"step_us\": [[1, 5]], \"drafts\": "
#define DRAFTS(accepted, waits, rest) STEPS "[{\"by\": \"greedy\", \"accepted\": " accepted ", \"wait_us\": " waits ", " rest "}]}]"
#define REST                          "\"ratio\": [1, 2, 1.5], \"rest_us\": 5, \"alone_us\": 0, \"rests\": 1"

static double rested(int64_t now)
{
    struct times times;

    times_read(path, "a", by, now, &times);
    return times.drafts.alone_us;
}

/* A rest goes on, more slowly, while no job runs, and is over at its end; a clock that was set back takes nothing from it. */
static void test_times__a_rest_goes_on_between_two_jobs(void **state)
{
    struct times times = some(7);

    (void)state;
    times.drafts.rest_us = 10e6;
    times.drafts.alone_us = 2e6;
    times_write(path, "a", by, NOW, &times);
    assert_true(fabs(rested(NOW) - 2e6) < 1);
    assert_true(fabs(rested(NOW + 16) - 4e6) < 1);
    assert_true(fabs(rested(NOW - 1000) - 2e6) < 1);
    assert_true(fabs(rested(NOW + 3600) - 10e6) < 1);
    write_text(DRAFTS("[[4, 3]]", "[]", "\"ratio\": [], \"rest_us\": 9e6, \"alone_us\": 3e6, \"rests\": 1")); /* which says no time */
    assert_true(fabs(rested(NOW) - 3e6) < 1);
    write_text(DRAFTS("[[4, 3]]", "[]", "\"left\": -1e300, \"ratio\": [], \"rest_us\": 9e6, \"alone_us\": 3e6, \"rests\": 1"));
    assert_true(fabs(rested(NOW) - 3e6) < 1);
}

/* The times of steps are right, and stay. */
static void test_times__drafts_that_are_wrong_are_none(void **state)
{
    static const char *const wrong[] = {
        STEPS "7}]",
        STEPS "[7]}]",
        STEPS "[{\"by\": \"greedy\"}]}]",
        DRAFTS("[]", "[]", REST),
        DRAFTS("[[4, 257]]", "[]", REST),
        DRAFTS("[[4, -1]]", "[]", REST),
        DRAFTS("[[1e300, 1]]", "[]", REST),
        DRAFTS("[[1, 1], \"x\"]", "[]", REST),
        DRAFTS("[[1,1],[1,1],[1,1],[1,1],[1,1],[1,1],[1,1],[1,1],[1,1],[1,1],[1,1],[1,1],[1,1]]", "[]", REST),
        DRAFTS("[[4, 3]]", "5", REST),
        DRAFTS("[[4, 3]]", "[[0, 1, 5]]", REST),
        DRAFTS("[[4, 3]]", "[[13, 1, 5]]", REST),
        DRAFTS("[[4, 3]]", "[[-1e300, 1, 5]]", REST),
        DRAFTS("[[4, 3]]", "[[1, 1e300, 5]]", REST),
        DRAFTS("[[4, 3]]", "[[1, 1, -5]]", REST),
        DRAFTS("[[4, 3]]", "[]", "\"ratio\": [1, 2, 1e-9], \"rest_us\": 5, \"alone_us\": 0, \"rests\": 1"),
        DRAFTS("[[4, 3]]", "[]", "\"ratio\": [1, -2, 1], \"rest_us\": 5, \"alone_us\": 0, \"rests\": 1"),
        DRAFTS("[[4, 3]]", "[]", "\"ratio\": [], \"rest_us\": -5, \"alone_us\": 0, \"rests\": 1"),
        DRAFTS("[[4, 3]]", "[]", "\"ratio\": [], \"rest_us\": 5, \"rests\": 1"),
        DRAFTS("[[4, 3]]", "[]", "\"ratio\": [], \"rest_us\": 5, \"alone_us\": 0, \"rests\": 31"),
    };
    static const struct adaptive_past none;

    (void)state;
    write_text(DRAFTS("[[4, 3]]", "[[1, 1, 5]]", REST));
    assert_true(ratio("a", by) == 1.5);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct times times = some(7);

        write_text(wrong[i]);
        times_read(path, "a", by, NOW, &times);
        assert_true(times.steps.us[0] == 5 && memcmp(&times.drafts, &none, sizeof none) == 0);
    }
}

static void test_times__of_a_file_that_is_wrong_are_none_and_it_is_written_anew(void **state)
{
    static const char *const wrong[] = {
        "",
        "[",
        "{}",
        "7",
        "[[[[[[[[[[[[]]]]]]]]]]]]",
        "[1, \"a\", null, {\"of\": 3}]",
        "[{\"of\": \"a\"}]",
        "[{\"of\": \"a\", \"step_us\": [[1, -1]]}]",
        "[{\"of\": \"a\", \"step_us\": [[1, 5e-324]]}]",
        "[{\"of\": \"a\", \"step_us\": [[2, 5]]}]",
        "[{\"of\": \"a\", \"step_us\": [[1, 5], [2, 1e300]]}]",
        "[{\"of\": \"a\", \"step_us\": [[1, 5], [-2, 6]]}]",
        "[{\"of\": \"a\", \"step_us\": [[1, 5], [1e99, 6]]}]",
        "[{\"of\": \"a\", \"step_us\": [[1, 5], \"x\"]}]",
        "[{\"of\": \"a\", \"step_us\": 5}]",
    };
    const struct times a = some(100);
    struct times times;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_text(wrong[i]);
        assert_true(is_none("a"));
        times_write(path, "a", by, NOW, &a);
        times_read(path, "a", by, NOW, &times);
        assert_true(are_equal(&times, &a));
    }
}

/* A pipe there would block whoever opens it, and a link would lead the writer elsewhere: it is replaced. */
static void test_times__what_lies_there_instead_of_a_file_is_replaced(void **state)
{
    const struct times a = some(100);
    char other[PATH_MAX + 8];
    struct stat found;

    (void)state;
    snprintf(other, sizeof other, "%s.other", path);
    for (int is_link = 0; is_link < 2; is_link++) {
        unlink(path);
        assert_int_equal(is_link ? symlink(other, path) : mkfifo(path, 0600), 0);
        assert_true(is_none("a"));
        times_write(path, "a", by, NOW, &a);
        assert_false(is_none("a"));
        assert_int_equal(lstat(path, &found), 0);
        assert_true(S_ISREG(found.st_mode) && (found.st_mode & 077) == 0);
        assert_int_equal(access(other, F_OK), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times__are_those_of_their_kind_and_the_last),
        cmocka_unit_test(test_times__the_newest_kinds_are_kept),
        cmocka_unit_test(test_times__drafts_are_those_of_their_terms_and_the_newest_are_kept),
        cmocka_unit_test(test_times__a_rest_goes_on_between_two_jobs),
        cmocka_unit_test(test_times__drafts_that_are_wrong_are_none),
        cmocka_unit_test(test_times__of_a_file_that_is_wrong_are_none_and_it_is_written_anew),
        cmocka_unit_test(test_times__what_lies_there_instead_of_a_file_is_replaced),
    };

    return cmocka_run_group_tests(tests, set_up, remove_all);
}
