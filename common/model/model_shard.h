/* Which part of a model each rank of a group owns. The parts of all ranks are the whole, in the order of ranks, and none overlaps, but that a kv head
 * is several ranks' where there are more ranks than kv heads: each computes and caches it for itself. This is the only place that says where a part
 * begins. Plain numbers: it reads no file and knows no group. */
#ifndef TANDEM_COMMON_MODEL_MODEL_SHARD_H
#define TANDEM_COMMON_MODEL_MODEL_SHARD_H

#include "common/model/config.h"

/* Of what is counted from 0: first .. first + count - 1. */
struct model_part {
    int first, count;
};

struct model_shard {
    struct model_part heads, kv_heads, ffn;
    struct model_part vocab; /* first is a multiple of BACKEND_PANEL; count is 0 where there are too few ids for all */
};

/* The part of rank `rank` of `size`, which config_allows_width allows. `vocab` are the ids in use. */
struct model_shard model_shard_of(const struct config *config, int vocab, int rank, int size);

#endif
