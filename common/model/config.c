#include "common/model/config.h"

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/try.h"
#include "common/file/file_map.h"
#include "common/model/checkpoint_gguf.h"
#include "common/model/checkpoint_json.h"
#include "common/model/checkpoint_llama2c.h"
#include "common/model/config_rope.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    JSON_BYTES_MAX = 4 << 20,
    /* Wide enough for any model of these families; every product of two of them fits easily in 64 bits. */
    HIDDEN_MAX = 1 << 17,
    HEADS_MAX = 1 << 10,
    FFN_MAX = 1 << 20,
    VOCAB_MAX = 1 << 22,
};

static int json_says(const json_t *value, const char *text)
{
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

static enum status family_read(const struct checkpoint_json *json, const struct model_family **found)
{
    json_t *type = checkpoint_json_get(json, "model_type"), *architectures = checkpoint_json_get(json, "architectures");
    const struct model_family *family = NULL;
    char expected[256];

    if (json_is_string(type))
        family = family_find(FAMILY_CONFIG_JSON, json_string_value(type), json_string_length(type));
    if (family == NULL) {
        family_list(FAMILY_CONFIG_JSON, expected, sizeof expected);
        return checkpoint_json_refuse(json, "model_type", expected);
    }
    snprintf(expected, sizeof expected, "[\"%s\"] for model_type \"%s\"", family->architecture, family->model_type);
    if (architectures != NULL &&
        (json_array_size(architectures) != 1 || !json_says(json_array_get(architectures, 0), family->architecture)))
        return checkpoint_json_refuse(json, "architectures", expected);
    *found = family;
    return STATUS_OK;
}

/* Refuses what would change the arithmetic in a way that the forward pass does not know. */
static enum status variant_check(const struct checkpoint_json *json, const struct model_family *family)
{
    json_t *activation = checkpoint_json_get(json, "hidden_act");
    double rotated = 1;
    char expected[64];

    snprintf(expected, sizeof expected, "\"%s\"", family->activation);
    if (activation != NULL && !json_says(activation, family->activation))
        return checkpoint_json_refuse(json, "hidden_act", expected);
    for (const struct family_refusal *refusal = family->refuses; refusal->key != NULL; refusal++) {
        int set = 0;

        TRY(checkpoint_json_flag(json, refusal->key, &set));
        if (set)
            return checkpoint_json_refuse(json, refusal->key, refusal->expected);
    }
    return checkpoint_json_real(json, "partial_rotary_factor", CHECKPOINT_JSON_OPTIONAL, 1, 1, &rotated);
}

static enum status weights_read(const struct checkpoint_json *json, struct config *config)
{
    struct checkpoint_json inner = {json->file, checkpoint_json_get(json, "quantization_config")};

    if (inner.object == NULL)
        return STATUS_OK;
    if (!json_is_object(inner.object))
        return checkpoint_json_refuse(json, "quantization_config", "an object or null");
    return quantisation_read(&inner, &config->quantisation);
}

static enum checkpoint_json_need need_of(int needed)
{
    return needed ? CHECKPOINT_JSON_NEEDED : CHECKPOINT_JSON_OPTIONAL;
}

static enum status sizes_read(const struct checkpoint_json *json, const struct model_family *family, struct config *config)
{
    double eps = 0;
    char expected[80];

    TRY(checkpoint_json_integer(json, "hidden_size", CHECKPOINT_JSON_NEEDED, 2, HIDDEN_MAX, &config->hidden));
    TRY(checkpoint_json_integer(json, "num_hidden_layers", CHECKPOINT_JSON_NEEDED, 1, FAMILY_LAYERS_MAX, &config->layers));
    TRY(checkpoint_json_integer(json, "num_attention_heads", CHECKPOINT_JSON_NEEDED, 1, HEADS_MAX, &config->heads));
    config->kv_heads = config->heads;
    TRY(checkpoint_json_integer(json, "num_key_value_heads", need_of(family->needs_kv_heads), 1, HEADS_MAX, &config->kv_heads));
    if (config->heads % config->kv_heads != 0) {
        snprintf(expected, sizeof expected, "a multiple of num_key_value_heads, which is %d", config->kv_heads);
        return checkpoint_json_refuse(json, "num_attention_heads", expected);
    }
    TRY(checkpoint_json_integer(json, "head_dim", need_of(family->needs_head_dim), 2, CONFIG_MAX_HEAD_DIM, &config->head_dim));
    if (config->head_dim == 0) {
        config->head_dim = config->hidden / config->heads;
        snprintf(expected, sizeof expected, "an even multiple of num_attention_heads, which is %d", config->heads);
        if (config->hidden % config->heads != 0 || config->head_dim % 2 != 0 || config->head_dim > CONFIG_MAX_HEAD_DIM)
            return checkpoint_json_refuse(json, "hidden_size", expected);
    }
    if (config->head_dim % 2 != 0)
        return checkpoint_json_refuse(json, "head_dim", "an even number");
    TRY(checkpoint_json_integer(json, "intermediate_size", CHECKPOINT_JSON_NEEDED, 1, FFN_MAX, &config->ffn));
    TRY(checkpoint_json_integer(json, "vocab_size", CHECKPOINT_JSON_NEEDED, 2, VOCAB_MAX, &config->vocab));
    TRY(checkpoint_json_integer(json, "max_position_embeddings", CHECKPOINT_JSON_NEEDED, 1, CONFIG_MAX_CONTEXT, &config->context));
    TRY(checkpoint_json_real(json, family->norm_eps, CHECKPOINT_JSON_NEEDED, 1e-12, 0.1, &eps));
    config->norm_eps = (float)eps;
    return checkpoint_json_flag(json, "tie_word_embeddings", &config->tied);
}

/* Up to the window's length a windowed model is a plain one, so the context ends there. */
static enum status window_read(const struct checkpoint_json *json, const struct model_family *family, struct config *config)
{
    int window = CONFIG_MAX_CONTEXT, used = family->window == FAMILY_WINDOW_SET;

    if (family->window == FAMILY_WINDOW_IN_USE)
        TRY(checkpoint_json_flag(json, "use_sliding_window", &used));
    if (!used)
        return STATUS_OK;
    TRY(checkpoint_json_integer(json, "sliding_window", CHECKPOINT_JSON_OPTIONAL, 1, CONFIG_MAX_CONTEXT, &window));
    if (window < config->context) {
        log_file_warning("%s: attention slides over %d tokens, so the context is %d tokens, not %d", json->file, window, window, config->context);
        config->context = window;
    }
    return STATUS_OK;
}

/* eos_token_id is a number or a list of them. An absent one leaves what the config has. */
static enum status eos_read(const struct checkpoint_json *json, struct config *config)
{
    json_t *found = checkpoint_json_get(json, "eos_token_id");
    size_t count = json_is_array(found) ? json_array_size(found) : 1;
    int32_t ids[CONFIG_MAX_EOS];
    char expected[96];

    if (found == NULL)
        return STATUS_OK;
    snprintf(expected, sizeof expected, "a token id from 0 to %d, or a list of at most %d", config->vocab - 1, CONFIG_MAX_EOS);
    if (count > CONFIG_MAX_EOS)
        return checkpoint_json_refuse(json, "eos_token_id", expected);
    for (size_t i = 0; i < count; i++) {
        json_t *id = json_is_array(found) ? json_array_get(found, i) : found;

        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= config->vocab)
            return checkpoint_json_refuse(json, "eos_token_id", expected);
        ids[i] = (int32_t)json_integer_value(id);
    }
    memcpy(config->eos, ids, count * sizeof *ids);
    config->eos_count = (int)count;
    return STATUS_OK;
}

static enum status object_read(const struct checkpoint_json *json, struct config *config)
{
    TRY(family_read(json, &config->family));
    TRY(variant_check(json, config->family));
    TRY(weights_read(json, config));
    TRY(sizes_read(json, config->family, config));
    TRY(config_rope_read(json, config)); /* which may lengthen the context, and a window ends it */
    TRY(window_read(json, config->family, config));
    config->bos = -1;
    TRY(checkpoint_json_integer(json, "bos_token_id", CHECKPOINT_JSON_OPTIONAL, 0, config->vocab - 1, &config->bos));
    return eos_read(json, config);
}

static enum status folder_read(const char *path, struct config *config)
{
    char file[4096], generation[4096];
    struct checkpoint_json json = {file, NULL}, extra = {generation, NULL};
    enum status status;
    int there;

    snprintf(file, sizeof file, "%s/config.json", path);
    snprintf(generation, sizeof generation, "%s/generation_config.json", path);
    TRY(file_map_exists(file, &there));
    if (!there) {
        log_error("%s is not a model folder: it has no config.json and no .gguf file", path);
        return STATUS_DATA;
    }
    TRY(checkpoint_json_read(file, JSON_BYTES_MAX, &json.object));
    TRY_TO(object_read(&json, config), release);
    TRY_TO(file_map_exists(generation, &there), release);
    if (there) {
        TRY_TO(checkpoint_json_read(generation, JSON_BYTES_MAX, &extra.object), release);
        TRY_TO(eos_read(&extra, config), release);
        config_advice_of_json(extra.object, &config->advice);
    }
release:
    json_decref(extra.object);
    json_decref(json.object);
    return status;
}

enum status config_read(const char *path, struct config *config)
{
    struct config read = {.rope = ROPE_PLAIN};
    size_t length = strlen(path);
    char gguf[PATH_MAX];
    struct stat entry;

    if (stat(path, &entry) != 0) {
        log_error("%s: no such file or folder", path);
        return STATUS_NOINPUT;
    }
    switch (paths_gguf(path, gguf, sizeof gguf)) {
    case 0:
        break;
    case 1:
        return checkpoint_gguf_config(gguf, config);
    default:
        log_error("%s: a folder with several .gguf files and no config.json, expected one of them: name the file", path);
        return STATUS_DATA;
    }
    if (S_ISDIR(entry.st_mode)) {
        TRY(folder_read(path, &read));
    } else if (length >= 4 && strcmp(path + length - 4, ".bin") == 0) {
        TRY(checkpoint_llama2c_config(path, &read));
    } else {
        log_error("%s: neither a model folder nor a .gguf or llama2.c .bin file", path);
        return STATUS_DATA;
    }
    *config = read;
    return STATUS_OK;
}
