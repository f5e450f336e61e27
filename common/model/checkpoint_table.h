/* The tensors of all files of a checkpoint, by name. It owns the entries and their names; the data lie in the mapped files. Invariant: filled once at
 * open, then sorted and read-only; lookups are by bisection. For the readers of checkpoints alone. */
#ifndef TANDEM_COMMON_MODEL_CHECKPOINT_TABLE_H
#define TANDEM_COMMON_MODEL_CHECKPOINT_TABLE_H

#include "common/backend/backend.h"
#include "common/base/status.h"
#include <stdint.h>

enum { CHECKPOINT_TENSORS_MAX = 65536, CHECKPOINT_NAME_MAX = 256, CHECKPOINT_DIMS_MAX = 8, CHECKPOINT_DTYPE_MAX = 15 };

struct checkpoint_entry {
    char *name;       /* owned by the table */
    const char *file; /* the path it came from, owned by its file_map */
    const unsigned char *data;
    char dtype[CHECKPOINT_DTYPE_MAX + 1]; /* as the file spells it */
    int has_blocks; /* the file's reader knows quantised dtypes and has checked their sizes */
    int dims;
    int64_t shape[CHECKPOINT_DIMS_MAX];
};

struct checkpoint_table {
    struct checkpoint_entry *entries;
    int count;
    int room;
};

/* Adds a copy of the entry and of its name. STATUS_DATA when there are CHECKPOINT_TENSORS_MAX already. */
enum status checkpoint_table_add(struct checkpoint_table *table, const struct checkpoint_entry *entry);
/* Sorts by name. STATUS_DATA, naming both files, when a tensor is there twice. */
enum status checkpoint_table_sort(struct checkpoint_table *table);
/* NULL when there is none of that name. The table is sorted. */
const struct checkpoint_entry *checkpoint_table_find(const struct checkpoint_table *table, const char *name);
/* Whether rows of it can be read as they are, and as what. Vectors are read as single values, so they have no blocks. */
int checkpoint_table_dtype(const struct checkpoint_entry *entry, enum dtype *dtype);
void checkpoint_table_release(struct checkpoint_table *table);

#endif
