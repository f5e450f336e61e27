#include "common/base/digest.h"

#include <xxhash.h>

uint64_t digest_bytes(const void *bytes, size_t count, uint64_t seed)
{
    return XXH64(bytes, count, seed);
}

uint64_t digest_tokens(uint64_t digest, const int32_t *tokens, int count)
{
    for (int i = 0; i < count; i++)
        digest = XXH64(&tokens[i], sizeof tokens[i], digest);
    return digest;
}

uint64_t digest_line(const void *bytes, size_t count, uint64_t offset)
{
    return XXH3_64bits_withSeed(bytes, count, offset);
}
