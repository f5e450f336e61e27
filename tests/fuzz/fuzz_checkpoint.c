/* Any bytes as a safetensors file: it is refused, or every tensor that can be asked for lies inside the file. Run with
 * -close_fd_mask=2, for each refusal is a line on stderr. */
#include "common/model/checkpoint_quantised.h"
#include "common/model/safetensors.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_MOST = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int64_t entry_bytes(const struct checkpoint_entry *entry)
{
    int64_t bytes = strcmp(entry->dtype, "F32") == 0 ? 4 : strcmp(entry->dtype, "F16") == 0 || strcmp(entry->dtype, "BF16") == 0 ? 2 : 0;

    for (int i = 0; i < entry->dims; i++)
        if (entry->shape[i] == 0)
            return 0;
    for (int i = 0; i < entry->dims && bytes > 0; i++)
        if (__builtin_mul_overflow(bytes, entry->shape[i], &bytes))
            abort();
    return bytes;
}

/* Makes the first and the last rows of a map in few bits, if the table has one of that name and size. */
static void map_check(const struct checkpoint_table *table, const char *name, int64_t rows, int64_t columns)
{
    static const struct quantisation kinds[] = {{.kind = QUANTISATION_AWQ, .group = 32},
                                                {.kind = QUANTISATION_GPTQ, .zero_added = 1},
                                                {.kind = QUANTISATION_FP8, .block = {64, 32}},
                                                {.kind = QUANTISATION_FP8, .block = {2, 128}}};
    struct tensor tensor;
    int found;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && rows > 0 && columns > 0 && columns <= ROW_MOST; i++)
        if (checkpoint_quantised_find(table, &kinds[i], name, rows, columns, &tensor, &found) == STATUS_OK && found) {
            void *made = malloc(CHECKPOINT_QUANTISED_ROWS * dtype_row_bytes(tensor.dtype, (size_t)columns));

            checkpoint_quantised_rows(&tensor, 0, made);
            checkpoint_quantised_rows(&tensor, (rows - 1) / CHECKPOINT_QUANTISED_ROWS * CHECKPOINT_QUANTISED_ROWS, made);
            free(made);
        }
}

/* Whatever map a tensor may be a part of. */
static void maps_check(const struct checkpoint_table *table, const struct checkpoint_entry *entry)
{
    static const char packed[] = ".qweight";
    size_t length = strlen(entry->name), tail = sizeof packed - 1;
    char name[CHECKPOINT_NAME_MAX + 1];

    if (entry->dims != 2 || entry->shape[0] > ROW_MOST || entry->shape[1] > ROW_MOST)
        return;
    map_check(table, entry->name, entry->shape[0], entry->shape[1]);
    if (length < tail || strcmp(entry->name + length - tail, packed) != 0)
        return;
    snprintf(name, sizeof name, "%.*s.weight", (int)(length - tail), entry->name);
    map_check(table, name, entry->shape[1], entry->shape[0] * 8);
    map_check(table, name, entry->shape[1] * 8, entry->shape[0]);
}

static void table_check(const struct file_map *file, struct checkpoint_table *table)
{
    if (checkpoint_table_sort(table) != STATUS_OK)
        abort(); /* one file with a name twice is not JSON that we take */
    for (int i = 0; i < table->count; i++) {
        const struct checkpoint_entry *entry = &table->entries[i];
        int64_t from = entry->data - file->bytes;

        if (checkpoint_table_find(table, entry->name) != entry)
            abort();
        if (from < 0 || entry_bytes(entry) > (int64_t)file->size - from)
            abort();
        maps_check(table, entry);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    /* Memory of the file's exact size, so that a read beyond its end is seen, which a mapping would hide in its last page. */
    const struct file_map file = {.path = (char *)(uintptr_t)"fuzz", .bytes = bytes, .size = size, .descriptor = -1};
    struct checkpoint_table table = {.entries = NULL};

    if (safetensors_read(&file, &table) == STATUS_OK)
        table_check(&file, &table);
    checkpoint_table_release(&table);
    return 0;
}
