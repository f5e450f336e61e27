#include "common/model/quantisation.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/model/checkpoint_json.h"
#include <string.h>

enum { GROUP_MOST = 1 << 20, BLOCK_MOST = 1 << 20 };

static int says(const struct checkpoint_json *json, const char *key, const char *text)
{
    const json_t *value = checkpoint_json_get(json, key);

    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

static enum status bits_read(const struct checkpoint_json *json, struct quantisation *quantisation)
{
    const json_t *bits = checkpoint_json_get(json, "bits");
    int group = 0;

    if (!json_is_integer(bits) || json_integer_value(bits) != 4)
        return checkpoint_json_refuse(json, "bits", "4");
    TRY(checkpoint_json_integer(json, "group_size", CHECKPOINT_JSON_NEEDED, -1, GROUP_MOST, &group));
    if (group != -1 && (group == 0 || group % 32 != 0))
        return checkpoint_json_refuse(json, "group_size", "a multiple of 32, or -1");
    quantisation->group = group > 0 ? group : 0;
    return STATUS_OK;
}

static enum status awq_read(const struct checkpoint_json *json, struct quantisation *quantisation)
{
    int zero_point = 1;

    TRY(bits_read(json, quantisation));
    TRY(checkpoint_json_flag(json, "zero_point", &zero_point));
    if (!zero_point)
        return checkpoint_json_refuse(json, "zero_point", "true");
    if (checkpoint_json_get(json, "version") != NULL && !says(json, "version", "gemm") && !says(json, "version", "GEMM"))
        return checkpoint_json_refuse(json, "version", "\"gemm\"");
    return STATUS_OK;
}

/* Files of the first version have zero points that are one too small. */
static enum status gptq_read(const struct checkpoint_json *json, struct quantisation *quantisation)
{
    const json_t *own = checkpoint_json_get(json, "dynamic");
    int is_marlin = 0;

    TRY(bits_read(json, quantisation));
    TRY(checkpoint_json_flag(json, "desc_act", &quantisation->is_sorted));
    TRY(checkpoint_json_flag(json, "is_marlin_format", &is_marlin));
    if (is_marlin)
        return checkpoint_json_refuse(json, "is_marlin_format", "false");
    if (own != NULL && !(json_is_object(own) && json_object_size(own) == 0))
        return checkpoint_json_refuse(json, "dynamic", "none: modules with bits or groups of their own are not supported");
    if (checkpoint_json_get(json, "checkpoint_format") != NULL && !says(json, "checkpoint_format", "gptq") &&
        !says(json, "checkpoint_format", "gptq_v2"))
        return checkpoint_json_refuse(json, "checkpoint_format", "\"gptq\" or \"gptq_v2\"");
    quantisation->zero_added = !says(json, "checkpoint_format", "gptq_v2");
    return STATUS_OK;
}

/* What was rounded as activations were, when the model was made, is not rounded here: that is nearer to the model that it was made of. */
static enum status fp8_read(const struct checkpoint_json *json, struct quantisation *quantisation)
{
    const json_t *block = checkpoint_json_get(json, "weight_block_size");

    if (checkpoint_json_get(json, "fmt") != NULL && !says(json, "fmt", "e4m3"))
        return checkpoint_json_refuse(json, "fmt", "\"e4m3\"");
    if (block == NULL)
        return STATUS_OK;
    for (size_t i = 0; i < 2; i++) {
        const json_t *size = json_array_get(block, i);

        if (json_array_size(block) != 2 || !json_is_integer(size) || json_integer_value(size) < 1 || json_integer_value(size) > BLOCK_MOST)
            return checkpoint_json_refuse(json, "weight_block_size", "a list of rows and columns, as [128, 128]");
        quantisation->block[i] = (int)json_integer_value(size);
    }
    return STATUS_OK;
}

/* Has a group of compressed-tensors weights of this scheme? What it leaves out is not held against it. */
static int is_fp8(const json_t *group)
{
    const json_t *weights = json_object_get(group, "weights"), *bits = json_object_get(weights, "num_bits"), *type = json_object_get(weights, "type");

    return json_is_object(weights) && (bits == NULL || json_integer_value(bits) == 8) &&
           (type == NULL || (json_is_string(type) && strcmp(json_string_value(type), "float") == 0)) &&
           !json_is_false(json_object_get(weights, "symmetric"));
}

static enum status sparsity_check(const struct checkpoint_json *json)
{
    struct checkpoint_json sparsity = {.file = json->file, .object = checkpoint_json_get(json, "sparsity_config")};

    if (sparsity.object == NULL || json_object_size(sparsity.object) == 0 || says(&sparsity, "format", "dense"))
        return STATUS_OK;
    return checkpoint_json_refuse(json, "sparsity_config", "none, or of format \"dense\"");
}

/* Of the formats of compressed-tensors the one whose numbers are FP8. How its scales are shared each tensor's own shape says. */
static enum status compressed_read(const struct checkpoint_json *json, struct quantisation *quantisation)
{
    json_t *groups = checkpoint_json_get(json, "config_groups");

    (void)quantisation;
    if (!says(json, "format", "float-quantized"))
        return checkpoint_json_refuse(json, "format", "\"float-quantized\"");
    TRY(sparsity_check(json));
    if (groups != NULL && !json_is_object(groups))
        return checkpoint_json_refuse(json, "config_groups", "an object of groups, each with its weights");
    for (void *at = json_object_iter(groups); at != NULL; at = json_object_iter_next(groups, at))
        if (!is_fp8(json_object_iter_value(at)))
            return checkpoint_json_refuse(json, "config_groups", "weights of num_bits 8, type \"float\" and symmetric in each");
    if (checkpoint_json_get(json, "kv_cache_scheme") != NULL)
        log_file_warning("%s: key \"kv_cache_scheme\" is left out: keys and values are kept as --cache says", json->file);
    return STATUS_OK;
}

static const struct {
    const char *name; /* of quant_method */
    enum quantisation_kind kind;
    enum status (*read)(const struct checkpoint_json *json, struct quantisation *quantisation);
} rows[] = {
    {"awq", QUANTISATION_AWQ, awq_read},
    {"gptq", QUANTISATION_GPTQ, gptq_read},
    {"fp8", QUANTISATION_FP8, fp8_read},
    {"compressed-tensors", QUANTISATION_FP8, compressed_read},
};

enum status quantisation_read(const struct checkpoint_json *json, struct quantisation *quantisation)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (says(json, "quant_method", rows[i].name)) {
            *quantisation = (struct quantisation){.kind = rows[i].kind};
            return rows[i].read(json, quantisation);
        }
    return checkpoint_json_refuse(json, "quant_method", "\"awq\", \"gptq\", \"fp8\" or \"compressed-tensors\"");
}

const char *quantisation_name(enum quantisation_kind kind)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == kind)
            return rows[i].name;
    return "none";
}
