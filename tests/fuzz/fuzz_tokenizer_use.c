#include "tests/fuzz/fuzz_tokenizer_use.h"

#include <stdlib.h>

void fuzz_tokenizer_use(const struct tokenizer *tokenizer)
{
    static const char text[] = "a <s>b\xC3\xA9 e\xCC\x81 12  \xE2\x96\x81xyz\n";
    int32_t *tokens;
    size_t length;
    int count;

    for (int flags = 0; flags < 4; flags++) {
        if (tokenizer_encode(tokenizer, text, sizeof text - 1, flags, &tokens, &count, NULL) != STATUS_OK)
            continue;
        for (int i = 0; i < count; i++) {
            if (tokens[i] < 0 || tokens[i] >= tokenizer_size(tokenizer))
                abort();
            tokenizer_piece(tokenizer, tokens[i], i == 0, flags & 1, &length);
        }
        free(tokens);
    }
    tokenizer_find(tokenizer, "a");
}
