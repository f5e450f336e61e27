#include "common/model/checkpoint_unread.h"

#include <stdio.h>
#include <string.h>

static int ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);

    return length >= tail && strcmp(name + length - tail, ending) == 0;
}

static int is_part(const struct config *config, const char *name)
{
    int layer;
    enum family_part part = family_part_of(config->family, FAMILY_CONFIG_JSON, name, &layer);

    return part != FAMILY_PARTS && family_has(config->family, part) && layer < config->layers;
}

/* Whether it belongs to a linear map of the model, beside or instead of its plain weights. */
static int is_beside_part(const struct config *config, const char *name)
{
    static const char *const endings[] = {".qweight",          ".qzeros",       ".scales",      ".g_idx",   ".weight_scale",
                                          ".weight_scale_inv", ".weight_shape", ".input_scale", ".k_scale", ".v_scale"};
    char plain[CHECKPOINT_NAME_MAX + 8];

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (!ends_with(name, endings[i]))
            continue;
        snprintf(plain, sizeof plain, "%.*s.weight", (int)(strlen(name) - strlen(endings[i])), name);
        return is_part(config, plain);
    }
    return 0;
}

/* A vector of zeros, as converters write it for a bias that there is not. */
static int is_nothing(const struct checkpoint_entry *entry)
{
    enum dtype dtype;

    if (entry->dims != 1 || !checkpoint_table_dtype(entry, &dtype))
        return 0;
    for (size_t i = 0; i < dtype_row_bytes(dtype, (size_t)entry->shape[0]); i++)
        if (entry->data[i] != 0)
            return 0;
    return 1;
}

const struct checkpoint_entry *checkpoint_unread_first(const struct checkpoint_table *table, const struct config *config, int *count)
{
    const struct checkpoint_entry *first = NULL;

    *count = 0;
    for (int i = 0; i < table->count; i++) {
        const struct checkpoint_entry *entry = &table->entries[i];

        if (is_part(config, entry->name) || is_beside_part(config, entry->name) || ends_with(entry->name, ".rotary_emb.inv_freq") ||
            is_nothing(entry))
            continue;
        first = first != NULL ? first : entry;
        ++*count;
    }
    return first;
}
