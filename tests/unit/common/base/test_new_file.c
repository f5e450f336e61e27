#include "common/base/new_file.h"

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

static char folder[] = "/tmp/test_new_file.XXXXXX", path[64], beside[64], other[64];

static int open_folder(void **state)
{
    (void)state;
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(beside, sizeof beside, "%s/file.new", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    unlink(other);
    return rmdir(folder); /* which nothing else is in */
}

static void write_text(const char *where, const char *text)
{
    FILE *file = fopen(where, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void assert_text(const char *where, const char *expected)
{
    FILE *file = fopen(where, "r");
    char text[32];

    assert_non_null(file);
    assert_string_equal(fgets(text, sizeof text, file), expected);
    fclose(file);
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
    FILE *file = new_file_open(beside, path, 0600);

    assert_non_null(file);
    assert_true(fputs("new", file) >= 0);
    return new_file_put(file, whole, beside, path);
}

static void test_new_file__takes_the_place_of_another_as_a_whole(void **state)
{
    FILE *file;

    (void)state;
    write_text(path, "old");
    file = new_file_open(beside, path, 0600);
    assert_non_null(file);
    assert_true(fputs("new", file) >= 0 && fflush(file) == 0);
    assert_text(path, "old");
    assert_true(new_file_put(file, 1, beside, path));
    assert_text(path, "new");
}

static void test_new_file__that_is_not_whole_leaves_the_old_one(void **state)
{
    (void)state;
    write_text(path, "old");
    assert_false(replace(0));
    assert_text(path, "old");
}

static void test_new_file__where_nothing_can_be_put_nothing_is_left(void **state)
{
    (void)state;
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(replace(1));
    assert_true(errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST);
    assert_int_equal(rmdir(path), 0);
}

static void test_new_file__has_the_permissions_of_the_old_one(void **state)
{
    (void)state;
    assert_true(replace(1));
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(chmod(path, 0664), 0);
    assert_true(replace(1));
    assert_int_equal(mode_of(path), 0664);
}

/* Left over, or laid there by somebody else: nothing is written through it. */
static void test_new_file__what_lies_beside_is_not_written_to(void **state)
{
    (void)state;
    write_text(other, "kept");
    assert_int_equal(link(other, beside), 0);
    assert_true(replace(1));
    assert_text(other, "kept");
    assert_int_equal(symlink(other, beside), 0);
    assert_true(replace(1));
    assert_text(other, "kept");
    assert_text(path, "new");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_new_file__takes_the_place_of_another_as_a_whole, open_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_new_file__that_is_not_whole_leaves_the_old_one, open_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_new_file__where_nothing_can_be_put_nothing_is_left, open_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_new_file__has_the_permissions_of_the_old_one, open_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_new_file__what_lies_beside_is_not_written_to, open_folder, remove_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
