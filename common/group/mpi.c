/* Ranks of several hosts: MPI's non-blocking collectives, tested until done, so that waiting never spins for long and never blocks
 * inside the library. Sums gather every rank's part and add them here by the fixed tree: MPI promises no order of its own. */
#include "common/group/group.h"

#include "common/backend/backend.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct mpi {
    const struct world *world;
    size_t part;     /* bytes of one operation */
    float *gathered; /* [size][part / 4] */
    MPI_Comm comm;
};

static enum status sum_part(struct group *group, float *x, size_t count)
{
    struct mpi *mpi = group->state;
    MPI_Request request;
    float terms[WORLD_MAX_RANKS];

    TRY_MPI(MPI_Iallgather(x, (int)count, MPI_FLOAT, mpi->gathered, (int)count, MPI_FLOAT, mpi->comm, &request));
    world_await(mpi->world, &request);
    for (size_t k = 0; k < count; k++) {
        for (int i = 0; i < group->size; i++)
            terms[i] = mpi->gathered[(size_t)i * count + k];
        x[k] = backend_tree_sum(terms, group->size);
    }
    return STATUS_OK;
}

static enum status mpi_sum(struct group *group, float *x, size_t count)
{
    const struct mpi *mpi = group->state;
    size_t part = mpi->part / sizeof *x;

    for (size_t at = 0; at < count; at += part)
        TRY(sum_part(group, x + at, count - at < part ? count - at : part));
    return STATUS_OK;
}

static enum status mpi_broadcast(struct group *group, void *bytes, size_t count)
{
    struct mpi *mpi = group->state;
    MPI_Request request;

    for (size_t at = 0; at < count; at += mpi->part) {
        size_t part = count - at < mpi->part ? count - at : mpi->part;

        TRY_MPI(MPI_Ibcast((char *)bytes + at, (int)part, MPI_BYTE, 0, mpi->comm, &request));
        world_await(mpi->world, &request);
    }
    return STATUS_OK;
}

static enum status mpi_gather(struct group *group, const void *mine, size_t count, void *all)
{
    struct mpi *mpi = group->state;
    MPI_Request request;

    for (size_t at = 0; at < count; at += mpi->part) {
        size_t part = count - at < mpi->part ? count - at : mpi->part;

        TRY_MPI(MPI_Igather((const char *)mine + at, (int)part, MPI_BYTE, mpi->gathered, (int)part, MPI_BYTE, 0, mpi->comm, &request));
        world_await(mpi->world, &request);
        for (int i = 0; group->rank == 0 && i < group->size; i++)
            memcpy((char *)all + (size_t)i * count + at, (char *)mpi->gathered + (size_t)i * part, part);
    }
    return STATUS_OK;
}

static void mpi_close(struct group *group)
{
    struct mpi *mpi = group->state;

    MPI_Comm_free(&mpi->comm);
    free(mpi->gathered);
    free(mpi);
}

static const struct group_kind mpi_kind = {
    .name = "mpi",
    .sum = mpi_sum,
    .broadcast = mpi_broadcast,
    .gather = mpi_gather,
    .close = mpi_close,
};

enum status group_open_mpi(struct world *world, size_t largest, struct group *group)
{
    struct mpi *mpi = calloc(1, sizeof *mpi);
    int rank, size;

    MPI_Comm_rank(world->role_comm, &rank);
    MPI_Comm_size(world->role_comm, &size);
    if (mpi != NULL) {
        mpi->world = world;
        mpi->part = arena_round(largest < 4096 ? 4096 : largest > INT_MAX / 2 ? INT_MAX / 2 : largest);
        mpi->gathered = malloc((size_t)size * mpi->part);
    }
    if (mpi == NULL || mpi->gathered == NULL) {
        free(mpi);
        log_error("no memory for a group of %d ranks", size);
        return STATUS_INTERNAL;
    }
    int code = MPI_Comm_dup(world->role_comm, &mpi->comm);
    if (code != MPI_SUCCESS) {
        free(mpi->gathered);
        free(mpi);
        TRY_MPI(code);
    }
    *group = (struct group){.rank = rank, .size = size, .kind = &mpi_kind, .state = mpi};
    return STATUS_OK;
}
