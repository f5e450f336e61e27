#include "common/world/doorbells.h"

#include "common/base/log.h"
#include "common/base/progress.h"
#include <stdlib.h>
#include <string.h>

/* world_rank: [node_size] */
static enum status allocate(struct world *world, struct doorbells *doorbells, int *world_rank)
{
    MPI_Aint size;
    int unit;

    TRY_MPI(MPI_Win_allocate_shared(sizeof(struct doorbell), 1, MPI_INFO_NULL, world->node, &doorbells->mine, &doorbells->window));
    memset(doorbells->mine, 0, sizeof *doorbells->mine);
    TRY_MPI(MPI_Allgather(&world->rank, 1, MPI_INT, world_rank, 1, MPI_INT, world->node));
    for (int i = 0; i < world->node_size; i++)
        TRY_MPI(MPI_Win_shared_query(doorbells->window, i, &size, &unit, &doorbells->of[world_rank[i]]));
    doorbells->first = doorbells->of[world_rank[0]];
    return STATUS_OK;
}

enum status doorbells_open(struct world *world)
{
    struct doorbells *doorbells = calloc(1, sizeof *doorbells);
    int *world_rank = malloc((size_t)world->node_size * sizeof *world_rank);
    enum status status = STATUS_INTERNAL;

    if (doorbells == NULL || world_rank == NULL)
        log_error("no memory for %d doorbells", world->node_size);
    else
        status = allocate(world, doorbells, world_rank);
    free(world_rank);
    if (status != STATUS_OK) {
        free(doorbells);
        return status;
    }
    world->doorbells = doorbells;
    progress_publish(&doorbells->mine->made);
    return STATUS_OK;
}

void doorbells_close(struct world *world)
{
    progress_publish(NULL);
    MPI_Win_free(&world->doorbells->window);
    free(world->doorbells);
    world->doorbells = NULL;
}
