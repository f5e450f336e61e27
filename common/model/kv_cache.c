#include "common/model/kv_cache.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdlib.h>

/* The keys, or the values, of one layer. */
static size_t side_of(const struct model *model, int slots)
{
    const struct layer_shape *shape = &model->shape;

    return arena_round((size_t)slots * (size_t)shape->kv_heads * (size_t)shape->context * (size_t)shape->head_dim *
                       dtype_bytes(model->cache_dtype));
}

size_t kv_cache_need(const struct model *model, int slots)
{
    return 2 * side_of(model, slots) * (size_t)model->config.layers;
}

enum status kv_cache_open(struct kv_cache *cache, const struct model *model, int slots)
{
    size_t side = side_of(model, slots), bytes = kv_cache_need(model, slots);

    TRY(model->backend->memory.check(model->context, "the cache of this rank", bytes));
    struct kv_cache opened = {.model = model, .slots = slots, .context = model->shape.context};
    opened.layer = calloc((size_t)model->config.layers, sizeof *opened.layer);
    if (opened.layer == NULL) {
        log_error("no memory for the cache's %d layers", model->config.layers);
        return STATUS_INTERNAL;
    }
    enum status status = model->backend->memory.open(model->context, bytes, "the cache", &opened.arena);
    if (status != STATUS_OK) {
        free(opened.layer);
        return status;
    }
    if (model->backend->device.which == NULL) /* a sequence fills the first places of each head of each layer, megabytes apart */
        arena_expect_gaps(&opened.arena);
    for (int i = 0; i < model->config.layers; i++) {
        opened.layer[i].dtype = model->cache_dtype;
        opened.layer[i].keys = arena_take(&opened.arena, side);
        opened.layer[i].values = arena_take(&opened.arena, side);
    }
    *cache = opened;
    return STATUS_OK;
}

void kv_cache_close(struct kv_cache *cache)
{
    if (cache->model != NULL)
        cache->model->backend->memory.close(cache->model->context, &cache->arena);
    free(cache->layer);
    *cache = (struct kv_cache){0};
}

size_t kv_cache_bytes(const struct kv_cache *cache)
{
    return cache->arena.size;
}

void kv_cache_copy(struct kv_cache *cache, struct cache_place from, struct cache_place to, int count)
{
    const struct model *model = cache->model;

    if (from.slot == to.slot && from.place == to.place)
        return;
    for (int i = 0; i < model->config.layers; i++)
        model->backend->cache.copy(model->context, &model->shape, &cache->layer[i], from, to, count);
}
