/* Makes text from outside (models, prompts, files, peers) harmless for a terminal, which would obey escape sequences in it: they move the cursor,
 * rename the window, and more. A pipe gets the bytes unchanged. Pure but for visible_put. */
#ifndef TANDEM_COMMON_BASE_VISIBLE_H
#define TANDEM_COMMON_BASE_VISIBLE_H

#include <stddef.h>
#include <stdio.h>

enum { VISIBLE_MOST = 4 }; /* bytes that one byte may become */

/* Writes `count` bytes of text so that a terminal shows them and obeys none: a control character of ASCII that is not one of `kept` becomes \x1b,
 * one of C1 (U+0080 to U+009F, of two bytes) \u009b, a byte that is no UTF-8 \xff. All else stays. Returns the bytes written.  out: [VISIBLE_MOST
 * * count] */
size_t visible_write(const char *text, size_t count, const char *kept, char *out);
/* Bytes of the character that the text begins with; 0 where that is a control character or no UTF-8, which visible_write would change. */
size_t visible_character(const char *text, size_t count);
/* Would all of it stay as it is? */
int visible_is_plain(const char *text, size_t count, const char *kept);
/* The first `most` bytes, or fewer, of the text in quotes, on one line whatever is in it, with .. behind what was cut. Returns the bytes written; a
 * 0 follows.  out: [VISIBLE_QUOTED(most)] */
#define VISIBLE_QUOTED(most) (VISIBLE_MOST * (most) + 5)
size_t visible_quote(const char *text, size_t count, size_t most, char *out);
/* All of the text likewise, to a stream. */
void visible_put_quoted(const char *text, size_t count, FILE *to);
/* The same as visible_write, to a stream. The text begins and ends with whole characters. */
void visible_put(const char *text, size_t count, const char *kept, FILE *to);

#endif
