#include "tests/support/gguf_convert.h"

#include "common/model/checkpoint.h"
#include "common/model/config.h"
#include "tests/support/block_encode.h"
#include "tests/support/gguf_file.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 128, NORMAL = 1, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5 };

struct converter {
    const struct gguf_convert *how;
    const char *family; /* "llama", ... */
    struct config config;
    struct checkpoint *checkpoint;
    struct gguf_file file;
};

static void *kept(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

static void must(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "gguf_convert: %s\n", what);
        abort();
    }
}

static void put_half(float value, unsigned char *to)
{
    _Float16 half = (_Float16)value;

    memcpy(to, &half, sizeof half);
}

static float half_of(const unsigned char *from)
{
    _Float16 half;

    memcpy(&half, from, sizeof half);
    return (float)half;
}

/* quantize_row_q8_0_ref, _q4_0_ref and _q4_1_ref of ggml: the scale of the quotients is the one before it becomes F16. */
void gguf_convert_quantise(enum dtype dtype, const float *values, unsigned char *block)
{
    float least = values[0], most = values[0], scale, inverse, offset;

    if (dtype > DTYPE_Q4_1) {
        block_encode(dtype, values, block);
        return;
    }
    for (int i = 1; i < DTYPE_BLOCK; i++) {
        least = fminf(least, values[i]);
        most = fmaxf(most, values[i]);
    }
    float largest = fmaxf(-least, most), signed_largest = largest;

    for (int i = DTYPE_BLOCK - 1; i >= 0; i--)
        signed_largest = fabsf(values[i]) == largest ? values[i] : signed_largest;
    scale = dtype == DTYPE_Q8_0 ? largest / 127 : dtype == DTYPE_Q4_0 ? signed_largest / -8 : (most - least) / 15;
    inverse = scale != 0 ? 1 / scale : 0;
    put_half(scale, block);
    if (dtype == DTYPE_Q8_0) {
        for (int i = 0; i < DTYPE_BLOCK; i++)
            block[2 + i] = (unsigned char)(int)roundf(values[i] * inverse);
        return;
    }
    if (dtype == DTYPE_Q4_1)
        put_half(least, block + 2);
    offset = dtype == DTYPE_Q4_1 ? 0.5f : 8.5f;
    for (int i = 0; i < DTYPE_BLOCK; i++) {
        int quant = (int)fminf(15, (dtype == DTYPE_Q4_1 ? values[i] - least : values[i]) * inverse + offset);
        unsigned char *at = block + (dtype == DTYPE_Q4_1 ? 4 : 2) + i % 16;

        *at = (unsigned char)(i < 16 ? quant : *at | quant << 4);
    }
}

void gguf_convert_widen(enum dtype dtype, const unsigned char *block, float *values)
{
    double scale = (double)half_of(block), least = dtype == DTYPE_Q4_1 ? (double)half_of(block + 2) : 0;

    if (dtype > DTYPE_Q4_1) {
        dtype_widen(dtype, block, values, dtype_block(dtype));
        return;
    }

    for (int i = 0; i < DTYPE_BLOCK; i++) {
        const unsigned char *quants = block + (dtype == DTYPE_Q4_1 ? 4 : 2);
        int q = dtype == DTYPE_Q8_0 ? (signed char)quants[i] : quants[i % 16] >> (i < 16 ? 0 : 4) & 15;

        values[i] = (float)(scale * (dtype == DTYPE_Q4_0 ? q - 8 : q) + least); /* exact in double, so rounded once */
    }
}

static enum gguf_file_type type_of(enum dtype dtype)
{
    static const enum gguf_file_type types[DTYPES] = {
        [DTYPE_F32] = GGUF_FILE_F32,   [DTYPE_F16] = GGUF_FILE_F16,   [DTYPE_BF16] = GGUF_FILE_BF16, [DTYPE_Q8_0] = GGUF_FILE_Q8_0,
        [DTYPE_Q4_0] = GGUF_FILE_Q4_0, [DTYPE_Q4_1] = GGUF_FILE_Q4_1, [DTYPE_Q5_0] = GGUF_FILE_Q5_0, [DTYPE_Q5_1] = GGUF_FILE_Q5_1,
        [DTYPE_Q2_K] = GGUF_FILE_Q2_K, [DTYPE_Q3_K] = GGUF_FILE_Q3_K, [DTYPE_Q4_K] = GGUF_FILE_Q4_K, [DTYPE_Q5_K] = GGUF_FILE_Q5_K,
        [DTYPE_Q6_K] = GGUF_FILE_Q6_K};

    return types[dtype];
}

/* to: a row of `dtype`. A narrower dtype must hold the values exactly. */
static void encode(enum dtype dtype, const float *values, size_t columns, unsigned char *to)
{
    size_t block = dtype_block(dtype), bytes = dtype_row_bytes(dtype, block);

    for (size_t i = 0; i < columns; i++) {
        if (dtype == DTYPE_F32) {
            memcpy(to + 4 * i, &values[i], 4);
        } else if (dtype == DTYPE_F16) {
            put_half(values[i], to + 2 * i);
        } else if (dtype == DTYPE_BF16) {
            memcpy(to + 2 * i, (const char *)&values[i] + 2, 2);
        } else if (i % block == 0) {
            gguf_convert_quantise(dtype, values + i, to + i / block * bytes);
        }
    }
}

static void round_to_blocks(enum dtype dtype, float *values, size_t columns)
{
    unsigned char block[256];

    for (size_t i = 0; i < columns; i += dtype_block(dtype)) {
        gguf_convert_quantise(dtype, values + i, block);
        gguf_convert_widen(dtype, block, values + i);
    }
}

/* Row `row` of what is written comes from this row of what is read: interleaved heads for architecture llama. */
static int64_t source_row(const struct converter *converter, int64_t row)
{
    int64_t dim = converter->config.head_dim, head = row / dim, within = row % dim;

    return head * dim + within / 2 + within % 2 * (dim / 2);
}

/* As llama-quantize does: where rows are no whole blocks of a k-quant, a format of smaller ones; and v of Q4_K's mixture is Q6_K. */
static enum dtype dtype_for(const struct gguf_convert *how, const struct tensor *tensor, const char *there, int64_t columns)
{
    if (how->as_stored)
        return tensor->dtype;
    enum dtype dtype = how->mixed && how->dtype == DTYPE_Q4_K && strstr(there, "attn_v") != NULL ? DTYPE_Q6_K : how->dtype;

    if (columns % (int64_t)dtype_block(dtype) == 0)
        return dtype;
    return dtype == DTYPE_Q6_K ? DTYPE_Q8_0 : dtype == DTYPE_Q5_K ? DTYPE_Q5_1 : dtype == DTYPE_Q4_K ? DTYPE_Q5_0 : DTYPE_Q4_0;
}

static void add_matrix(struct converter *converter, const char *here, const char *there, int64_t rows, int64_t columns, int interleaved)
{
    const struct gguf_convert *how = converter->how;
    struct tensor tensor;

    must(checkpoint_find(converter->checkpoint, here, rows, columns, &tensor) == STATUS_OK, here);
    int plain = how->rounded || (how->mixed && how->dtype != DTYPE_Q4_K && strstr(there, "attn_v") != NULL);
    enum dtype meant = dtype_for(how, &tensor, there, columns), dtype = plain ? DTYPE_F32 : meant;
    size_t row_bytes = dtype_row_bytes(dtype, (size_t)columns);
    unsigned char *data = kept(malloc((size_t)rows * row_bytes));
    float *values = kept(malloc((size_t)columns * sizeof *values));

    for (int64_t row = 0; row < rows; row++) {
        dtype_widen(tensor.dtype, checkpoint_row(&tensor, interleaved ? source_row(converter, row) : row), values, (size_t)columns);
        if (how->rounded)
            round_to_blocks(meant, values, (size_t)columns);
        encode(dtype, values, (size_t)columns, data + (size_t)row * row_bytes);
    }
    gguf_file_tensor(&converter->file, there, type_of(dtype), rows, columns, data, (size_t)rows * row_bytes);
    free(values);
    free(data);
}

static void add_vector(struct converter *converter, const char *here, const char *there, int64_t count)
{
    float *values = kept(malloc((size_t)count * sizeof *values));
    struct tensor tensor;

    must(checkpoint_find(converter->checkpoint, here, count, 1, &tensor) == STATUS_OK, here);
    dtype_widen(tensor.dtype, tensor.data, values, (size_t)count);
    gguf_file_tensor(&converter->file, there, GGUF_FILE_F32, 0, count, values, (size_t)count * sizeof *values);
    free(values);
}

/* One part of a layer under both names; columns = 0 for a vector. */
static void add_part(struct converter *converter, int layer, const char *here, const char *there, int64_t rows, int64_t columns)
{
    char ours[NAME], theirs[NAME];
    int turned = strcmp(there, "attn_q.weight") == 0 || strcmp(there, "attn_k.weight") == 0;
    int interleaved = turned && (strcmp(converter->family, "llama") == 0) != converter->how->wrong_rows;

    snprintf(ours, sizeof ours, "model.layers.%d.%s", layer, here);
    snprintf(theirs, sizeof theirs, "blk.%d.%s", layer, there);
    if (columns == 0)
        add_vector(converter, ours, theirs, rows);
    else
        add_matrix(converter, ours, theirs, rows, columns, interleaved);
}

static void add_layer(struct converter *converter, int layer)
{
    const struct config *config = &converter->config;
    int64_t hidden = config->hidden, q = (int64_t)config->heads * config->head_dim, kv = (int64_t)config->kv_heads * config->head_dim;

    add_part(converter, layer, "input_layernorm.weight", "attn_norm.weight", hidden, 0);
    add_part(converter, layer, "self_attn.q_proj.weight", "attn_q.weight", q, hidden);
    add_part(converter, layer, "self_attn.k_proj.weight", "attn_k.weight", kv, hidden);
    add_part(converter, layer, "self_attn.v_proj.weight", "attn_v.weight", kv, hidden);
    if (config->family->qkv_bias) {
        add_part(converter, layer, "self_attn.q_proj.bias", "attn_q.bias", q, 0);
        add_part(converter, layer, "self_attn.k_proj.bias", "attn_k.bias", kv, 0);
        add_part(converter, layer, "self_attn.v_proj.bias", "attn_v.bias", kv, 0);
    }
    if (config->family->qk_norm) {
        add_part(converter, layer, "self_attn.q_norm.weight", "attn_q_norm.weight", config->head_dim, 0);
        add_part(converter, layer, "self_attn.k_norm.weight", "attn_k_norm.weight", config->head_dim, 0);
    }
    add_part(converter, layer, "self_attn.o_proj.weight", "attn_output.weight", hidden, q);
    add_part(converter, layer, "post_attention_layernorm.weight", "ffn_norm.weight", hidden, 0);
    add_part(converter, layer, "mlp.gate_proj.weight", "ffn_gate.weight", config->ffn, hidden);
    add_part(converter, layer, "mlp.up_proj.weight", "ffn_up.weight", config->ffn, hidden);
    add_part(converter, layer, "mlp.down_proj.weight", "ffn_down.weight", hidden, config->ffn);
}

/* What llama.cpp's converter makes of Llama 3.1's scaling. */
static void add_divisors(struct converter *converter)
{
    const struct config *config = &converter->config;
    float divisors[CONFIG_MAX_HEAD_DIM / 2];
    int half = config->head_dim / 2;

    for (int i = 0; i < half; i++) {
        double wave = 2 * M_PI * pow(config->rope_theta, 2.0 * i / config->head_dim);
        double low = config->rope_original_context / config->rope_low_frequency,
               high = config->rope_original_context / config->rope_high_frequency;
        double blend = (config->rope_original_context / wave - config->rope_low_frequency) /
                       (config->rope_high_frequency - config->rope_low_frequency);

        divisors[i] = (float)(wave < high ? 1 : wave > low ? config->rope_factor : 1 / ((1 - blend) / config->rope_factor + blend));
    }
    gguf_file_tensor(&converter->file, "rope_freqs.weight", GGUF_FILE_F32, 0, half, divisors, (size_t)half * sizeof *divisors);
}

static void set_u32(struct converter *converter, const char *part, int value)
{
    char key[NAME];

    snprintf(key, sizeof key, "%s.%s", converter->family, part);
    gguf_file_u32(&converter->file, key, (uint32_t)value);
}

static void set_f32(struct converter *converter, const char *part, double value)
{
    char key[NAME];

    snprintf(key, sizeof key, "%s.%s", converter->family, part);
    gguf_file_f32(&converter->file, key, (float)value);
}

/* With YaRN the default attention factor, which has no key. */
static void add_scaling(struct converter *converter)
{
    const struct config *config = &converter->config;
    char key[NAME];

    if (config->rope != ROPE_LINEAR && config->rope != ROPE_YARN)
        return;
    snprintf(key, sizeof key, "%s.rope.scaling.type", converter->family);
    gguf_file_text(&converter->file, key, config->rope == ROPE_YARN ? "yarn" : "linear");
    set_f32(converter, "rope.scaling.factor", config->rope_factor);
    if (config->rope == ROPE_LINEAR)
        return;
    set_u32(converter, "rope.scaling.original_context_length", (int)config->rope_original_context);
    set_f32(converter, "rope.scaling.yarn_beta_fast", config->rope_beta_fast);
    set_f32(converter, "rope.scaling.yarn_beta_slow", config->rope_beta_slow);
}

static const char *text_of(char *const *texts, const char *key, const char *otherwise)
{
    for (; texts != NULL && texts[0] != NULL && texts[1] != NULL; texts += 2)
        if (strcmp(texts[0], key) == 0)
            return texts[1];
    return otherwise;
}

static void add_texts(struct gguf_file *file, char *const *texts)
{
    for (; texts != NULL && texts[0] != NULL && texts[1] != NULL; texts += 2)
        if (strcmp(texts[0], "general.architecture") != 0)
            gguf_file_text(file, texts[0], texts[1]);
}

static void add_keys(struct converter *converter)
{
    const struct config *config = &converter->config;

    gguf_file_text(&converter->file, "general.architecture", text_of(converter->how->texts, "general.architecture", converter->family));
    add_texts(&converter->file, converter->how->texts);
    set_u32(converter, "block_count", config->layers);
    set_u32(converter, "context_length", config->context);
    set_u32(converter, "embedding_length", config->hidden);
    set_u32(converter, "feed_forward_length", config->ffn);
    set_u32(converter, "attention.head_count", config->heads);
    set_u32(converter, "attention.head_count_kv", config->kv_heads);
    set_u32(converter, "attention.key_length", config->head_dim);
    set_u32(converter, "attention.value_length", config->head_dim);
    set_u32(converter, "rope.dimension_count", config->head_dim);
    set_f32(converter, "attention.layer_norm_rms_epsilon", (double)config->norm_eps);
    set_f32(converter, "rope.freq_base", config->rope_theta);
    add_scaling(converter);
    if (config->bos >= 0)
        gguf_file_u32(&converter->file, "tokenizer.ggml.bos_token_id", (uint32_t)config->bos);
    if (config->eos_count > 0)
        gguf_file_u32(&converter->file, "tokenizer.ggml.eos_token_id", (uint32_t)config->eos[0]);
    if (config->eos_count > 1)
        gguf_file_u32(&converter->file, "tokenizer.ggml.eot_token_id", (uint32_t)config->eos[1]);
}

static void add_merges(struct gguf_file *file, const json_t *merges)
{
    size_t count = json_array_size(merges);
    char **texts = kept(calloc(count, sizeof *texts));

    for (size_t i = 0; i < count; i++) {
        const json_t *merge = json_array_get(merges, i);
        const char *left = json_string_value(json_array_get(merge, 0)), *right = json_string_value(json_array_get(merge, 1));

        texts[i] = kept(left == NULL ? strdup(json_string_value(merge)) : malloc(strlen(left) + strlen(right) + 2));
        if (left != NULL)
            sprintf(texts[i], "%s %s", left, right);
    }
    gguf_file_texts(file, "tokenizer.ggml.merges", (const char *const *)texts, count);
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

void gguf_convert_tokenizer(struct gguf_file *file, const char *tokenizer_json, const char *pre, int vocab)
{
    json_t *root = kept(json_load_file(tokenizer_json, 0, NULL)), *model = json_object_get(root, "model"), *value;
    const char **texts = kept(calloc((size_t)vocab, sizeof *texts)), *key;
    int32_t *types = kept(calloc((size_t)vocab, sizeof *types));
    size_t index;

    json_object_foreach(json_object_get(model, "vocab"), key, value)
    {
        texts[json_integer_value(value)] = key;
        types[json_integer_value(value)] = NORMAL;
    }
    json_array_foreach(json_object_get(root, "added_tokens"), index, value)
    {
        json_int_t id = json_integer_value(json_object_get(value, "id"));

        texts[id] = json_string_value(json_object_get(value, "content"));
        types[id] = json_is_true(json_object_get(value, "special")) ? CONTROL : USER_DEFINED;
    }
    for (int id = 0; id < vocab; id++)
        if (texts[id] == NULL) {
            texts[id] = "[PAD]";
            types[id] = UNUSED;
        }
    gguf_file_text(file, "tokenizer.ggml.model", "gpt2");
    gguf_file_text(file, "tokenizer.ggml.pre", pre);
    gguf_file_texts(file, "tokenizer.ggml.tokens", texts, (size_t)vocab);
    gguf_file_i32s(file, "tokenizer.ggml.token_type", types, (size_t)vocab);
    add_merges(file, json_object_get(model, "merges"));
    free(texts);
    free(types);
    json_decref(root);
}

static const char *family_of(const struct config *config)
{
    return config->family->gguf != NULL ? config->family->gguf : "llama"; /* as Mistral's files are called */
}

void gguf_convert(const char *folder, const char *path, const struct gguf_convert *how)
{
    struct converter converter = {.how = how};
    const struct config *config = &converter.config;
    char tokenizer[4096];

    must(config_read(folder, &converter.config) == STATUS_OK, folder);
    must(checkpoint_open(folder, config, &converter.checkpoint) == STATUS_OK, folder);
    converter.family = family_of(config);
    gguf_file_open(&converter.file);
    add_keys(&converter);
    snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer.json", folder);
    if (how->pre != NULL)
        gguf_convert_tokenizer(&converter.file, tokenizer, how->pre, config->vocab);
    add_matrix(&converter, "model.embed_tokens.weight", "token_embd.weight", config->vocab, config->hidden, 0);
    for (int layer = 0; layer < config->layers; layer++)
        add_layer(&converter, layer);
    add_vector(&converter, "model.norm.weight", "output_norm.weight", config->hidden);
    if (!config->tied)
        add_matrix(&converter, "lm_head.weight", "output.weight", config->vocab, config->hidden, 0);
    if (config->rope == ROPE_LLAMA3)
        add_divisors(&converter);
    gguf_file_write(&converter.file, path);
    gguf_file_close(&converter.file);
    checkpoint_close(converter.checkpoint);
}
