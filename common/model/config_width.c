#include "common/model/config.h"

#include <stdio.h>

static int divides(const struct config *config, int width)
{
    return config->heads % width == 0 && (config->kv_heads % width == 0 || width % config->kv_heads == 0) && config->ffn % width == 0;
}

int config_allows_width(const struct config *config, int width, char *allowed, int allowed_size)
{
    int used = 0;

    if (allowed_size > 0)
        allowed[0] = '\0';
    for (int each = 1; each <= config->heads; each++) { /* a larger width cannot divide the heads */
        char item[16];
        int length;

        if (!divides(config, each))
            continue;
        length = snprintf(item, sizeof item, used == 0 ? "%d" : ", %d", each);
        if (used + length >= allowed_size)
            break;
        used += snprintf(allowed + used, (size_t)(allowed_size - used), "%s", item);
    }
    return width >= 1 && divides(config, width);
}

int config_is_large(const struct config *config, int layers, int width)
{
    double hidden = config->hidden, heads = (double)config->heads * config->head_dim, kv = (double)config->kv_heads * config->head_dim;
    double layer = hidden * (2 * heads + 2 * kv + 3.0 * config->ffn); /* q, k, v, out; gate, up, down */

    return ((layers > 0 ? layers : config->layers) * layer + hidden * config->vocab) / width >= CONFIG_LARGE;
}
