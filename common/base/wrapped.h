/* Writes help texts wrapped to the width of the terminal that they go to. Owns nothing; local. Texts are the program's own: nothing in them is made
 * harmless. */
#ifndef TANDEM_COMMON_BASE_WRAPPED_H
#define TANDEM_COMMON_BASE_WRAPPED_H

#include <stdio.h>

/* Columns that help may take: those of the terminal that it goes to, or that COLUMNS says, and no more than can be read. */
int wrapped_width(FILE *to);
/* Writes words up to the width and an end of line. The cursor stands at column `indent`, where further lines begin, too. */
void wrapped_put(FILE *to, const char *text, int indent, int width);
/* "a|b|c)" behind a parenthesis that stands at column `indent`; lines break behind a bar. */
void wrapped_put_choices(FILE *to, const char *choices, int indent, int width);
/* A row of help for each line of the text: what stands before two spaces or more is a name, what is behind them its words. A line without a
 * name is a paragraph, an empty one is one. */
void wrapped_put_help(FILE *to, const char *text);

#endif
