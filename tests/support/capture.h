/* What this process writes to stderr between begin and end: for tests of the lines that are logged. */
#ifndef TANDEM_TESTS_SUPPORT_CAPTURE_H
#define TANDEM_TESTS_SUPPORT_CAPTURE_H

#include <stddef.h>
#include <stdio.h>

struct capture {
    int before; /* stderr as it was */
    FILE *file;
};

void capture_begin(struct capture *capture);
/* text: [size], cut to fit, with a NUL */
void capture_end(struct capture *capture, char *text, size_t size);
/* Fails unless the text is exactly one line that holds `part`. */
void capture_assert_one_line(const char *text, const char *part);

#endif
