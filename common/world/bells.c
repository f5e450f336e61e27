#include "common/world/bells.h"

#include "common/base/log.h"
#include "common/base/progress.h"
#include <stdlib.h>
#include <string.h>

/* world_rank: [node_size] */
static enum status allocate(struct world *world, struct bells *bells, int *world_rank)
{
    MPI_Aint size;
    int unit;

    TRY_MPI(MPI_Win_allocate_shared(sizeof(struct bell), 1, MPI_INFO_NULL, world->node, &bells->mine, &bells->window));
    memset(bells->mine, 0, sizeof *bells->mine);
    TRY_MPI(MPI_Allgather(&world->rank, 1, MPI_INT, world_rank, 1, MPI_INT, world->node));
    for (int i = 0; i < world->node_size; i++)
        TRY_MPI(MPI_Win_shared_query(bells->window, i, &size, &unit, &bells->of[world_rank[i]]));
    bells->first = bells->of[world_rank[0]];
    return STATUS_OK;
}

enum status bells_open(struct world *world)
{
    struct bells *bells = calloc(1, sizeof *bells);
    int *world_rank = malloc((size_t)world->node_size * sizeof *world_rank);
    enum status status = STATUS_INTERNAL;

    if (bells == NULL || world_rank == NULL)
        log_error("no memory for %d bells", world->node_size);
    else
        status = allocate(world, bells, world_rank);
    free(world_rank);
    if (status != STATUS_OK) {
        free(bells);
        return status;
    }
    world->bells = bells;
    progress_publish(&bells->mine->made);
    return STATUS_OK;
}

void bells_close(struct world *world)
{
    progress_publish(NULL);
    MPI_Win_free(&world->bells->window);
    free(world->bells);
    world->bells = NULL;
}
