/* What a model is, from its config.json (or the keys of a GGUF file, or the header of a llama2.c .bin). Plain data. Invariant: every number is in a
 * range that the rest can compute with, and nothing that would change the arithmetic was ignored. Local; reads no weight. */
#ifndef TANDEM_COMMON_MODEL_CONFIG_H
#define TANDEM_COMMON_MODEL_CONFIG_H

#include "common/base/status.h"
#include "common/model/config_advice.h"
#include "common/model/family.h"
#include "common/model/quantisation.h"
#include <stdint.h>

enum { CONFIG_MAX_EOS = 8, CONFIG_MAX_HEAD_DIM = 1 << 10, CONFIG_MAX_CONTEXT = 1 << 26, CONFIG_LARGE = 32 << 20 };

enum rope_kind { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3, ROPE_DIVISORS, ROPE_YARN, ROPE_LONGROPE };

struct config {
    const struct model_family *family;
    int hidden;
    int layers;
    int heads;
    int kv_heads;
    int head_dim;
    int ffn;
    int vocab;   /* rows of the embedding table, which may be padded */
    int context; /* tokens */
    float norm_eps;
    int tied; /* the classifier is the embedding */
    struct quantisation quantisation;
    double rope_theta;
    enum rope_kind rope;
    double rope_factor;
    double rope_low_frequency;  /* llama3: low_freq_factor */
    double rope_high_frequency; /* llama3: high_freq_factor */
    double rope_beta_fast;      /* yarn: pairs that turn more often than this over the original context keep their frequency */
    double rope_beta_slow;      /* yarn: those that turn less often than this are divided by the factor */
    int rope_truncate;          /* yarn: the ramp between the two begins and ends at whole pairs */
    double rope_attention;      /* yarn, longrope: cosines and sines are multiplied by it */
    double rope_original_context; /* llama3, yarn, longrope: tokens that the model was trained with before it was stretched */
    /* [head_dim / 2], what a GGUF file divides the frequencies by; longrope: what it does as long as the original context is enough */
    float rope_divisor[CONFIG_MAX_HEAD_DIM / 2];
    float rope_long_divisor[CONFIG_MAX_HEAD_DIM / 2]; /* longrope: where it is not */
    int rope_adjacent; /* the checkpoint's q and k rows pair (2i, 2i + 1), as llama2.c and GGUF have them, not (i, i + head_dim / 2) */
    int32_t bos;       /* -1 when there is none */
    int32_t eos[CONFIG_MAX_EOS];
    int eos_count;
    struct config_advice advice;
};

/* Reads PATH/config.json and PATH/generation_config.json (its eos ids win where present), or the keys of a GGUF file (PATH itself, or the only one
 * of a folder without config.json), or the header of a llama2.c .bin. The line that is logged names the file, the key and what was expected.
 * STATUS_NOINPUT, STATUS_DATA. */
enum status config_read(const char *path, struct config *config);

/* Tensor-parallel widths that divide the heads and ffn of the model, and its kv heads or are a multiple of them, as text "1, 2, 4". Returns whether
 * `width` is one. */
int config_allows_width(const struct config *config, int width, char *allowed, int allowed_size);
/* Whether the first `layers` layers (0: all) and the classifier are so many weights for each of `width` ranks, CONFIG_LARGE at least, that a step
 * takes milliseconds of a core: drafters and verifiers, which take turns, had better use the same cores than each a part of them. */
int config_is_large(const struct config *config, int layers, int width);

#endif
