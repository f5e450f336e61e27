#include "common/group/group.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <string.h>

/* Hundreds of ranks that start together may take a minute; NCCL's own patience with a network ends about here, too. */
enum { NCCL_PATIENCE_S = 120 };

enum status group_meet(struct world *world, enum status status)
{
    int mine = (int)status, worst = 0;

    TRY(world_meet(world, world->role_comm));
    TRY_MPI(MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, world->role_comm));
    return status == STATUS_OK && worst != STATUS_OK ? STATUS_ELSEWHERE : status;
}

enum status group_open_team(struct world *world, size_t largest, struct group *group)
{
    int size, on_host = 0;

    TRY_MPI(MPI_Comm_size(world->role_comm, &size));
    if (size == 1) {
        group_open_self(group);
        return STATUS_OK;
    }
    MPI_Comm host;
    TRY(world_meet(world, world->role_comm));
    TRY_MPI(MPI_Comm_split_type(world->role_comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    int code = MPI_Comm_size(host, &on_host);
    MPI_Comm_free(&host);
    TRY_MPI(code);
    /* Every rank sees its own host's share, and all must take the same way. */
    int mine = on_host == size, all = 0;
    TRY_MPI(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, world->role_comm));
    return all ? group_open_shared(world, largest, group) : group_open_mpi(world, largest, group);
}

/* A rank that computes on its host's CPU would leave those with devices waiting for it in NCCL. */
static enum status compute_alike(struct world *world, const struct backend *backend, struct group *group)
{
    struct place {
        int rank, on_device;
        char host[WORLD_HOST_BYTES];
    } mine = {.rank = world->rank, .on_device = backend->device.which != NULL}, all[WORLD_MAX_RANKS];
    enum status status = STATUS_OK;

    memcpy(mine.host, world->host, sizeof mine.host);
    TRY(group_gather(group, &mine, sizeof mine, all));
    for (int i = 1; group->rank == 0 && status == STATUS_OK && i < group->size; i++)
        if (all[i].on_device != mine.on_device) {
            const struct place *device = mine.on_device ? &mine : &all[i], *host = mine.on_device ? &all[i] : &mine;

            log_error("rank %d on host %s has a device and rank %d on host %s computes on the CPU, expected all verifiers on devices (--backend cuda "
                      "says what is missing there) or all on CPUs (--backend cpu)",
                      device->rank, device->host, host->rank, host->host);
            status = STATUS_USAGE;
        }
    return group_agree(group, status);
}

enum status group_attach(struct world *world, const struct backend *backend, struct backend_context *context, size_t largest,
                         enum group_sums sums, struct group *group)
{
    if (group->size == 1)
        return STATUS_OK;
    TRY(compute_alike(world, backend, group));
    if (backend->device.which == NULL)
        return STATUS_OK;
    return group_open_nccl(world, backend, context, largest, NCCL_PATIENCE_S, sums, group);
}

void group_close(struct group *group)
{
    if (group->kind != NULL)
        group->kind->close(group);
    *group = (struct group){0};
}

enum status group_sum(struct group *group, float *x, size_t count)
{
    return group->kind->sum(group, x, count);
}

int group_sums_alone(const struct group *group, size_t count)
{
    return group->kind->sums_alone != NULL && group->kind->sums_alone(group, count);
}

enum status group_add(struct group *group, float *x, const float *partial, size_t count)
{
    return group->kind->add(group, x, partial, count);
}

enum status group_broadcast(struct group *group, void *bytes, size_t count)
{
    return group->kind->broadcast(group, bytes, count);
}

enum status group_gather(struct group *group, const void *mine, size_t count, void *all)
{
    return group->kind->gather(group, mine, count, all);
}

enum status group_agree(struct group *group, enum status status)
{
    int mine = (int)status, worst = 0, all[WORLD_MAX_RANKS];

    TRY(group_gather(group, &mine, sizeof mine, all));
    for (int i = 0; group->rank == 0 && i < group->size; i++)
        worst = all[i] > worst ? all[i] : worst;
    TRY(group_broadcast(group, &worst, sizeof worst));
    return status == STATUS_OK && worst != STATUS_OK ? STATUS_ELSEWHERE : status;
}

enum status group_settle(struct group *group)
{
    return group->kind->settle != NULL ? group->kind->settle(group) : STATUS_OK;
}

void *group_buffer(const struct group *group, size_t bytes)
{
    return group->kind->buffer != NULL ? group->kind->buffer(group, bytes) : NULL;
}

const char *group_describe(const struct group *group)
{
    return group->kind->describe != NULL ? group->kind->describe(group) : group->kind->name;
}
