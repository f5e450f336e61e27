/* A folder of a test's own with up to three files, for tests of how files are opened and replaced. What goes wrong ends the test. */
#ifndef TANDEM_TESTS_SUPPORT_FILES_H
#define TANDEM_TESTS_SUPPORT_FILES_H

enum { FILES_PATH = 64 };

/* The folder, and names in it, from files_open on. */
extern char files_folder[FILES_PATH], files_path[FILES_PATH], files_beside[FILES_PATH], files_other[FILES_PATH];

/* For cmocka: a new folder; and its end, which fails where anything but files_path and files_other is left in it. */
int files_open(void **state);
int files_remove(void **state);
/* The first line of a file. */
void files_assert_text(const char *path, const char *expected);

#endif
