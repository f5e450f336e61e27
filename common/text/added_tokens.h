/* Added tokens are found in a text before the model sees it, the leftmost first and of those the longest (Hugging Face's rules for lstrip, rstrip and
 * single_word). Owns a trie of bytes, filled at open and immutable after that, so any thread may search it. */
#ifndef TANDEM_COMMON_TEXT_ADDED_TOKENS_H
#define TANDEM_COMMON_TEXT_ADDED_TOKENS_H

#include "common/base/status.h"
#include "common/text/byte_buffer.h"
#include <stdint.h>

enum added_flag {
    ADDED_SPECIAL = 1,
    ADDED_LSTRIP = 2,      /* takes the white space in front of it */
    ADDED_RSTRIP = 4,      /* takes the white space behind it */
    ADDED_SINGLE_WORD = 8, /* only where no letter, digit or mark touches it */
};

struct added_tokens {
    struct byte_buffer nodes; /* of struct added_node, the root first */
};

struct added_match {
    size_t start, stop; /* the bytes it takes, white space too */
    int32_t token;
};

/* Adds a text of at least one byte. The same text again takes the new token. STATUS_INTERNAL (logged). */
enum status added_tokens_put(struct added_tokens *added, const char *text, size_t length, int32_t token, unsigned flags);
/* Finds the first match in text[from .. length) that `may` allows; 0 when there is none. It is asked for each token at text[start .. stop), before
 * the white space that the token takes: 1, it is one; 0, it is plain text as a whole; -1, it is not there at all, and another may begin at the next
 * byte. */
typedef int added_tokens_may(void *context, size_t start, size_t stop, int32_t token, unsigned flags);
int added_tokens_find(const struct added_tokens *added, const char *text, size_t length, size_t from, added_tokens_may *may, void *context,
                      struct added_match *match);
void added_tokens_release(struct added_tokens *added);

#endif
