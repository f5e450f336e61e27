/* The keys of a GGUF file as a config. A key is "ARCHITECTURE.part"; those that the converter leaves out have llama.cpp's defaults. */
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/gguf.h"
#include "common/model/checkpoint_gguf.h"
#include "common/model/rope.h"
#include <stdio.h>
#include <string.h>

enum { KEY = 96, HIDDEN_MAX = 1 << 17, HEADS_MAX = 1 << 10, FFN_MAX = 1 << 20, VOCAB_MAX = 1 << 22 };

struct reader {
    const struct gguf *gguf;
    const struct model_family *family;
    char key[KEY]; /* the last one that key_of made */
};

static const char *key_of(struct reader *reader, const char *part)
{
    snprintf(reader->key, sizeof reader->key, "%s.%s", reader->family->gguf, part);
    return reader->key;
}

static enum status integer(struct reader *reader, const char *part, enum gguf_need need, int64_t most, int *value)
{
    int64_t found = *value;

    TRY(gguf_integer(reader->gguf, key_of(reader, part), need, 1, most, &found));
    *value = (int)found;
    return STATUS_OK;
}

/* One of those outside the layers, or NULL. */
static const struct gguf_tensor *tensor_of(const struct reader *reader, enum family_part part)
{
    const struct gguf *gguf = reader->gguf;

    for (int i = 0; i < gguf->tensor_count; i++)
        if (gguf_text_is(gguf->tensors[i].name, reader->family->names->part[part].gguf))
            return &gguf->tensors[i];
    return NULL;
}

static enum status family_read(struct reader *reader)
{
    struct gguf_text name = {"", 0};
    char expected[256];
    int64_t parts = 1;

    TRY(gguf_string(reader->gguf, "general.architecture", GGUF_NEEDED, &name));
    reader->family = family_find(FAMILY_GGUF, name.bytes, name.length);
    family_list(FAMILY_GGUF, expected, sizeof expected);
    if (reader->family == NULL)
        return gguf_refuse(reader->gguf, "general.architecture", expected);
    TRY(gguf_integer(reader->gguf, "split.count", GGUF_OPTIONAL, 0, UINT16_MAX, &parts));
    return parts <= 1 ? STATUS_OK
                      : gguf_refuse(reader->gguf, "split.count", "1: a file that is one of several must be merged with them first");
}

static enum status heads_read(struct reader *reader, struct config *config)
{
    int value_length = 0, rotated;
    char expected[80];

    TRY(integer(reader, "attention.head_count", GGUF_NEEDED, HEADS_MAX, &config->heads));
    config->kv_heads = config->heads;
    TRY(integer(reader, "attention.head_count_kv", GGUF_OPTIONAL, HEADS_MAX, &config->kv_heads));
    snprintf(expected, sizeof expected, "a divisor of the number of heads, %d", config->heads);
    if (config->heads % config->kv_heads != 0)
        return gguf_refuse(reader->gguf, reader->key, expected);
    TRY(integer(reader, "attention.key_length", GGUF_OPTIONAL, CONFIG_MAX_HEAD_DIM, &config->head_dim));
    if (config->head_dim == 0 && config->hidden % config->heads == 0)
        config->head_dim = config->hidden / config->heads;
    if (config->head_dim == 0 || config->head_dim % 2 != 0 || config->head_dim > CONFIG_MAX_HEAD_DIM) {
        log_error("%s: a head has %d of the %d numbers of a token, expected an even size of at most %d", reader->gguf->name,
                  config->head_dim, config->hidden, CONFIG_MAX_HEAD_DIM);
        return STATUS_DATA;
    }
    value_length = rotated = config->head_dim;
    snprintf(expected, sizeof expected, "%d, the size of a head", config->head_dim);
    TRY(integer(reader, "attention.value_length", GGUF_OPTIONAL, HIDDEN_MAX, &value_length));
    if (value_length != config->head_dim)
        return gguf_refuse(reader->gguf, reader->key, expected);
    TRY(integer(reader, "rope.dimension_count", GGUF_OPTIONAL, HIDDEN_MAX, &rotated));
    return rotated == config->head_dim ? STATUS_OK : gguf_refuse(reader->gguf, reader->key, expected);
}

/* The rows of the embedding, which may be more than there are tokens. */
static enum status vocab_read(struct reader *reader, struct config *config)
{
    const struct gguf_tensor *embedding = tensor_of(reader, FAMILY_EMBEDDING);

    if (embedding == NULL || embedding->dims != 2 || embedding->shape[1] < 2 || embedding->shape[1] > VOCAB_MAX) {
        log_error("%s: tensor %s is missing or has not 2 to %d rows", reader->gguf->name,
                  reader->family->names->part[FAMILY_EMBEDDING].gguf, VOCAB_MAX);
        return STATUS_DATA;
    }
    config->vocab = (int)embedding->shape[1];
    config->tied = tensor_of(reader, FAMILY_HEAD) == NULL;
    return STATUS_OK;
}

static enum status sizes_read(struct reader *reader, struct config *config)
{
    int64_t experts = 0;
    double eps = 0;

    TRY(integer(reader, "embedding_length", GGUF_NEEDED, HIDDEN_MAX, &config->hidden));
    TRY(integer(reader, "block_count", GGUF_NEEDED, FAMILY_LAYERS_MAX, &config->layers));
    TRY(heads_read(reader, config));
    TRY(integer(reader, "feed_forward_length", GGUF_NEEDED, FFN_MAX, &config->ffn));
    TRY(integer(reader, "context_length", GGUF_NEEDED, CONFIG_MAX_CONTEXT, &config->context));
    TRY(gguf_real(reader->gguf, key_of(reader, reader->family->gguf_norm_eps), GGUF_NEEDED, 1e-12, 0.1, &eps));
    config->norm_eps = (float)eps;
    TRY(gguf_integer(reader->gguf, key_of(reader, "expert_count"), GGUF_OPTIONAL, 0, 0, &experts));
    return vocab_read(reader, config);
}

/* Up to the window's length a windowed model is a plain one, so the context ends there. */
static enum status window_read(struct reader *reader, struct config *config)
{
    int window = CONFIG_MAX_CONTEXT;

    TRY(integer(reader, "attention.sliding_window", GGUF_OPTIONAL, CONFIG_MAX_CONTEXT, &window));
    if (window < config->context) {
        log_file_warning("%s: attention slides over %d tokens, so the context is %d tokens, not %d", reader->gguf->name, window, window,
                         config->context);
        config->context = window;
    }
    return STATUS_OK;
}

/* Llama 3.1's scaling comes as a table: what each frequency is divided by. */
static enum status divisors_read(const struct reader *reader, struct config *config)
{
    const struct gguf_tensor *table = tensor_of(reader, FAMILY_ROPE_DIVISORS);
    const char *file = reader->gguf->name, *name = reader->family->names->part[FAMILY_ROPE_DIVISORS].gguf;
    int half = config->head_dim / 2;

    if (table == NULL)
        return STATUS_OK;
    if (table->dims != 1 || table->shape[0] != half || strcmp(table->type, "F32") != 0) {
        log_error("%s: tensor %s must have %d numbers of type F32", file, name, half);
        return STATUS_DATA;
    }
    memcpy(config->rope_divisor, table->data, (size_t)half * sizeof *config->rope_divisor);
    for (int i = 0; i < half; i++)
        if (!(config->rope_divisor[i] >= 1e-3f && config->rope_divisor[i] <= 1e6f)) {
            log_error("%s: tensor %s: number %d is %g, expected 0.001 to 1000000", file, name, i,
                      (double)config->rope_divisor[i]);
            return STATUS_DATA;
        }
    if (config->rope != ROPE_PLAIN) {
        log_error("%s: %s beside rope.scaling, expected one of them", file, name);
        return STATUS_DATA;
    }
    config->rope = ROPE_DIVISORS;
    return STATUS_OK;
}

static enum status real(struct reader *reader, const char *part, enum gguf_need need, double least, double most, double *value)
{
    return gguf_real(reader->gguf, key_of(reader, part), need, least, most, value);
}

static enum status yarn_ramp_read(struct reader *reader, struct config *config)
{
    double whole = 1;
    char expected[64];

    TRY(real(reader, "rope.scaling.yarn_ext_factor", GGUF_OPTIONAL, 1, 1, &whole));
    TRY(real(reader, "rope.scaling.yarn_beta_slow", GGUF_OPTIONAL, 1e-3, 1e6, &config->rope_beta_slow));
    TRY(real(reader, "rope.scaling.yarn_beta_fast", GGUF_OPTIONAL, 1e-3, 1e6, &config->rope_beta_fast));
    if (config->rope_beta_fast > config->rope_beta_slow)
        return STATUS_OK;
    snprintf(expected, sizeof expected, "more than yarn_beta_slow, which is %g", config->rope_beta_slow);
    return gguf_refuse(reader->gguf, reader->key, expected);
}

/* The converter writes transformers' attention_factor as yarn_attn_factor, so it is the whole; attn_factor multiplies. */
static enum status yarn_attention_read(struct reader *reader, struct config *config)
{
    double times = 1, none = 0;

    config->rope_attention = rope_yarn_attention(config->rope_factor, 1, 0);
    TRY(real(reader, "rope.scaling.yarn_attn_factor", GGUF_OPTIONAL, 1e-3, 1e3, &config->rope_attention));
    TRY(real(reader, "rope.scaling.attn_factor", GGUF_OPTIONAL, 1e-3, 1e3, &times));
    config->rope_attention *= times;
    return real(reader, "rope.scaling.yarn_log_multiplier", GGUF_OPTIONAL, 0, 0, &none);
}

static enum status yarn_read(struct reader *reader, struct config *config)
{
    int original = config->context;

    rope_yarn_init(config);
    TRY(real(reader, "rope.scaling.factor", GGUF_NEEDED, 1, 1e6, &config->rope_factor));
    TRY(integer(reader, "rope.scaling.original_context_length", GGUF_OPTIONAL, CONFIG_MAX_CONTEXT, &original));
    config->rope_original_context = original;
    TRY(yarn_ramp_read(reader, config));
    TRY(yarn_attention_read(reader, config));
    config->context = rope_yarn_context(config);
    return STATUS_OK;
}

/* Of others than YaRN nothing but the rotation is scaled. */
static enum status no_attention_read(struct reader *reader)
{
    double one = 1;

    return real(reader, "rope.scaling.attn_factor", GGUF_OPTIONAL, 1, 1, &one);
}

static enum status linear_read(struct reader *reader, const char *factor, enum gguf_need need, struct config *config)
{
    TRY(real(reader, factor, need, 1, 1e6, &config->rope_factor));
    config->rope = config->rope_factor > 1 ? ROPE_LINEAR : ROPE_PLAIN;
    return no_attention_read(reader);
}

static enum status scaling_read(struct reader *reader, struct config *config)
{
    struct gguf_text kind = {NULL, 0};

    TRY(gguf_string(reader->gguf, key_of(reader, "rope.scaling.type"), GGUF_OPTIONAL, &kind));
    if (kind.bytes == NULL) /* which means linear; older files call the factor otherwise */
        return linear_read(reader,
                           gguf_find(reader->gguf, key_of(reader, "rope.scaling.factor")) != NULL ? "rope.scaling.factor" : "rope.scale_linear",
                           GGUF_OPTIONAL, config);
    if (gguf_text_is(kind, "yarn"))
        return yarn_read(reader, config);
    if (gguf_text_is(kind, "linear"))
        return linear_read(reader, "rope.scaling.factor", GGUF_NEEDED, config);
    if (gguf_text_is(kind, "none"))
        return no_attention_read(reader);
    return gguf_refuse(reader->gguf, reader->key, "\"none\", \"linear\" or \"yarn\"");
}

static enum status rope_read(struct reader *reader, struct config *config)
{
    config->rope_theta = 10000;
    config->rope_factor = 1;
    config->rope_adjacent = reader->family->gguf_adjacent;
    TRY(real(reader, "rope.freq_base", GGUF_OPTIONAL, ROPE_LEAST_THETA, 1e12, &config->rope_theta));
    TRY(scaling_read(reader, config));
    return divisors_read(reader, config);
}

/* -1 where there is none: the key is absent, or says so by the largest number. */
static enum status token_read(const struct gguf *gguf, const char *key, int vocab, int32_t *id)
{
    int64_t found = UINT32_MAX;
    char expected[64];

    TRY(gguf_integer(gguf, key, GGUF_OPTIONAL, -1, UINT32_MAX, &found));
    snprintf(expected, sizeof expected, "a token id from 0 to %d", vocab - 1);
    if (found >= vocab && found != UINT32_MAX)
        return gguf_refuse(gguf, key, expected);
    *id = found == UINT32_MAX ? -1 : (int32_t)found;
    return STATUS_OK;
}

/* What ends a text, and what ends a turn or a message. */
static enum status specials_read(const struct gguf *gguf, struct config *config)
{
    static const char *const ends[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};

    TRY(token_read(gguf, "tokenizer.ggml.bos_token_id", config->vocab, &config->bos));
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        int32_t id = -1;
        int known = 0;

        TRY(token_read(gguf, ends[i], config->vocab, &id));
        for (int k = 0; k < config->eos_count; k++)
            known |= config->eos[k] == id;
        if (id >= 0 && !known)
            config->eos[config->eos_count++] = id;
    }
    return STATUS_OK;
}

static enum status keys_read(const struct gguf *gguf, struct config *config)
{
    struct reader reader = {.gguf = gguf};

    TRY(family_read(&reader));
    config->family = reader.family;
    TRY(sizes_read(&reader, config));
    TRY(rope_read(&reader, config)); /* which may lengthen the context, and a window ends it */
    TRY(window_read(&reader, config));
    config_advice_of_gguf(gguf, &config->advice);
    return specials_read(gguf, config);
}

enum status checkpoint_gguf_config(const char *path, struct config *config)
{
    struct config read = {.rope = ROPE_PLAIN};
    struct file_map file;
    struct gguf gguf;
    enum status status;

    TRY(file_map_open(path, &file));
    TRY_TO(gguf_read(path, file.bytes, file.size, &gguf), close_file);
    status = keys_read(&gguf, &read);
    if (status == STATUS_OK)
        *config = read;
    gguf_release(&gguf);
close_file:
    file_map_close(&file);
    return status;
}
