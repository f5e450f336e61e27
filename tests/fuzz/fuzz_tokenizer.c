/* libFuzzer entry: the bytes are a tokenizer.json; what opens must encode and spell without a fault. Build by hand with
 * clang -fsanitize=fuzzer,address,undefined over this file, the sources of common/text, and log.c and digest.c of common/base. */
#include "common/base/log.h"
#include "common/text/tokenizer_json.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct tokenizer *tokenizer)
{
    static const char text[] = "a <s>b\xC3\xA9 12  \xE2\x96\x81xyz\n";
    int32_t *tokens;
    size_t length;
    int count;

    for (int flags = 0; flags < 4; flags++) {
        if (tokenizer_encode(tokenizer, text, sizeof text - 1, flags, &tokens, &count, NULL) != STATUS_OK)
            continue;
        for (int i = 0; i < count; i++)
            tokenizer_piece(tokenizer, tokens[i], i == 0, flags & 1, &length);
        free(tokens);
    }
    tokenizer_find(tokenizer, "a");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tokenizer *tokenizer;

    log_init("fuzz", LOG_ERROR);
    if (tokenizer_json_open("fuzz", (const char *)data, size, &tokenizer) != STATUS_OK)
        return 0;
    use(tokenizer);
    tokenizer_close(tokenizer);
    return 0;
}
