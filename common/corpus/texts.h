/* Texts as tokens, one behind the other, to be counted or searched. It owns what was added. One thread; local. */
#ifndef TANDEM_COMMON_CORPUS_TEXTS_H
#define TANDEM_COMMON_CORPUS_TEXTS_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

enum { TEXTS_NONE = -1 /* what stands in front of each text, and behind the last */, TEXTS_VOCAB_MOST = 1 << 22, TEXTS_MOST = INT32_MAX };

struct texts {
    int32_t *token; /* [count], and TEXTS_NONE behind them */
    size_t count, room;
    size_t tokens; /* of these, those of texts */
};

/* Adds a text. STATUS_DATA for a token outside [0, TEXTS_VOCAB_MOST), or for more than TEXTS_MOST in all; STATUS_INTERNAL without memory. */
enum status texts_add(struct texts *texts, const int32_t *tokens, size_t count);
/* That there is a token, and none outside a vocabulary of this size. STATUS_DATA */
enum status texts_check(const struct texts *texts, int vocab);
void texts_release(struct texts *texts);

/* Compares what stands at two places: up to `most` tokens, to the end of a text, which comes before any token; -1, 0 or 1. */
int texts_compare(const struct texts *texts, size_t one, size_t other, int most);
/* Sorts places so, equal ones by place.  places: [count] */
void texts_sort(const struct texts *texts, uint32_t *places, size_t count, int most);

/* digest_bytes of what is made of texts, TEXTS_PART bytes after the other, with progress after each: it may be large. */
enum { TEXTS_PART = 1 << 26 };
uint64_t texts_digest(const void *bytes, size_t count, uint64_t seed);

#endif
