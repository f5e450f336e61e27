/* How the linear maps of a Hugging Face folder are kept in few bits: what config.json says of it (quantization_config). Plain data. Invariant: a way
 * that the rest does not know is refused here, and so is a number that it cannot compute with. Local; reads no weight. */
#ifndef TANDEM_COMMON_MODEL_QUANTISATION_H
#define TANDEM_COMMON_MODEL_QUANTISATION_H

#include "common/base/status.h"

struct checkpoint_json;

enum quantisation_kind {
    QUANTISATION_NONE,
    QUANTISATION_AWQ,  /* 4 bits: Lin et al. 2023, the layout of AutoAWQ's "gemm" */
    QUANTISATION_GPTQ, /* 4 bits: Frantar et al. 2022, the layout of AutoGPTQ */
    QUANTISATION_FP8,  /* E4M3, as DeepSeek, Qwen and compressed-tensors keep it */
};

struct quantisation {
    enum quantisation_kind kind;
    int group;      /* AWQ, GPTQ: columns that share a scale; 0: all of a row */
    int zero_added; /* GPTQ: what is to be added to a zero point as it is stored */
    int is_sorted;  /* GPTQ: columns may be sorted (desc_act), so the tensors must say that they are not */
    int block[2];   /* FP8: rows and columns that share a scale, where a tensor has one for each block; 0: not said */
};

/* Reads the object that is config.json's quantization_config. STATUS_DATA, with a line that names file, key and what was expected. */
enum status quantisation_read(const struct checkpoint_json *json, struct quantisation *quantisation);
/* The name of the kind, as quant_method has it. */
const char *quantisation_name(enum quantisation_kind kind);

#endif
