/* A KV cache owns, for each slot, the keys and values of the tokens that were fed there. Invariant: place i of a slot holds the sequence's token i,
 * for as many places as its feeder counts: the cache knows no lengths, and truncation means to feed again from an earlier place. Only the thread that
 * runs the forward pass may call; local to a rank, which has its own heads. Never allocates after open, sends or waits. */
#ifndef TANDEM_COMMON_MODEL_KV_CACHE_H
#define TANDEM_COMMON_MODEL_KV_CACHE_H

#include "common/model/model.h"

struct kv_cache {
    const struct model *model;
    struct arena arena;        /* of the device */
    int slots;
    int context;               /* places of a slot */
    struct cache_layer *layer; /* [layers] */
};

/* Bytes of a cache of the model's context for `slots` sequences. */
size_t kv_cache_need(const struct model *model, int slots);

/* Local. Room for `slots` sequences of the model's context. Refuses with the figures what the device cannot hold. */
enum status kv_cache_open(struct kv_cache *cache, const struct model *model, int slots);
void kv_cache_close(struct kv_cache *cache);
size_t kv_cache_bytes(const struct kv_cache *cache);

/* Local, between steps. The tokens of `count` places from `from` on are also in as many from `to` on, none of which is copied itself: as if they had
 * been fed there, where all that they see is the same. A key knows the position of its token, which does not change. */
void kv_cache_copy(struct kv_cache *cache, struct cache_place from, struct cache_place to, int count);

#endif
