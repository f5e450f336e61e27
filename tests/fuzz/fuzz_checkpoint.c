/* Any bytes as a safetensors file: it is refused, or every tensor that can be asked for lies inside the file. Run with
 * -close_fd_mask=2, for each refusal is a line on stderr. */
#include "common/backend/backend.h"
#include "common/model/safetensors.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

static void table_check(const struct checkpoint_file *file, struct checkpoint_table *table)
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
    struct checkpoint_table table = {.entries = NULL};
    struct checkpoint_file file;
    char path[64];
    int memory = memfd_create("fuzz_checkpoint", MFD_CLOEXEC);

    if (memory < 0 || write(memory, bytes, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    if (checkpoint_file_open(path, &file) != STATUS_OK)
        abort();
    if (safetensors_read(&file, &table) == STATUS_OK)
        table_check(&file, &table);
    checkpoint_table_release(&table);
    checkpoint_file_close(&file);
    close(memory);
    return 0;
}
