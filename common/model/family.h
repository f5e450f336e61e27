/* Families of models, each one row: how it is called in the files, what its tensors are called there, what it has and has not, the blocks of its
 * layers, and which keys of its config.json would change the arithmetic. Constant data; any thread may read. The readers of files, the packing of
 * weights and the forward pass ask the row of a model's config, and no other file compares a family's name.
 * What all rows share is not in them: RMS norms, rotary positions (common/model/rope.h) and SwiGLU are what the backend's blocks compute. */
#ifndef TANDEM_COMMON_MODEL_FAMILY_H
#define TANDEM_COMMON_MODEL_FAMILY_H

#include <stddef.h>

/* The tensors of a model; from FAMILY_SELF_NORM on there is one of each in every layer. */
enum family_part {
    FAMILY_EMBEDDING,
    FAMILY_FINAL_NORM,
    FAMILY_HEAD,          /* absent or ignored where it is the embedding */
    FAMILY_ROPE_DIVISORS, /* of GGUF files alone */
    FAMILY_SELF_NORM,
    FAMILY_Q,
    FAMILY_K,
    FAMILY_V,
    FAMILY_Q_BIAS,
    FAMILY_K_BIAS,
    FAMILY_V_BIAS,
    FAMILY_Q_NORM,
    FAMILY_K_NORM,
    FAMILY_SELF_OUT,
    FAMILY_MLP_NORM,
    FAMILY_GATE,
    FAMILY_UP,
    FAMILY_DOWN,
    FAMILY_PARTS,
};
enum { FAMILY_MOST_BLOCKS = 4, FAMILY_NAME_MAX = 128, FAMILY_LAYERS_MAX = 1 << 10 };

/* A block of a layer adds something to the residual stream: attention of the sequence to itself, or the MLP. */
enum family_block { FAMILY_END, FAMILY_SELF, FAMILY_MLP };

/* When attention looks back over `sliding_window` tokens only. */
enum family_window { FAMILY_WINDOW_NEVER, FAMILY_WINDOW_SET, FAMILY_WINDOW_IN_USE /* if use_sliding_window says so */ };

struct family_names {
    const char *layer, *gguf_layer; /* what stands before the number of a layer */
    struct family_name {
        const char *name; /* in safetensors files, and by which checkpoint_find knows it whatever the format */
        const char *gguf;
    } part[FAMILY_PARTS]; /* of those in a layer: what follows its number and a dot */
};

/* A flag of config.json that may not be set, and what to say of it. */
struct family_refusal {
    const char *key;
    const char *expected;
};

struct model_family {
    const char *model_type;   /* in config.json; NULL: no such folders */
    const char *architecture; /* the same, and in reports */
    const char *gguf;         /* general.architecture; NULL: no such files, or they are called as another row's */
    const struct family_names *names;
    enum family_block block[FAMILY_MOST_BLOCKS + 1]; /* of each layer, in order; FAMILY_END behind the last */
    int qkv_bias;
    int qk_norm;       /* q and k are normed by head before RoPE */
    int gguf_adjacent; /* the converter to GGUF interleaves the rows of q and k: see config.rope_adjacent */
    enum family_window window;
    /* Keys that default to a number of one release of one library are needed. */
    int needs_kv_heads, needs_head_dim;
    const char *norm_eps, *gguf_norm_eps;  /* the key of the norms' epsilon */
    const char *activation;                /* the MLP's, as hidden_act says */
    const struct family_refusal *refuses;  /* up to one without a key */
};

enum family_row { FAMILY_LLAMA, FAMILY_MISTRAL, FAMILY_QWEN2, FAMILY_QWEN3, FAMILY_LLAMA2C, FAMILIES };
extern const struct model_family model_families[FAMILIES];

/* Which of its names a row is looked up and listed by. */
enum family_format { FAMILY_CONFIG_JSON, FAMILY_GGUF };
const char *family_name_in(const struct model_family *family, enum family_format format);
/* The row that has this name, which need not end with a zero; NULL when there is none. */
const struct model_family *family_find(enum family_format format, const char *name, size_t length);
/* Names all rows of a format, for lines that say what was expected: "a", "b" or "c". */
void family_list(enum family_format format, char *text, size_t size);

/* Whether models of this family have such tensors. */
int family_has(const struct model_family *family, enum family_part part);
/* The name of a tensor as checkpoint_find knows it. layer: counts for those in a layer alone  name: [FAMILY_NAME_MAX] */
void family_tensor(const struct model_family *family, enum family_part part, int layer, char *name);
/* The part that has this name in files of a format, and of which layer it is (0 outside of them); FAMILY_PARTS: there is none, in any family. */
enum family_part family_part_of(const struct model_family *family, enum family_format format, const char *name, int *layer);

#endif
