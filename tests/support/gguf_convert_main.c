/* gguf_convert FOLDER FILE.gguf f32|f16|bf16|q8_0|q4_0|...|q6_k|stored PRE [KEY TEXT]...: the folder as a GGUF file whose tokenizer.ggml.pre is PRE,
 * with these keys besides. */
#include "tests/support/gguf_convert.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

int main(int argc, char **argv)
{
    struct gguf_convert how = {.dtype = DTYPES};

    if (argc < 5 || argc % 2 == 0) {
        fprintf(stderr, "gguf_convert: expected FOLDER FILE.gguf f32|f16|bf16|q8_0|q4_0|...|q6_k|stored PRE [KEY TEXT]...\n");
        return 64;
    }
    for (enum dtype dtype = DTYPE_F32; dtype < DTYPES; dtype++)
        if (dtype != DTYPE_F8 && dtype != DTYPE_Q4_Z && strcasecmp(dtype_name(dtype), argv[3]) == 0)
            how.dtype = dtype;
    how.as_stored = strcmp(argv[3], "stored") == 0;
    how.pre = argv[4];
    how.texts = argv + 5;
    if (how.dtype == DTYPES && !how.as_stored) {
        fprintf(stderr, "gguf_convert: unknown dtype %s\n", argv[3]);
        return 64;
    }
    gguf_convert(argv[1], argv[2], &how);
    return 0;
}
