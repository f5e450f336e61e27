/* A group is the ranks that compute one model together, each with its part of the weights; rank 0 is the lead. It owns the memory and communicators
 * by which they sum, broadcast and gather. Invariant: all operations are collective, called by all ranks in the same order with the same sizes, and a
 * sum has the same bits on every rank. Kinds: self (one rank), shared (ranks of one host, through shared memory), mpi (several hosts), NCCL (sums
 * device memory, and leaves the host's bytes to the kind it took in). A rank's main thread alone calls; waits are world_wait_step under the watchdog.
 * Never decides or retries. */
#ifndef TANDEM_COMMON_GROUP_GROUP_H
#define TANDEM_COMMON_GROUP_GROUP_H

#include "common/backend/backend.h"
#include "common/base/status.h"
#include "common/world/world.h"
#include <stddef.h>

/* How ranks with a device each sum small numbers. The bits are the same. */
enum group_sums {
    GROUP_SUMS_AUTO,     /* what is faster, by measuring both at the start */
    GROUP_SUMS_NCCL,
    GROUP_SUMS_ONE_SHOT, /* devices write into each other's memory; refused where they cannot */
};

struct group {
    int rank;
    int size;
    const struct group_kind *kind;
    void *state; /* the kind's own */
};

struct group_kind {
    const char *name;
    /* to[i] = the binary tree, in rank order, over the ranks' x[i] (backend_tree_sum). The same bits on every rank. Where a group sums
     * device memory, the sum is asked for when it returns and stands where the device's next operation finds it. */
    enum status (*sum)(struct group *group, float *x, size_t count);
    /* x += the sum of so many partials, at once, without any part of the host's: a step that sums so may be recorded. NULL where no kind
     * of sum is like that; else sums_alone says for how many. */
    enum status (*add)(struct group *group, float *x, const float *partial, size_t count);
    int (*sums_alone)(const struct group *group, size_t count);
    /* Every rank gets rank 0's bytes. */
    enum status (*broadcast)(struct group *group, void *bytes, size_t count);
    /* Rank 0 gets every rank's bytes in rank order; `all` is not used elsewhere. */
    enum status (*gather)(struct group *group, const void *mine, size_t count, void *all);
    void (*close)(struct group *group);
    /* The rest is NULL where sums are done when they return. */
    enum status (*settle)(struct group *group);
    void *(*buffer)(const struct group *group, size_t bytes);
    const char *(*describe)(const struct group *group);
};

/* Local. */
void group_open_self(struct group *group);
/* Collective over world->role_comm. `largest` is the most bytes that one rank gives in one operation; more go in several parts. */
enum status group_open_team(struct world *world, size_t largest, struct group *group);
/* Collective over world->role_comm, before there is a group: what group_agree is behind it. */
enum status group_meet(struct world *world, enum status status);
/* Collective over GROUP, whatever backend a rank has, once every rank has opened its device. STATUS_USAGE where only some have one. Where a backend's
 * memory is a device's, sums go over NCCL from here on, and are of such memory; else nothing changes. `largest` is the most bytes of a sum. Where one
 * rank fails all do, the others with STATUS_ELSEWHERE. The group must be closed before the context. */
enum status group_attach(struct world *world, const struct backend *backend, struct backend_context *context, size_t largest,
                         enum group_sums sums, struct group *group);
void group_close(struct group *group);
/* Local. What --verbose says of it. */
const char *group_describe(const struct group *group);

/* Collective over GROUP. Gives `status` back, or STATUS_ELSEWHERE where that is STATUS_OK and another rank's is not. */
enum status group_agree(struct group *group, enum status status);

/* Collective over GROUP. x: [count], in place. */
enum status group_sum(struct group *group, float *x, size_t count);
/* Local. Whether a device does a sum of so many numbers by itself: group_add is there for it, and a step may be recorded with it. */
int group_sums_alone(const struct group *group, size_t count);
/* Collective over GROUP. x += the sum of the partials.  x, partial: [count] */
enum status group_add(struct group *group, float *x, const float *partial, size_t count);
/* Local. Waits until the sums so far are done, or one of them cannot be because a rank is lost or failed. */
enum status group_settle(struct group *group);
/* Local. The group's own memory of at least so many bytes in which sums are fastest, one and the same at each call; NULL where it has none.
 */
void *group_buffer(const struct group *group, size_t bytes);
/* Collective over GROUP. */
enum status group_broadcast(struct group *group, void *bytes, size_t count);
/* Collective over GROUP. all: [size][count] bytes on rank 0 */
enum status group_gather(struct group *group, const void *mine, size_t count, void *all);

/* The kinds' own doors, for group_open_team and group_attach. */
enum status group_open_shared(struct world *world, size_t largest, struct group *group);
enum status group_open_mpi(struct world *world, size_t largest, struct group *group);
/* Collective over GROUP, which the new one takes in. The communicator is there within `patience_s` seconds, or all fail: STATUS_WATCHDOG.
 */
enum status group_open_nccl(struct world *world, const struct backend *backend, struct backend_context *context, size_t largest,
                            double patience_s, enum group_sums sums, struct group *group);

#endif
