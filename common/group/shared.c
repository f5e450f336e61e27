/* Ranks of one host. Each rank owns a box in memory that all map: two counters and two buffers that are used in turn.
 *
 * Operation n (from 1): a rank that gives something waits until every rank is done with operation n - 2, which used the same buffer;
 * writes its bytes; sets given = n. A rank that takes waits for given >= n of the ranks that it reads, reads, and sets done = n. Every
 * rank counts every operation, so one that gives nothing still says done. Larger operations go in parts that fit a buffer. */
#include "common/group/group.h"

#include "common/backend/backend.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIZE = 64, LEAST_BUFFER = 4096 };

struct box {
    _Atomic uint64_t given;
    char apart1[56];
    _Atomic uint64_t done;
    char apart2[56];
    unsigned char bytes[]; /* [2][buffer] */
};

struct shared {
    const struct world *world;
    MPI_Win window;
    size_t buffer; /* bytes of one buffer */
    uint64_t operation;
    struct box *box[MAX_SIZE];
    int world_rank[MAX_SIZE];
};

static unsigned char *buffer_of(const struct shared *shared, int rank)
{
    return shared->box[rank]->bytes + (shared->operation % 2) * shared->buffer;
}

static void await(const struct shared *shared, _Atomic uint64_t *counter, uint64_t value)
{
    struct wait wait;

    if (atomic_load_explicit(counter, memory_order_acquire) >= value)
        return;
    world_wait_begin(shared->world, &wait);
    while (atomic_load_explicit(counter, memory_order_acquire) < value)
        world_wait_step(shared->world, &wait, INT64_MAX);
}

static void ring_others(const struct group *group)
{
    const struct shared *shared = group->state;

    for (int i = 0; i < group->size; i++)
        if (i != group->rank)
            world_ring(shared->world, shared->world_rank[i]);
}

static void give(struct group *group, const void *bytes, size_t count)
{
    struct shared *shared = group->state;

    for (int i = 0; shared->operation > 2 && i < group->size; i++)
        await(shared, &shared->box[i]->done, shared->operation - 2);
    memcpy(buffer_of(shared, group->rank), bytes, count);
    atomic_store_explicit(&shared->box[group->rank]->given, shared->operation, memory_order_release);
    ring_others(group);
}

static void done(struct group *group)
{
    struct shared *shared = group->state;

    atomic_store_explicit(&shared->box[group->rank]->done, shared->operation, memory_order_release);
    ring_others(group);
}

static void sum_part(struct group *group, float *x, size_t count)
{
    struct shared *shared = group->state;
    const float *from[MAX_SIZE];

    shared->operation++;
    give(group, x, count * sizeof *x);
    for (int i = 0; i < group->size; i++) {
        await(shared, &shared->box[i]->given, shared->operation);
        from[i] = (const float *)(const void *)buffer_of(shared, i);
    }
    if (group->size == 2) { /* the tree over two, where the time goes */
        for (size_t k = 0; k < count; k++)
            x[k] = from[0][k] + from[1][k];
    } else {
        for (size_t k = 0; k < count; k++) {
            float terms[MAX_SIZE];

            for (int i = 0; i < group->size; i++)
                terms[i] = from[i][k];
            x[k] = backend_tree_sum(terms, group->size);
        }
    }
    done(group);
}

static enum status shared_sum(struct group *group, float *x, size_t count)
{
    const struct shared *shared = group->state;
    size_t part = shared->buffer / sizeof *x;

    for (size_t at = 0; at < count; at += part)
        sum_part(group, x + at, count - at < part ? count - at : part);
    return STATUS_OK;
}

static enum status shared_broadcast(struct group *group, void *bytes, size_t count)
{
    struct shared *shared = group->state;

    for (size_t at = 0; at < count; at += shared->buffer) {
        size_t part = count - at < shared->buffer ? count - at : shared->buffer;

        shared->operation++;
        if (group->rank == 0) {
            give(group, (const char *)bytes + at, part);
        } else {
            await(shared, &shared->box[0]->given, shared->operation);
            memcpy((char *)bytes + at, buffer_of(shared, 0), part);
        }
        done(group);
    }
    return STATUS_OK;
}

static enum status shared_gather(struct group *group, const void *mine, size_t count, void *all)
{
    struct shared *shared = group->state;

    for (size_t at = 0; at < count; at += shared->buffer) {
        size_t part = count - at < shared->buffer ? count - at : shared->buffer;

        shared->operation++;
        if (group->rank == 0)
            memcpy((char *)all + at, (const char *)mine + at, part);
        else
            give(group, (const char *)mine + at, part);
        for (int i = 1; group->rank == 0 && i < group->size; i++) {
            await(shared, &shared->box[i]->given, shared->operation);
            memcpy((char *)all + (size_t)i * count + at, buffer_of(shared, i), part);
        }
        done(group);
    }
    return STATUS_OK;
}

static void shared_close(struct group *group)
{
    struct shared *shared = group->state;

    MPI_Win_free(&shared->window);
    free(shared);
}

static const struct group_kind shared_kind = {
    .name = "shared memory",
    .sum = shared_sum,
    .broadcast = shared_broadcast,
    .gather = shared_gather,
    .close = shared_close,
};

static enum status map_boxes(struct world *world, struct shared *shared, int size)
{
    MPI_Aint bytes = (MPI_Aint)(sizeof(struct box) + 2 * shared->buffer);
    struct box *mine;
    int unit;

    TRY_MPI(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, world->role_comm, &mine, &shared->window));
    memset(mine, 0, sizeof *mine);
    for (int i = 0; i < size; i++)
        TRY_MPI(MPI_Win_shared_query(shared->window, i, &bytes, &unit, &shared->box[i]));
    TRY_MPI(MPI_Allgather(&world->rank, 1, MPI_INT, shared->world_rank, 1, MPI_INT, world->role_comm));
    return STATUS_OK;
}

enum status group_open_shared(struct world *world, size_t largest, struct group *group)
{
    struct shared *shared = calloc(1, sizeof *shared);
    enum status status;
    int rank, size;

    MPI_Comm_rank(world->role_comm, &rank);
    MPI_Comm_size(world->role_comm, &size);
    if (shared == NULL || size > MAX_SIZE) {
        log_error("a group has at most %d ranks on one host, %d asked", MAX_SIZE, size);
        free(shared);
        return STATUS_USAGE;
    }
    shared->world = world;
    shared->buffer = arena_round(largest < LEAST_BUFFER ? LEAST_BUFFER : largest);
    TRY_TO(map_boxes(world, shared, size), free_shared);
    *group = (struct group){.rank = rank, .size = size, .kind = &shared_kind, .state = shared};
    return STATUS_OK;

free_shared:
    free(shared);
    return status;
}
