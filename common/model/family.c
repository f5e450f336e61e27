#include "common/model/family.h"

#include <stdio.h>
#include <string.h>

/* What Hugging Face calls the tensors of decoders of Llama's kind, and what llama.cpp's converter does. */
static const struct family_names llama_names = {
    .layer = "model.layers.",
    .gguf_layer = "blk.",
    .part = {[FAMILY_EMBEDDING] = {"model.embed_tokens.weight", "token_embd.weight"},
             [FAMILY_FINAL_NORM] = {"model.norm.weight", "output_norm.weight"},
             [FAMILY_HEAD] = {"lm_head.weight", "output.weight"},
             [FAMILY_ROPE_DIVISORS] = {"rope_freqs.weight", "rope_freqs.weight"},
             [FAMILY_SELF_NORM] = {"input_layernorm.weight", "attn_norm.weight"},
             [FAMILY_Q] = {"self_attn.q_proj.weight", "attn_q.weight"},
             [FAMILY_K] = {"self_attn.k_proj.weight", "attn_k.weight"},
             [FAMILY_V] = {"self_attn.v_proj.weight", "attn_v.weight"},
             [FAMILY_Q_BIAS] = {"self_attn.q_proj.bias", "attn_q.bias"},
             [FAMILY_K_BIAS] = {"self_attn.k_proj.bias", "attn_k.bias"},
             [FAMILY_V_BIAS] = {"self_attn.v_proj.bias", "attn_v.bias"},
             [FAMILY_Q_NORM] = {"self_attn.q_norm.weight", "attn_q_norm.weight"},
             [FAMILY_K_NORM] = {"self_attn.k_norm.weight", "attn_k_norm.weight"},
             [FAMILY_SELF_OUT] = {"self_attn.o_proj.weight", "attn_output.weight"},
             [FAMILY_MLP_NORM] = {"post_attention_layernorm.weight", "ffn_norm.weight"},
             [FAMILY_GATE] = {"mlp.gate_proj.weight", "ffn_gate.weight"},
             [FAMILY_UP] = {"mlp.up_proj.weight", "ffn_up.weight"},
             [FAMILY_DOWN] = {"mlp.down_proj.weight", "ffn_down.weight"}},
};

static const struct family_refusal llama_refuses[] = {
    {"mlp_bias", "false"},
    {"attention_bias", "false: a biased output projection is not supported"},
    {"rope_interleaved", "false"},
    {NULL, NULL},
};

/* Biases of q, k and v come without attention_bias here, and the key is ignored. */
static const struct family_refusal qwen2_refuses[] = {{"mlp_bias", "false"}, {"rope_interleaved", "false"}, {NULL, NULL}};

const struct model_family model_families[FAMILIES] = {
    [FAMILY_LLAMA] = {.model_type = "llama",
                      .architecture = "LlamaForCausalLM",
                      .gguf = "llama",
                      .names = &llama_names,
                      .block = {FAMILY_SELF, FAMILY_MLP},
                      .gguf_adjacent = 1,
                      .window = FAMILY_WINDOW_NEVER,
                      .norm_eps = "rms_norm_eps",
                      .gguf_norm_eps = "attention.layer_norm_rms_epsilon",
                      .activation = "silu",
                      .refuses = llama_refuses},
    [FAMILY_MISTRAL] = {.model_type = "mistral", /* its GGUF files say that their architecture is llama */
                        .architecture = "MistralForCausalLM",
                        .names = &llama_names,
                        .block = {FAMILY_SELF, FAMILY_MLP},
                        .window = FAMILY_WINDOW_SET,
                        .needs_kv_heads = 1,
                        .norm_eps = "rms_norm_eps",
                        .activation = "silu",
                        .refuses = llama_refuses},
    [FAMILY_QWEN2] = {.model_type = "qwen2",
                      .architecture = "Qwen2ForCausalLM",
                      .gguf = "qwen2",
                      .names = &llama_names,
                      .block = {FAMILY_SELF, FAMILY_MLP},
                      .qkv_bias = 1,
                      .window = FAMILY_WINDOW_IN_USE,
                      .needs_kv_heads = 1,
                      .norm_eps = "rms_norm_eps",
                      .gguf_norm_eps = "attention.layer_norm_rms_epsilon",
                      .activation = "silu",
                      .refuses = qwen2_refuses},
    [FAMILY_QWEN3] = {.model_type = "qwen3",
                      .architecture = "Qwen3ForCausalLM",
                      .gguf = "qwen3",
                      .names = &llama_names,
                      .block = {FAMILY_SELF, FAMILY_MLP},
                      .qk_norm = 1,
                      .window = FAMILY_WINDOW_IN_USE,
                      .needs_kv_heads = 1,
                      .needs_head_dim = 1,
                      .norm_eps = "rms_norm_eps",
                      .gguf_norm_eps = "attention.layer_norm_rms_epsilon",
                      .activation = "silu",
                      .refuses = llama_refuses},
    [FAMILY_LLAMA2C] = {.architecture = "llama2.c", .names = &llama_names, .block = {FAMILY_SELF, FAMILY_MLP}},
};

const char *family_name_in(const struct model_family *family, enum family_format format)
{
    return format == FAMILY_GGUF ? family->gguf : family->model_type;
}

const struct model_family *family_find(enum family_format format, const char *name, size_t length)
{
    for (int i = 0; i < FAMILIES; i++) {
        const char *own = family_name_in(&model_families[i], format);

        if (own != NULL && strlen(own) == length && memcmp(own, name, length) == 0)
            return &model_families[i];
    }
    return NULL;
}

void family_list(enum family_format format, char *text, size_t size)
{
    int count = 0, told = 0;
    size_t used = 0;

    for (int i = 0; i < FAMILIES; i++)
        count += family_name_in(&model_families[i], format) != NULL;
    text[0] = '\0';
    for (int i = 0; i < FAMILIES && used < size; i++) {
        const char *own = family_name_in(&model_families[i], format);

        if (own == NULL)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s\"%s\"", told == 0 ? "" : told + 1 == count ? " or " : ", ", own);
        told++;
    }
}

int family_has(const struct model_family *family, enum family_part part)
{
    switch (part) {
    case FAMILY_Q_BIAS:
    case FAMILY_K_BIAS:
    case FAMILY_V_BIAS:
        return family->qkv_bias;
    case FAMILY_Q_NORM:
    case FAMILY_K_NORM:
        return family->qk_norm;
    default:
        return 1;
    }
}

void family_tensor(const struct model_family *family, enum family_part part, int layer, char *name)
{
    const char *own = family->names->part[part].name;

    if (part < FAMILY_SELF_NORM)
        snprintf(name, FAMILY_NAME_MAX, "%s", own);
    else
        snprintf(name, FAMILY_NAME_MAX, "%s%d.%s", family->names->layer, layer, own);
}

static enum family_part part_named(const struct family_names *names, enum family_format format, const char *name, int in_layer)
{
    int first = in_layer ? FAMILY_SELF_NORM : 0, last = in_layer ? FAMILY_PARTS : FAMILY_SELF_NORM;

    for (int i = first; i < last; i++)
        if (strcmp(format == FAMILY_GGUF ? names->part[i].gguf : names->part[i].name, name) == 0)
            return (enum family_part)i;
    return FAMILY_PARTS;
}

/* Leading zeros and signs are not of this form. Returns what follows the number and its dot, or NULL. */
static const char *layer_of(const struct family_names *names, enum family_format format, const char *name, int *layer)
{
    const char *prefix = format == FAMILY_GGUF ? names->gguf_layer : names->layer, *at = name + strlen(prefix);

    if (strncmp(name, prefix, strlen(prefix)) != 0 || *at < '0' || *at > '9' || (*at == '0' && at[1] != '.'))
        return NULL;
    for (*layer = 0; *at >= '0' && *at <= '9' && *layer < FAMILY_LAYERS_MAX; at++)
        *layer = *layer * 10 + (*at - '0');
    return *at == '.' ? at + 1 : NULL;
}

enum family_part family_part_of(const struct model_family *family, enum family_format format, const char *name, int *layer)
{
    const char *within = layer_of(family->names, format, name, layer);

    if (within != NULL)
        return part_named(family->names, format, within, 1);
    *layer = 0;
    return part_named(family->names, format, name, 0);
}
