#include "drafter/ngram_index.h"

#include <string.h>

/* At least twice as many entries as there can be n-grams, so that linear probing soon meets a free one. */
static size_t entries_for(int context)
{
    size_t entries = 16;

    while (entries < 2 * (size_t)context)
        entries *= 2;
    return entries;
}

static size_t table_bytes(int min, int max, int context)
{
    return (size_t)(max - min + 1) * entries_for(context) * sizeof(int32_t);
}

size_t ngram_index_bytes(int min, int max, int context)
{
    return arena_round(table_bytes(min, max, context));
}

void ngram_index_init(struct ngram_index *index, struct arena *arena, int min, int max, int context)
{
    *index = (struct ngram_index){.min = min, .max = max, .mask = (uint32_t)entries_for(context) - 1};
    index->place = arena_take(arena, table_bytes(min, max, context));
}

void ngram_index_clear(struct ngram_index *index)
{
    if (index->count > 0)
        memset(index->place, 0, (size_t)(index->max - index->min + 1) * ((size_t)index->mask + 1) * sizeof *index->place);
    index->count = 0;
}

/* Extends the hash of n - 1 tokens by the token before them, so one pass backwards gives the hash of every n-gram at a place. */
static uint64_t hash_of(uint64_t hash, int32_t token)
{
    hash = (hash ^ (uint64_t)(uint32_t)token) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* The entry of these n tokens, or the free entry where it would be inserted. */
static int32_t *entry_of(const struct ngram_index *index, const int32_t *tokens, const int32_t *key, int n, uint64_t hash)
{
    int32_t *table = index->place + (size_t)(n - index->min) * ((size_t)index->mask + 1);
    uint32_t at = (uint32_t)hash & index->mask;

    while (table[at] != 0 && memcmp(tokens + table[at] - n, key, (size_t)n * sizeof *tokens) != 0)
        at = (at + 1) & index->mask;
    return &table[at];
}

void ngram_index_grow(struct ngram_index *index, const int32_t *tokens, int upto)
{
    for (int end = index->count + 1; end <= upto; end++) {
        uint64_t hash = 0;

        for (int n = 1; n <= index->max && n <= end; n++) {
            hash = hash_of(hash, tokens[end - n]);
            if (n >= index->min)
                *entry_of(index, tokens, tokens + end - n, n, hash) = end;
        }
    }
    index->count = upto > index->count ? upto : index->count;
}

int32_t ngram_text_at(const struct ngram_text *text, int i)
{
    return i < text->length ? text->tokens[i] : text->tail[i - text->length];
}

/* The newest place in the text behind those of the index that has these n tokens before it; 0: there is none. */
static int find_behind(const struct ngram_index *index, const struct ngram_text *text, const int32_t *key, int n)
{
    for (int end = text->length + text->more - 1; end > index->count && end >= n; end--) {
        int same = 0;

        while (same < n && ngram_text_at(text, end - n + same) == key[same])
            same++;
        if (same == n)
            return end;
    }
    return 0;
}

int ngram_index_list_in(const struct ngram_index *index, const int32_t *tokens, const struct ngram_text *text, int *places)
{
    int32_t last[NGRAM_LONGEST], found[NGRAM_LONGEST];
    int length = text->length + text->more, count = 0;
    uint64_t hash = 0;

    for (int n = 1; n <= index->max && n <= length; n++) {
        const int32_t *key = last + NGRAM_LONGEST - n;
        int32_t place;

        last[NGRAM_LONGEST - n] = ngram_text_at(text, length - n);
        hash = hash_of(hash, last[NGRAM_LONGEST - n]);
        if (n < index->min)
            continue;
        place = tokens == text->tokens ? find_behind(index, text, key, n) : 0;
        if (place == 0)
            place = *entry_of(index, tokens, key, n, hash);
        if (place == 0)
            break; /* so no longer one occurred either */
        found[count++] = place;
    }
    for (int i = 0; i < count; i++)
        places[i] = found[count - 1 - i];
    return count;
}

int ngram_index_list(const struct ngram_index *index, const struct ngram_text *text, int *places)
{
    return ngram_index_list_in(index, text->tokens, text, places);
}

int ngram_index_find(const struct ngram_index *index, const struct ngram_text *text)
{
    int places[NGRAM_LONGEST];

    return ngram_index_list(index, text, places) > 0 ? places[0] : 0;
}
