#include "common/base/new_file.h"
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
    FILE *file = fopen(where, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static mode_t mode_of(const char *where)
{
    struct stat state;

    assert_int_equal(stat(where, &state), 0);
    return state.st_mode & 0777;
}

/* Returns what new_file_put did. */
static int replace(int whole)
{
    FILE *file = new_file_open(files_beside, files_path, 0600);

    assert_non_null(file);
    assert_true(fputs("new", file) >= 0);
    return new_file_put(file, whole, files_beside, files_path);
}

static void test_new_file__takes_the_place_of_another_as_a_whole(void **state)
{
    FILE *file;

    (void)state;
    write_text(files_path, "old");
    file = new_file_open(files_beside, files_path, 0600);
    assert_non_null(file);
    assert_true(fputs("new", file) >= 0 && fflush(file) == 0);
    files_assert_text(files_path, "old");
    assert_true(new_file_put(file, 1, files_beside, files_path));
    files_assert_text(files_path, "new");
}

static void test_new_file__that_is_not_whole_leaves_the_old_one(void **state)
{
    (void)state;
    write_text(files_path, "old");
    assert_false(replace(0));
    files_assert_text(files_path, "old");
}

static void test_new_file__where_nothing_can_be_put_nothing_is_left(void **state)
{
    (void)state;
    assert_int_equal(mkdir(files_path, 0700), 0);
    assert_false(replace(1));
    assert_true(errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST);
    assert_int_equal(rmdir(files_path), 0);
}

static void test_new_file__has_the_permissions_of_the_old_one(void **state)
{
    (void)state;
    assert_true(replace(1));
    assert_int_equal(mode_of(files_path), 0600);
    assert_int_equal(chmod(files_path, 0664), 0);
    assert_true(replace(1));
    assert_int_equal(mode_of(files_path), 0664);
}

/* A link is replaced, and not by what whoever laid it wants others to read. */
static void test_new_file__has_no_permissions_of_what_a_link_leads_to(void **state)
{
    (void)state;
    write_text(files_other, "kept");
    assert_int_equal(chmod(files_other, 0666), 0);
    assert_int_equal(symlink(files_other, files_path), 0);
    assert_true(replace(1));
    assert_int_equal(mode_of(files_path), 0600);
    files_assert_text(files_other, "kept");
}

/* Left over, or laid there by somebody else: nothing is written through it. */
static void test_new_file__what_lies_beside_is_not_written_to(void **state)
{
    (void)state;
    write_text(files_other, "kept");
    assert_int_equal(link(files_other, files_beside), 0);
    assert_true(replace(1));
    files_assert_text(files_other, "kept");
    assert_int_equal(symlink(files_other, files_beside), 0);
    assert_true(replace(1));
    files_assert_text(files_other, "kept");
    files_assert_text(files_path, "new");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_new_file__takes_the_place_of_another_as_a_whole, files_open, files_remove),
        cmocka_unit_test_setup_teardown(test_new_file__that_is_not_whole_leaves_the_old_one, files_open, files_remove),
        cmocka_unit_test_setup_teardown(test_new_file__where_nothing_can_be_put_nothing_is_left, files_open, files_remove),
        cmocka_unit_test_setup_teardown(test_new_file__has_the_permissions_of_the_old_one, files_open, files_remove),
        cmocka_unit_test_setup_teardown(test_new_file__has_no_permissions_of_what_a_link_leads_to, files_open, files_remove),
        cmocka_unit_test_setup_teardown(test_new_file__what_lies_beside_is_not_written_to, files_open, files_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
