#include "drafter/lookup_store.h"

#include <string.h>

size_t lookup_store_bytes(int min, int max, int slots, int context)
{
    return arena_round((size_t)slots * (size_t)context * sizeof(int32_t)) + arena_round(LOOKUP_ENDED * sizeof(int32_t)) +
           ngram_index_bytes(min, max, LOOKUP_ENDED);
}

void lookup_store_init(struct lookup_store *store, struct arena *arena, int min, int max, int slots, int context)
{
    *store = (struct lookup_store){.slots = slots, .context = context};
    store->now = arena_take(arena, (size_t)slots * (size_t)context * sizeof *store->now);
    store->ended = arena_take(arena, LOOKUP_ENDED * sizeof *store->ended);
    ngram_index_init(&store->index, arena, min, max, LOOKUP_ENDED);
}

static int32_t *text_of(const struct lookup_store *store, int slot)
{
    return store->now + (size_t)slot * (size_t)store->context;
}

void lookup_store_clear(struct lookup_store *store)
{
    ngram_index_clear(&store->index);
    store->count = 0;
}

void lookup_store_grow(struct lookup_store *store, int slot, const int32_t *tokens, int from, int upto)
{
    if (upto > from)
        memcpy(text_of(store, slot) + from, tokens + from, (size_t)(upto - from) * sizeof *tokens);
}

void lookup_store_end(struct lookup_store *store, int slot, int count)
{
    if (count == 0 || count >= LOOKUP_ENDED)
        return;
    if (store->count + count >= LOOKUP_ENDED)
        lookup_store_clear(store);
    memcpy(store->ended + store->count, text_of(store, slot), (size_t)count * sizeof *store->ended);
    store->count += count;
    store->ended[store->count++] = -1;
    ngram_index_grow(&store->index, store->ended, store->count);
}

/* The longest n-gram of more than `least` tokens in one other text behind which something follows. Its length, and the place; 0: there is none. */
static int longest_in(const struct ngram_index *index, const int32_t *tokens, const struct ngram_text *text, int least, int *place)
{
    int places[NGRAM_LONGEST], count = ngram_index_list_in(index, tokens, text, places);

    for (int i = 0; i < count; i++) {
        int n = index->min + count - 1 - i;

        if (n <= least)
            break;
        if (places[i] < index->count && tokens[places[i]] >= 0) {
            *place = places[i];
            return n;
        }
    }
    return 0;
}

static int copied(const struct ngram_index *index, const int32_t *tokens, int place, int wanted)
{
    int count = 0;

    while (count < wanted && place + count < index->count && tokens[place + count] >= 0)
        count++;
    return count;
}

int lookup_store_find(const struct lookup_store *store, const struct ngram_index *indices, int slot, const struct ngram_text *text, int least,
                      int wanted, const int32_t **from)
{
    int found = 0;

    for (int other = 0; other <= store->slots; other++) {
        const struct ngram_index *index = other < store->slots ? &indices[other] : &store->index;
        const int32_t *tokens = other < store->slots ? text_of(store, other) : store->ended;
        int place, n = other == slot ? 0 : longest_in(index, tokens, text, least, &place);

        if (n == 0)
            continue;
        least = n;
        *from = tokens + place;
        found = copied(index, tokens, place, wanted);
    }
    return found;
}
