#include "common/model/checkpoint_gguf.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/gguf.h"
#include <stdio.h>
#include <string.h>

enum { LAYERS_MAX = 1 << 10 };

/* The part of a layer, or outside of the layers, that has this name in the file; FAMILY_PARTS when none has. */
static enum family_part part_named(const struct model_family *family, const char *there, int in_layer)
{
    int first = in_layer ? FAMILY_SELF_NORM : 0, last = in_layer ? FAMILY_PARTS : FAMILY_SELF_NORM;

    for (int i = first; i < last; i++)
        if (strcmp(family->names->part[i].gguf, there) == 0)
            return (enum family_part)i;
    return FAMILY_PARTS;
}

/* Leading zeros and signs are not of this form. Returns what follows the number and its dot, or NULL. */
static const char *layer_of(const struct model_family *family, const char *there, int *layer)
{
    size_t prefix = strlen(family->names->gguf_layer);
    const char *at = there + prefix;

    if (strncmp(there, family->names->gguf_layer, prefix) != 0 || *at < '0' || *at > '9' || (*at == '0' && at[1] != '.'))
        return NULL;
    for (*layer = 0; *at >= '0' && *at <= '9' && *layer < LAYERS_MAX; at++)
        *layer = *layer * 10 + (*at - '0');
    return *at == '.' ? at + 1 : NULL;
}

/* here: [FAMILY_NAME_MAX] */
static enum status translate(const struct gguf *gguf, const struct model_family *family, struct gguf_text name, char *here)
{
    char there[GGUF_NAME_MAX + 1];
    enum family_part part;
    const char *within;
    int layer = 0;

    snprintf(there, sizeof there, "%.*s", (int)name.length, name.bytes);
    part = part_named(family, there, 0);
    within = part == FAMILY_PARTS ? layer_of(family, there, &layer) : NULL;
    if (within != NULL)
        part = part_named(family, within, 1);
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
