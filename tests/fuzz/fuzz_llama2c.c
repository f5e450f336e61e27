/* Any bytes as a llama2.c .bin: it is refused, or every tensor lies inside the file. */
#include "common/model/checkpoint_llama2c.h"
#include "tests/fuzz/fuzz_file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void table_check(const struct file_map *file, const struct checkpoint_table *table)
{
    for (int i = 0; i < table->count; i++) {
        const struct checkpoint_entry *entry = &table->entries[i];
        int64_t from = entry->data - file->bytes, bytes = entry->shape[0] * (entry->dims == 2 ? entry->shape[1] : 1) * (int64_t)sizeof(float);

        if (from < 0 || bytes <= 0 || bytes > (int64_t)file->size - from)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *path = fuzz_file(0, bytes, size);
    struct checkpoint_table table = {.entries = NULL};
    struct file_map file;
    struct config config;

    if (checkpoint_llama2c_config(path, &config) != STATUS_OK)
        return 0;
    if (file_map_open(path, &file) != STATUS_OK)
        abort();
    if (checkpoint_llama2c_read(&file, &config, &table) == STATUS_OK)
        table_check(&file, &table);
    checkpoint_table_release(&table);
    file_map_close(&file);
    return 0;
}
