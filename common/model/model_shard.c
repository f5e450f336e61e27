#include "common/model/model_shard.h"

#include "common/backend/backend.h"

static struct model_part equal_part(int whole, int rank, int size)
{
    return (struct model_part){.first = whole / size * rank, .count = whole / size};
}

/* Beyond the kv heads each is held by size / whole neighbours, whose query heads all read it. */
static struct model_part shared_part(int whole, int rank, int size)
{
    return size <= whole ? equal_part(whole, rank, size) : (struct model_part){.first = rank / (size / whole), .count = 1};
}

/* Whole panels: only the last rank has one that is not full. */
static struct model_part panels(int whole, int rank, int size)
{
    int first = (int)((int64_t)whole * rank / size / BACKEND_PANEL * BACKEND_PANEL);
    int end = rank + 1 == size ? whole : (int)((int64_t)whole * (rank + 1) / size / BACKEND_PANEL * BACKEND_PANEL);

    return (struct model_part){.first = first, .count = end - first};
}

struct model_shard model_shard_of(const struct config *config, int vocab, int rank, int size)
{
    return (struct model_shard){.heads = equal_part(config->heads, rank, size),
                                .kv_heads = shared_part(config->kv_heads, rank, size),
                                .ffn = equal_part(config->ffn, rank, size),
                                .vocab = panels(vocab, rank, size)};
}
