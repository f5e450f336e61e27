/* Text of anybody's in a page of HTML. Pure; owns nothing. */
#ifndef TANDEM_COMMON_BASE_HTML_H
#define TANDEM_COMMON_BASE_HTML_H

#include <stddef.h>
#include <stdio.h>

/* Writes `count` bytes so that a page shows them, in text or in an attribute between double quotes, and takes none for its own; control characters
 * but newlines and tabs are left out. */
void html_put(const char *text, size_t count, FILE *to);

#endif
