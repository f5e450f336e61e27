#include "common/model/checkpoint_unread.h"

#include "common/model/checkpoint_quantised.h"
#include <stdio.h>
#include <string.h>

static int ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);

    return length >= tail && strcmp(name + length - tail, ending) == 0;
}

/* The ending of the list that the name has, or NULL. endings: up to NULL */
static const char *ending_of(const char *name, const char *const *endings)
{
    while (*endings != NULL && !ends_with(name, *endings))
        endings++;
    return *endings;
}

static int is_part(const struct config *config, const char *name)
{
    int layer;
    enum family_part part = family_part_of(config->family, FAMILY_CONFIG_JSON, name, &layer);

    return part != FAMILY_PARTS && family_has(config->family, part) && layer < config->layers;
}

/* Whether it belongs to a map in few bits of the model. */
static int is_beside_part(const struct config *config, const char *name)
{
    const char *ending = config->quantisation.kind != QUANTISATION_NONE ? ending_of(name, checkpoint_quantised_endings) : NULL;
    char plain[CHECKPOINT_NAME_MAX + 8];

    if (ending == NULL)
        return 0;
    snprintf(plain, sizeof plain, "%.*s.weight", (int)(strlen(name) - strlen(ending)), name);
    return is_part(config, plain);
}

/* What angles are made of, which the config says, and how activations and caches would be rounded, whatever they are called by whom. */
static int is_of_no_weight(const char *name)
{
    static const char *const endings[] = {"rotary_emb.inv_freq", "input_scale", "output_scale", ".q_scale", ".k_scale", ".v_scale",
                                          ".kv_scale",           NULL};

    return ending_of(name, endings) != NULL;
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

        if (is_part(config, entry->name) || is_beside_part(config, entry->name) || is_of_no_weight(entry->name) || is_nothing(entry))
            continue;
        first = first != NULL ? first : entry;
        ++*count;
    }
    return first;
}

static int asks_of(const struct model_family *family, const char *key)
{
    const struct family_refusal *refusal = family->refuses;

    while (refusal != NULL && refusal->key != NULL && strcmp(refusal->key, key) != 0)
        refusal++;
    return refusal != NULL && refusal->key != NULL;
}

const char *checkpoint_unread_key(const struct checkpoint_entry *entry, const struct config *config)
{
    const char *bias = strstr(entry->name, ".mlp.") != NULL ? "mlp_bias" : "attention_bias";
    int layer;

    (void)family_part_of(config->family, FAMILY_CONFIG_JSON, entry->name, &layer);
    if (layer >= config->layers)
        return entry->has_blocks ? "block_count" : "num_hidden_layers"; /* blocks are of GGUF files */
    if (ends_with(entry->name, ".bias") && asks_of(config->family, bias))
        return bias;
    return ending_of(entry->name, checkpoint_quantised_endings) != NULL ? "quantization_config" : "model_type";
}
