/* An n-gram index tells where the last tokens of a sequence occurred before. It owns a hash table for each n from min to max with the newest place
 * after every n-gram of tokens[0 .. count). Invariant: an entry is a place, and the tokens before that place are its key, so these tokens must not
 * change without ngram_index_clear. Adding a token and a search each take about `max` look-ups, however long the sequence is. Local; never sends or
 * waits, and takes memory at init alone. */
#ifndef TANDEM_DRAFTER_NGRAM_INDEX_H
#define TANDEM_DRAFTER_NGRAM_INDEX_H

#include "common/base/arena.h"
#include <stdint.h>

enum { NGRAM_LONGEST = 16 };

struct ngram_index {
    int min, max;   /* at most NGRAM_LONGEST */
    int count;      /* n-grams of tokens[0 .. count) are in the index */
    uint32_t mask;  /* entries of a table - 1 */
    int32_t *place; /* [max - min + 1][mask + 1], 0: a free entry */
};

/* Bytes for n-grams of min to max tokens, 1 <= min <= max, of a sequence of up to `context` tokens. */
size_t ngram_index_bytes(int min, int max, int context);
void ngram_index_init(struct ngram_index *index, struct arena *arena, int min, int max, int context);
/* Empties the index, for another sequence. */
void ngram_index_clear(struct ngram_index *index);
/* Adds the n-grams of tokens[0 .. upto), of which the first index->count have not changed; upto at most `context`. */
void ngram_index_grow(struct ngram_index *index, const int32_t *tokens, int upto);
/* A text: tokens[0 .. length), and behind them tail[0 .. more). */
struct ngram_text {
    const int32_t *tokens;
    int length;
    const int32_t *tail;
    int more;
};

int32_t ngram_text_at(const struct ngram_text *text, int i);
/* The place of the token after the newest earlier occurrence of the longest n-gram at the end of the text; 0 where none occurred. The index must have
 * tokens of the text alone, and not the newest one; those before it that it lacks are looked at one by one. */
int ngram_index_find(const struct ngram_index *index, const struct ngram_text *text);
/* The same for each n-gram that occurred, the longest first. Returns how many.  places: [NGRAM_LONGEST] */
int ngram_index_list(const struct ngram_index *index, const struct ngram_text *text, int *places);
/* The same in another text, whose first index->count tokens these are: also of the n-gram at its end, behind which nothing is. */
int ngram_index_list_in(const struct ngram_index *index, const int32_t *tokens, const struct ngram_text *text, int *places);

#endif
