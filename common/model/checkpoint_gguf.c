#include "common/model/checkpoint_gguf.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/gguf.h"
#include <stdio.h>
#include <string.h>

/* here: [FAMILY_NAME_MAX] */
static enum status translate(const struct gguf *gguf, const struct model_family *family, struct gguf_text name, char *here)
{
    char there[GGUF_NAME_MAX + 1];
    enum family_part part;
    int layer = 0;

    snprintf(there, sizeof there, "%.*s", (int)name.length, name.bytes);
    part = family_part_of(family, FAMILY_GGUF, there, &layer);
    if (part == FAMILY_PARTS || !family_has(family, part)) { /* a tensor that was left out would change the model's output */
        log_error("%s: tensor %s is not one of a %s model", gguf->name, there, family->gguf);
        return STATUS_DATA;
    }
    family_tensor(family, part, layer, here);
    return STATUS_OK;
}

static enum status tensor_add(const struct gguf *gguf, const struct model_family *family, const struct gguf_tensor *tensor,
                              struct checkpoint_table *table)
{
    char name[FAMILY_NAME_MAX];
    struct checkpoint_entry entry = {.name = name, .file = gguf->name, .data = tensor->data, .dims = tensor->dims, .has_blocks = 1};

    TRY(translate(gguf, family, tensor->name, name));
    snprintf(entry.dtype, sizeof entry.dtype, "%s", tensor->type);
    for (int i = 0; i < tensor->dims; i++) /* ours has the rows first */
        entry.shape[i] = tensor->shape[tensor->dims - 1 - i];
    return checkpoint_table_add(table, &entry);
}

enum status checkpoint_gguf_read(const struct file_map *file, const struct config *config, struct checkpoint_table *table)
{
    enum status status = STATUS_OK;
    struct gguf gguf;

    TRY(gguf_read(file->path, file->bytes, file->size, &gguf));
    for (int i = 0; status == STATUS_OK && i < gguf.tensor_count; i++)
        status = tensor_add(&gguf, config->family, &gguf.tensors[i], table);
    gguf_release(&gguf);
    return status;
}
