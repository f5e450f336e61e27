/* The merge table owns which two pieces become one and in which order: (left, right) to (rank, token), the lowest rank first.
 * Open addressing, at most half full. Filled at open, immutable after that. */
#ifndef TANDEM_COMMON_TEXT_MERGE_TABLE_H
#define TANDEM_COMMON_TEXT_MERGE_TABLE_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

struct merge {
    uint64_t pair; /* left << 32 | right; MERGE_TABLE_NONE in a hole */
    uint32_t rank;
    int32_t token;
};

struct merge_table {
    struct merge *merges; /* [mask + 1] */
    size_t count, mask;
    int shift; /* 64 - log2(mask + 1) */
};

#define MERGE_TABLE_NONE UINT64_MAX

/* Room for `count` merges; more makes it grow. STATUS_INTERNAL (logged). */
enum status merge_table_init(struct merge_table *table, size_t count);
/* A pair that is there already takes the new rank and token. */
enum status merge_table_put(struct merge_table *table, int32_t left, int32_t right, uint32_t rank, int32_t token);
/* NULL when the two do not merge. */
const struct merge *merge_table_find(const struct merge_table *table, int32_t left, int32_t right);
void merge_table_release(struct merge_table *table);

#endif
