/* What a job has written beside the sequence that is drafted for, for a lookup to copy from: the texts that the other slots have now, and those that
 * they had before. It owns copies of these tokens, for a mirror keeps none of a text that was replaced, and an index of those that ended; the index
 * of a slot's text is the drafter's (ngram_index.h). Where no more ended texts fit it begins anew, without them. Local; takes memory at init alone.
 */
#ifndef TANDEM_DRAFTER_LOOKUP_STORE_H
#define TANDEM_DRAFTER_LOOKUP_STORE_H

#include "drafter/ngram_index.h"

enum { LOOKUP_ENDED = 1 << 18 /* tokens of ended texts */ };

struct lookup_store {
    int slots, context;
    int count;      /* tokens of ended texts */
    int32_t *now;   /* [slots][context], what each slot's index has */
    int32_t *ended; /* [LOOKUP_ENDED], a -1 behind each text */
    struct ngram_index index;
};

size_t lookup_store_bytes(int min, int max, int slots, int context);
void lookup_store_init(struct lookup_store *store, struct arena *arena, int min, int max, int slots, int context);
/* tokens[0 .. upto) are the slot's text, of which the first `from` have not changed. */
void lookup_store_grow(struct lookup_store *store, int slot, const int32_t *tokens, int from, int upto);
/* The slot gets another text: the `count` tokens that it had have ended. */
void lookup_store_end(struct lookup_store *store, int slot, int count);
/* Forgets all of it. The slots' indices are to be cleared, too. */
void lookup_store_clear(struct lookup_store *store);
/* Tokens that followed the longest n-gram at the end of the text of `slot`, of more than `least` tokens, in another text: those of other slots before
 * those that ended. Returns how many may be copied, at most `wanted`; 0: none.  indices: [slots]  from: the first of them */
int lookup_store_find(const struct lookup_store *store, const struct ngram_index *indices, int slot, const struct ngram_text *text, int least,
                      int wanted, const int32_t **from);

#endif
