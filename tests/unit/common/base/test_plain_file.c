#include "common/base/plain_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/test_plain_file.XXXXXX", path[64], other[64];

static int open_folder(void **state)
{
    (void)state;
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    unlink(other);
    return rmdir(folder);
}

static void write_text(const char *where, const char *text)
{
    FILE *file = plain_file_write(where);

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void assert_text(const char *where, const char *expected)
{
    FILE *file = plain_file_read(where);
    char text[32];

    assert_non_null(file);
    assert_string_equal(fgets(text, sizeof text, file), expected);
    fclose(file);
}

static void test_plain_file__is_written_anew_and_read(void **state)
{
    (void)state;
    write_text(path, "long before");
    write_text(path, "kept");
    assert_text(path, "kept");
}

/* A test that waits for ever has a deadline. */
static void test_plain_file__a_pipe_is_none_and_holds_nobody_up(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(plain_file_read(path));
    assert_int_equal(errno, EINVAL);
    assert_string_equal(plain_file_fault(), "not a regular file");
    assert_null(plain_file_write(path));
    assert_string_equal(plain_file_fault(), "not a regular file");
    assert_null(plain_file_read(folder));
    assert_int_equal(errno, EINVAL);
}

static void test_plain_file__is_read_through_a_link_and_never_written_through_one(void **state)
{
    (void)state;
    write_text(other, "kept");
    assert_int_equal(symlink(other, path), 0);
    assert_null(plain_file_write(path));
    assert_string_equal(plain_file_fault(), "a link, which is not followed here");
    assert_text(path, "kept");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plain_file__is_written_anew_and_read, open_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_plain_file__a_pipe_is_none_and_holds_nobody_up, open_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_plain_file__is_read_through_a_link_and_never_written_through_one, open_folder, remove_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
