#include "common/base/plain_file.h"
#include "tests/support/files.h"

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
    write_text(files_path, "long before");
    write_text(files_path, "kept");
    assert_text(files_path, "kept");
}

/* A test that waits for ever has a deadline. */
static void test_plain_file__a_pipe_is_none_and_holds_nobody_up(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(files_path, 0600), 0);
    assert_null(plain_file_read(files_path));
    assert_int_equal(errno, EINVAL);
    assert_string_equal(plain_file_fault(), "not a regular file");
    assert_null(plain_file_write(files_path));
    assert_string_equal(plain_file_fault(), "not a regular file");
    assert_null(plain_file_read(files_folder));
    assert_int_equal(errno, EINVAL);
}

static void test_plain_file__is_read_through_a_link_and_never_written_through_one(void **state)
{
    (void)state;
    write_text(files_other, "kept");
    assert_int_equal(symlink(files_other, files_path), 0);
    assert_null(plain_file_write(files_path));
    assert_string_equal(plain_file_fault(), "a link, which is not followed here");
    assert_text(files_path, "kept");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plain_file__is_written_anew_and_read, files_open, files_remove),
        cmocka_unit_test_setup_teardown(test_plain_file__a_pipe_is_none_and_holds_nobody_up, files_open, files_remove),
        cmocka_unit_test_setup_teardown(test_plain_file__is_read_through_a_link_and_never_written_through_one, files_open, files_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
