/* Any bytes as a safetensors file: it is refused, or every tensor that can be asked for lies inside the file. Run with
 * -close_fd_mask=2, for each refusal is a line on stderr. */
#include "common/model/safetensors.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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
