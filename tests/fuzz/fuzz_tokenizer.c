/* Any bytes as a tokenizer.json: they are refused, or what opens encodes and spells. */
#include "common/text/tokenizer_json.h"
#include "tests/fuzz/fuzz_tokenizer_use.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct tokenizer *tokenizer;

    if (tokenizer_json_open("fuzz", (const char *)bytes, size, &tokenizer) != STATUS_OK)
        return 0;
    fuzz_tokenizer_use(tokenizer);
    tokenizer_close(tokenizer);
    return 0;
}
