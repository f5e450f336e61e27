/* A Hugging Face folder as a GGUF file, as llama.cpp's converter would write it: for tests that hold the two forms against each other. */
#ifndef TANDEM_TESTS_SUPPORT_GGUF_CONVERT_H
#define TANDEM_TESTS_SUPPORT_GGUF_CONVERT_H

#include "common/backend/backend.h"

struct gguf_convert {
    enum dtype dtype; /* of the matrices, or a smaller format where rows are no whole blocks of it; vectors are F32 */
    int as_stored;    /* the matrices keep the dtype that they have; `dtype` does not matter */
    int rounded;      /* with a quantised dtype: its values are written as F32 */
    int mixed;        /* with a quantised dtype: v is written as F32 (with Q4_K: as Q6_K), so q, k and v are of two dtypes */
    int wrong_rows;   /* q and k are interleaved where they must not be, and the other way round */
    const char *pre;  /* tokenizer.ggml.pre, or NULL: tokenizer.json is left out */
    char *const *texts; /* KEY TEXT KEY TEXT ... NULL: keys of text that are added, or take the place of general.architecture; NULL: none */
};

/* Reads the folder, writes the file. What goes wrong ends the process. */
void gguf_convert(const char *folder, const char *path, const struct gguf_convert *how);

/* Values of one block, none of them infinite or NaN, by ggml's rule; and back, by the definition of the format: the tests' own arithmetic. */
void gguf_convert_quantise(enum dtype dtype, const float *values /* [dtype_block(dtype)] */, unsigned char *block);
void gguf_convert_widen(enum dtype dtype, const unsigned char *block, float *values /* [dtype_block(dtype)] */);

/* Keys of tokenizer.json (byte-level BPE), padded by unused tokens to `vocab`. */
struct gguf_file;
void gguf_convert_tokenizer(struct gguf_file *file, const char *tokenizer_json, const char *pre, int vocab);

#endif
