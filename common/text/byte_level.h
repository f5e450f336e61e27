/* GPT-2's spelling of bytes as printable characters (Radford et al. 2019, bytes_to_unicode): bytes that print stand for themselves, the other 68 for
 * U+0100 onwards in order. A byte-level tokenizer.json spells its pieces so; inside Tandem they are bytes. Owns nothing; pure. */
#ifndef TANDEM_COMMON_TEXT_BYTE_LEVEL_H
#define TANDEM_COMMON_TEXT_BYTE_LEVEL_H

#include <stddef.h>

/* Writes the bytes that text[0 .. count) spells (never more than `count`) to out and returns how many; -1 when a character of it
 * spells no byte. The text is valid UTF-8. */
ptrdiff_t byte_level_decode(const char *text, size_t count, char *out);

#endif
