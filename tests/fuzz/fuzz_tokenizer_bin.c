/* A byte of vocabulary size, then any bytes as a llama2.c tokenizer.bin: they are refused, or what opens encodes and spells. */
#include "common/text/tokenizer_bin.h"
#include "tests/fuzz/fuzz_tokenizer_use.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct tokenizer *tokenizer;

    if (size == 0 || tokenizer_bin_open("fuzz", (const char *)bytes + 1, size - 1, bytes[0], &tokenizer) != STATUS_OK)
        return 0;
    fuzz_tokenizer_use(tokenizer);
    tokenizer_close(tokenizer);
    return 0;
}
