#include "common/model/checkpoint_gguf.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/gguf.h"
#include <stdio.h>
#include <string.h>

enum { LAYERS_MAX = 1 << 10 };

/* Names of tensors outside the layers, and within one ("blk.N." there, "model.layers.N." here). */
static const struct name {
    const char *there;
    const char *here;
} outside[] =
    {
        {"token_embd.weight", "model.embed_tokens.weight"},
        {"output_norm.weight", "model.norm.weight"},
        {"output.weight", "lm_head.weight"},
        {"rope_freqs.weight", "rope_freqs.weight"},
},
  within[] = {
      {"attn_norm.weight", "input_layernorm.weight"},
      {"attn_q.weight", "self_attn.q_proj.weight"},
      {"attn_k.weight", "self_attn.k_proj.weight"},
      {"attn_v.weight", "self_attn.v_proj.weight"},
      {"attn_q.bias", "self_attn.q_proj.bias"},
      {"attn_k.bias", "self_attn.k_proj.bias"},
      {"attn_v.bias", "self_attn.v_proj.bias"},
      {"attn_q_norm.weight", "self_attn.q_norm.weight"},
      {"attn_k_norm.weight", "self_attn.k_norm.weight"},
      {"attn_output.weight", "self_attn.o_proj.weight"},
      {"ffn_norm.weight", "post_attention_layernorm.weight"},
      {"ffn_gate.weight", "mlp.gate_proj.weight"},
      {"ffn_up.weight", "mlp.up_proj.weight"},
      {"ffn_down.weight", "mlp.down_proj.weight"},
};

static const char *name_in(const struct name *names, size_t count, const char *there)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i].there, there) == 0)
            return names[i].here;
    return NULL;
}

/* Leading zeros and signs are not of this form. Returns what follows the number and its dot, or NULL. */
static const char *layer_of(const char *there, int *layer)
{
    const char *at = there + 4;

    if (strncmp(there, "blk.", 4) != 0 || *at < '0' || *at > '9' || (*at == '0' && at[1] != '.'))
        return NULL;
    for (*layer = 0; *at >= '0' && *at <= '9' && *layer < LAYERS_MAX; at++)
        *layer = *layer * 10 + (*at - '0');
    return *at == '.' ? at + 1 : NULL;
}

/* here: [CHECKPOINT_NAME_MAX] */
static enum status translate(const struct gguf *gguf, struct gguf_text name, char *here)
{
    char there[GGUF_NAME_MAX + 1];
    const char *found, *part;
    int layer = 0;

    snprintf(there, sizeof there, "%.*s", (int)name.length, name.bytes);
    found = name_in(outside, sizeof outside / sizeof *outside, there);
    if (found != NULL) {
        snprintf(here, CHECKPOINT_NAME_MAX, "%s", found);
        return STATUS_OK;
    }
    part = layer_of(there, &layer);
    found = part == NULL ? NULL : name_in(within, sizeof within / sizeof *within, part);
    if (found == NULL) {
        log_error("%s: tensor %s is not one of a llama, qwen2 or qwen3 model", gguf->name, there);
        return STATUS_DATA;
    }
    snprintf(here, CHECKPOINT_NAME_MAX, "model.layers.%d.%s", layer, found);
    return STATUS_OK;
}

static enum status tensor_add(const struct gguf *gguf, const struct gguf_tensor *tensor, struct checkpoint_table *table)
{
    char name[CHECKPOINT_NAME_MAX];
    struct checkpoint_entry entry = {.name = name, .file = gguf->name, .data = tensor->data, .dims = tensor->dims, .has_blocks = 1};

    TRY(translate(gguf, tensor->name, name));
    snprintf(entry.dtype, sizeof entry.dtype, "%s", tensor->type);
    for (int i = 0; i < tensor->dims; i++) /* ours has the rows first */
        entry.shape[i] = tensor->shape[tensor->dims - 1 - i];
    return checkpoint_table_add(table, &entry);
}

enum status checkpoint_gguf_read(const struct file_map *file, struct checkpoint_table *table)
{
    enum status status = STATUS_OK;
    struct gguf gguf;

    TRY(gguf_read(file->path, file->bytes, file->size, &gguf));
    for (int i = 0; status == STATUS_OK && i < gguf.tensor_count; i++)
        status = tensor_add(&gguf, &gguf.tensors[i], table);
    gguf_release(&gguf);
    return status;
}
