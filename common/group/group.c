#include "common/group/group.h"

#include "common/base/check.h"

enum status group_open_team(struct world *world, size_t largest, struct group *group)
{
    int size, on_host = 0;

    TRY_MPI(MPI_Comm_size(world->team, &size));
    if (size == 1) {
        group_open_self(group);
        return STATUS_OK;
    }
    MPI_Comm host;
    TRY_MPI(MPI_Comm_split_type(world->team, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    int code = MPI_Comm_size(host, &on_host);
    MPI_Comm_free(&host);
    TRY_MPI(code);
    /* Every rank sees its own host's share, and all must take the same way. */
    int mine = on_host == size, all = 0;
    TRY_MPI(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, world->team));
    return all ? group_open_shared(world, largest, group) : group_open_mpi(world, largest, group);
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

enum status group_broadcast(struct group *group, void *bytes, size_t count)
{
    return group->kind->broadcast(group, bytes, count);
}

enum status group_gather(struct group *group, const void *mine, size_t count, void *all)
{
    return group->kind->gather(group, mine, count, all);
}
