#include "tests/support/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

char files_folder[FILES_PATH], files_path[FILES_PATH], files_beside[FILES_PATH], files_other[FILES_PATH];

int files_open(void **state)
{
    static const char form[] = "/tmp/tandem-files.XXXXXX";

    (void)state;
    memcpy(files_folder, form, sizeof form);
    assert_non_null(mkdtemp(files_folder));
    snprintf(files_path, FILES_PATH, "%.40s/file", files_folder);
    snprintf(files_beside, FILES_PATH, "%.40s/file.new", files_folder);
    snprintf(files_other, FILES_PATH, "%.40s/other", files_folder);
    return 0;
}

int files_remove(void **state)
{
    (void)state;
    unlink(files_path);
    unlink(files_other);
    return rmdir(files_folder);
}

void files_assert_text(const char *path, const char *expected)
{
    FILE *file = fopen(path, "r");
    char text[32];

    assert_non_null(file);
    assert_string_equal(fgets(text, sizeof text, file), expected);
    fclose(file);
}
