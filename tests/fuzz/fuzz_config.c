/* Any bytes as config.json and, behind the first NUL, generation_config.json: they are refused, or what was read is a model that can be
 * computed. */
#include "common/model/config.h"
#include "common/model/rope.h"
#include "tests/fuzz/fuzz_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG, GENERATION, ROWS = 4, HALF = 512 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(int holds)
{
    if (!holds)
        abort();
}

static void rope_check(const struct config *config)
{
    static float cosine[ROWS * HALF], sine[ROWS * HALF]; /* [ROWS][head_dim / 2] */

    float most = config->rope == ROPE_YARN || config->rope == ROPE_LONGROPE ? (float)config->rope_attention : 1.0f;

    require(most > 0.0f && isfinite(most));
    rope_fill(config, config->context, ROWS, cosine, sine);
    for (int i = 0; i < ROWS * config->head_dim / 2; i++)
        require(fabsf(cosine[i]) <= most && fabsf(sine[i]) <= most);
}

static void check(const struct config *config)
{
    char allowed[64];

    require(config->hidden >= 2 && config->layers >= 1 && config->ffn >= 1 && config->vocab >= 2 && config->context >= 1);
    require(config->kv_heads >= 1 && config->heads % config->kv_heads == 0);
    require(config->head_dim >= 2 && config->head_dim % 2 == 0 && config->head_dim <= 2 * HALF);
    require(config->norm_eps > 0.0f && isfinite(config->norm_eps));
    require(config->bos >= -1 && config->bos < config->vocab);
    require(config->eos_count >= 0 && config->eos_count <= CONFIG_MAX_EOS);
    for (int i = 0; i < config->eos_count; i++)
        require(config->eos[i] >= 0 && config->eos[i] < config->vocab);
    require(config_allows_width(config, 1, allowed, sizeof allowed) && strlen(allowed) < sizeof allowed);
    rope_check(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const uint8_t *nul = size > 0 ? memchr(bytes, 0, size) : NULL;
    size_t first = nul != NULL ? (size_t)(nul - bytes) : size;
    struct config config;

    fuzz_folder_show(CONFIG, "config.json", 1);
    fuzz_folder_show(GENERATION, "generation_config.json", nul != NULL);
    fuzz_file(CONFIG, bytes, first);
    if (nul != NULL)
        fuzz_file(GENERATION, nul + 1, size - first - 1);
    if (config_read(fuzz_folder(), &config) == STATUS_OK)
        check(&config);
    return 0;
}
