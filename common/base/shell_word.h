/* A text on its way to a shell (bash): as one word, of which nothing is run, wherever it came from, and which moves no terminal's cursor. */
#ifndef TANDEM_COMMON_BASE_SHELL_WORD_H
#define TANDEM_COMMON_BASE_SHELL_WORD_H

#include <stdio.h>

void shell_word_put(const char *text, FILE *to);

#endif
