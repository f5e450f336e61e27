#include "common/base/rng.h"

#include "common/base/math32.h"
#include <Random123/philox.h>

DEVICE_CODE void rng_words(const struct rng_key *key, enum rng_purpose purpose, uint32_t index, uint32_t words[4])
{
    philox4x32_ctr_t counter = {{index, key->position, key->request, (uint32_t)purpose}};
    philox4x32_key_t philox_key = {{(uint32_t)key->seed, (uint32_t)(key->seed >> 32)}};
    philox4x32_ctr_t block = philox4x32(counter, philox_key);

    for (int i = 0; i < 4; i++)
        words[i] = block.v[i];
}

DEVICE_CODE double rng_coin(const struct rng_key *key, enum rng_purpose purpose, uint32_t index)
{
    uint32_t words[4];

    rng_words(key, purpose, index, words);
    return (double)(((uint64_t)words[0] << 21) | (words[1] >> 11)) * 0x1p-53;
}

DEVICE_CODE double rng_uniform(const struct rng_key *key, enum rng_purpose purpose)
{
    return rng_coin(key, purpose, 0);
}

DEVICE_CODE uint32_t rng_coin16(const struct rng_key *key, enum rng_purpose purpose, uint32_t index)
{
    uint32_t words[4];

    rng_words(key, purpose, index, words);
    return words[0] >> 16;
}

DEVICE_CODE float rng_gumbel_of(uint32_t word)
{
    float v = ((float)word + 0.5f) * 0x1p-32f;
    float v_below_one = v < 0x1.fffffep-1f ? v : 0x1.fffffep-1f;
    float t = 1.0f - v_below_one;
    float lost = 1.0f - t; /* v after rounding in t; 0 when v is below half an ulp of 1 */
    /* log1p(-v) = log(t) v / (1 - t), exact where t is (Kahan). */
    float exponential = lost == 0.0f ? v_below_one : -math32_log(t) * (v_below_one / lost);

    return -math32_log(exponential);
}

DEVICE_CODE float rng_gumbel(const struct rng_key *key, enum rng_purpose purpose, uint32_t token)
{
    uint32_t words[4];

    rng_words(key, purpose, token / 4, words);
    return rng_gumbel_of(words[token % 4]);
}
