/* Quotes a text as one word for a shell (bash): nothing in it is run, wherever it came from, and no escape sequence of it reaches the terminal. */
#ifndef TANDEM_COMMON_BASE_SHELL_WORD_H
#define TANDEM_COMMON_BASE_SHELL_WORD_H

#include <stdio.h>

void shell_word_put(const char *text, FILE *to);

#endif
