#include "common/model/checkpoint_table.h"

#include "common/base/log.h"
#include <stdlib.h>
#include <string.h>

static enum status table_grow(struct checkpoint_table *table, const char *file)
{
    int room = table->room == 0 ? 64 : table->room * 2;
    struct checkpoint_entry *entries = realloc(table->entries, (size_t)room * sizeof *entries);

    if (entries == NULL) {
        log_error("%s: no memory for a table of %d tensors", file, room);
        return STATUS_INTERNAL;
    }
    table->entries = entries;
    table->room = room;
    return STATUS_OK;
}

enum status checkpoint_table_add(struct checkpoint_table *table, const struct checkpoint_entry *entry)
{
    char *name;

    if (table->count == CHECKPOINT_TENSORS_MAX) {
        log_error("%s: tensor %s is one too many, expected at most %d", entry->file, entry->name, CHECKPOINT_TENSORS_MAX);
        return STATUS_DATA;
    }
    if (table->count == table->room && table_grow(table, entry->file) != STATUS_OK)
        return STATUS_INTERNAL;
    name = strdup(entry->name);
    if (name == NULL) {
        log_error("%s: no memory for the name of tensor %s", entry->file, entry->name);
        return STATUS_INTERNAL;
    }
    table->entries[table->count] = *entry;
    table->entries[table->count++].name = name;
    return STATUS_OK;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct checkpoint_entry *)left)->name, ((const struct checkpoint_entry *)right)->name);
}

enum status checkpoint_table_sort(struct checkpoint_table *table)
{
    if (table->count > 1)
        qsort(table->entries, (size_t)table->count, sizeof *table->entries, by_name);
    for (int i = 1; i < table->count; i++) {
        const struct checkpoint_entry *entry = &table->entries[i];

        if (by_name(entry - 1, entry) == 0) {
            log_error("%s: tensor %s is also in %s", entry->file, entry->name, (entry - 1)->file);
            return STATUS_DATA;
        }
    }
    return STATUS_OK;
}

const struct checkpoint_entry *checkpoint_table_find(const struct checkpoint_table *table, const char *name)
{
    int first = 0, last = table->count;

    while (first < last) {
        int middle = first + (last - first) / 2, order = strcmp(name, table->entries[middle].name);

        if (order == 0)
            return &table->entries[middle];
        if (order < 0)
            last = middle;
        else
            first = middle + 1;
    }
    return NULL;
}

int checkpoint_table_dtype(const struct checkpoint_entry *entry, enum dtype *dtype)
{
    enum dtype usable = entry->has_blocks && entry->dims == 2 ? DTYPES : DTYPE_F8;

    for (enum dtype known = DTYPE_F32; known < usable; known++) {
        if (strcmp(dtype_name(known), entry->dtype) == 0) {
            *dtype = known;
            return 1;
        }
    }
    return 0;
}

void checkpoint_table_release(struct checkpoint_table *table)
{
    for (int i = 0; i < table->count; i++)
        free(table->entries[i].name);
    free(table->entries);
    *table = (struct checkpoint_table){.entries = NULL};
}
