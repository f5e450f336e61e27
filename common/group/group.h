/* A group is the ranks that compute one model together, each holding a shard. Rank 0 is the lead; it decides, the others follow. Three
 * kinds behind one table: self (one rank, honest no-ops), shared (ranks of one host, through memory that they share: a small
 * reduction costs about a microsecond), mpi (ranks of several hosts). All operations are collective over the group and must be called
 * by its ranks in the same order with the same sizes. Waiting is world_wait_step; the watchdog bounds it. */
#ifndef TANDEM_COMMON_GROUP_GROUP_H
#define TANDEM_COMMON_GROUP_GROUP_H

#include "common/base/status.h"
#include "common/world/world.h"
#include <stddef.h>

struct group {
    int rank;
    int size;
    const struct group_kind *kind;
    void *state; /* the kind's own */
};

struct group_kind {
    const char *name;
    /* to[i] = the binary tree, in rank order, over the ranks' x[i] (backend_tree_sum). The same bits on every rank. */
    enum status (*sum)(struct group *group, float *x, size_t count);
    /* Every rank gets rank 0's bytes. */
    enum status (*broadcast)(struct group *group, void *bytes, size_t count);
    /* Rank 0 gets every rank's bytes in rank order; `all` is not used elsewhere. */
    enum status (*gather)(struct group *group, const void *mine, size_t count, void *all);
    void (*close)(struct group *group);
};

/* Local. */
void group_open_self(struct group *group);
/* Collective over world->team. `largest` is the most bytes that one rank gives in one operation; more go in several parts. */
enum status group_open_team(struct world *world, size_t largest, struct group *group);
void group_close(struct group *group);

/* Collective over GROUP. x: [count], in place. */
enum status group_sum(struct group *group, float *x, size_t count);
/* Collective over GROUP. */
enum status group_broadcast(struct group *group, void *bytes, size_t count);
/* Collective over GROUP. all: [size][count] bytes on rank 0 */
enum status group_gather(struct group *group, const void *mine, size_t count, void *all);

/* The kinds' own doors, for group_open_team. */
enum status group_open_shared(struct world *world, size_t largest, struct group *group);
enum status group_open_mpi(struct world *world, size_t largest, struct group *group);

#endif
