#include "common/text/merge_table.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdlib.h>

enum status merge_table_init(struct merge_table *table, size_t count)
{
    size_t slots = 64;
    int shift = 58;

    for (; slots < count * 2; slots *= 2)
        shift--;
    *table = (struct merge_table){.merges = malloc(slots * sizeof(struct merge)), .mask = slots - 1, .shift = shift};
    if (table->merges == NULL) {
        log_error("cannot have %zu slots for the merges of a tokenizer", slots);
        return STATUS_INTERNAL;
    }
    for (size_t i = 0; i < slots; i++)
        table->merges[i].pair = MERGE_TABLE_NONE;
    return STATUS_OK;
}

/* Fibonacci hashing of the folded pair: neighbouring ids fall far apart. */
static struct merge *slot_of(const struct merge_table *table, uint64_t pair)
{
    size_t slot = (size_t)(((pair ^ pair >> 29) * UINT64_C(0x9E3779B97F4A7C15)) >> table->shift);

    while (table->merges[slot].pair != pair && table->merges[slot].pair != MERGE_TABLE_NONE)
        slot = (slot + 1) & table->mask;
    return &table->merges[slot];
}

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static enum status grow(struct merge_table *table)
{
    struct merge_table wider;

    TRY(merge_table_init(&wider, table->mask + 1));
    for (size_t i = 0; i <= table->mask; i++)
        if (table->merges[i].pair != MERGE_TABLE_NONE)
            *slot_of(&wider, table->merges[i].pair) = table->merges[i];
    wider.count = table->count;
    free(table->merges);
    *table = wider;
    return STATUS_OK;
}

enum status merge_table_put(struct merge_table *table, int32_t left, int32_t right, uint32_t rank, int32_t token)
{
    struct merge *slot;

    if (table->count * 2 > table->mask)
        TRY(grow(table));
    slot = slot_of(table, pair_of(left, right));
    if (slot->pair == MERGE_TABLE_NONE)
        table->count++;
    *slot = (struct merge){.pair = pair_of(left, right), .rank = rank, .token = token};
    return STATUS_OK;
}

const struct merge *merge_table_find(const struct merge_table *table, int32_t left, int32_t right)
{
    const struct merge *slot = slot_of(table, pair_of(left, right));

    return slot->pair == MERGE_TABLE_NONE ? NULL : slot;
}

void merge_table_release(struct merge_table *table)
{
    free(table->merges);
    *table = (struct merge_table){0};
}
