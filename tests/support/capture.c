#include "tests/support/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

void capture_begin(struct capture *capture)
{
    fflush(stderr);
    capture->file = tmpfile();
    capture->before = dup(STDERR_FILENO);
    assert_non_null(capture->file);
    assert_int_equal(dup2(fileno(capture->file), STDERR_FILENO), STDERR_FILENO);
}

void capture_end(struct capture *capture, char *text, size_t size)
{
    fflush(stderr);
    dup2(capture->before, STDERR_FILENO);
    close(capture->before);
    rewind(capture->file);
    text[fread(text, 1, size - 1, capture->file)] = '\0';
    fclose(capture->file);
}

void capture_assert_one_line(const char *text, const char *part)
{
    const char *end = strchr(text, '\n');

    if (end == NULL || end[1] != '\0' || strstr(text, part) == NULL)
        fail_msg("expected one line with '%s', found '%s'", part, text);
}
