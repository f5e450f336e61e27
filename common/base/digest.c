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

/* The state is xxHash's own, whose size is not a promise. */
struct digest_growing *digest_growing_open(uint64_t offset)
{
    XXH3_state_t *state = XXH3_createState();

    if (state != NULL)
        XXH3_64bits_reset_withSeed(state, offset);
    return (struct digest_growing *)state;
}

void digest_growing_close(struct digest_growing *growing)
{
    XXH3_freeState((XXH3_state_t *)growing);
}

uint64_t digest_growing_add(struct digest_growing *growing, const void *bytes, size_t count)
{
    XXH3_64bits_update((XXH3_state_t *)growing, bytes, count);
    return XXH3_64bits_digest((const XXH3_state_t *)growing);
}
