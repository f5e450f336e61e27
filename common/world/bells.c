#include "common/world/bells.h"

#include "common/base/log.h"
#include <stdlib.h>
#include <string.h>

static enum status allocate(struct world *world, struct bells *bells)
{
    MPI_Aint size;
    int unit;
    int *world_rank = malloc((size_t)world->node_size * sizeof *world_rank);

    if (world_rank == NULL) {
        log_error("no memory for %d bells", world->node_size);
        return STATUS_INTERNAL;
    }
    int code = MPI_Win_allocate_shared(sizeof(struct bell), 1, MPI_INFO_NULL, world->node, &bells->mine, &bells->window);
    if (code == MPI_SUCCESS) {
        memset(bells->mine, 0, sizeof *bells->mine);
        code = MPI_Allgather(&world->rank, 1, MPI_INT, world_rank, 1, MPI_INT, world->node);
    }
    for (int i = 0; code == MPI_SUCCESS && i < world->node_size; i++)
        code = MPI_Win_shared_query(bells->window, i, &size, &unit, &bells->of[world_rank[i]]);
    free(world_rank);
    TRY_MPI(code);
    return STATUS_OK;
}

enum status bells_open(struct world *world)
{
    struct bells *bells = calloc(1, sizeof *bells);
    enum status status;

    if (bells == NULL) {
        log_error("no memory for the bells");
        return STATUS_INTERNAL;
    }
    status = allocate(world, bells);
    if (status != STATUS_OK) {
        free(bells);
        return status;
    }
    world->bells = bells;
    return STATUS_OK;
}

void bells_close(struct world *world)
{
    MPI_Win_free(&world->bells->window);
    free(world->bells);
    world->bells = NULL;
}
