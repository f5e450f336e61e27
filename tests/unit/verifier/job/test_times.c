/* What jobs leave of their times: what was written is read, by its own kind alone, and a file that is damaged, hostile or not there is none. */
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

static char folder[] = "/tmp/tandem-times-XXXXXX", path[PATH_MAX];

static struct adaptive_times some(double us)
{
    return (struct adaptive_times){.us = {[0] = us + 3, [1] = us + 50, [9] = 10 * us}};
}

static int are_equal(const struct adaptive_times *a, const struct adaptive_times *b)
{
    int equal = 1;

    for (int i = 0; i < ADAPTIVE_KNOTS; i++)
        equal &= fabs(a->us[i] - b->us[i]) < 1e-2;
    return equal;
}

static int is_none(const char *of)
{
    static const struct adaptive_times none;
    struct adaptive_times times = some(7);

    times_read(path, of, &times);
    return memcmp(&times, &none, sizeof none) == 0;
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
    const struct adaptive_times a = some(100), b = some(333), c = some(105);
    struct adaptive_times times;

    (void)state;
    assert_true(is_none("a")); /* no folder yet */
    times_write(path, "a", &a);
    times_write(path, "b \xff", &b); /* a path that is no text */
    times_read(path, "a", &times);
    assert_true(are_equal(&times, &a));
    times_read(path, "b \xff", &times);
    assert_true(are_equal(&times, &b));
    assert_true(is_none("c"));
    times_write(path, "b \xff", &b); /* in the place of what there was */
    assert_int_equal(kinds(), 2);
    times_write(path, "a", &c);
    times_read(path, "a", &times);
    assert_true(are_equal(&times, &c));
}

static void test_times__the_newest_kinds_are_kept(void **state)
{
    char of[32];

    (void)state;
    for (int i = 0; i < TIMES_MOST + 3; i++) {
        const struct adaptive_times times = some(i + 1);

        snprintf(of, sizeof of, "kind %d", i);
        times_write(path, of, &times);
    }
    assert_true(is_none("kind 2"));
    assert_false(is_none("kind 3"));
    assert_false(is_none("kind 66"));
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
    const struct adaptive_times a = some(100);
    struct adaptive_times times;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_text(wrong[i]);
        assert_true(is_none("a"));
        times_write(path, "a", &a);
        times_read(path, "a", &times);
        assert_true(are_equal(&times, &a));
    }
}

/* A pipe there would block whoever opens it, and a link would lead the writer elsewhere: it is replaced. */
static void test_times__what_lies_there_instead_of_a_file_is_replaced(void **state)
{
    const struct adaptive_times a = some(100);
    char other[PATH_MAX + 8];
    struct stat found;

    (void)state;
    snprintf(other, sizeof other, "%s.other", path);
    for (int is_link = 0; is_link < 2; is_link++) {
        unlink(path);
        assert_int_equal(is_link ? symlink(other, path) : mkfifo(path, 0600), 0);
        assert_true(is_none("a"));
        times_write(path, "a", &a);
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
        cmocka_unit_test(test_times__of_a_file_that_is_wrong_are_none_and_it_is_written_anew),
        cmocka_unit_test(test_times__what_lies_there_instead_of_a_file_is_replaced),
    };

    return cmocka_run_group_tests(tests, set_up, remove_all);
}
