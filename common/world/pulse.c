#include "common/world/pulse.h"

#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "common/world/doorbells.h"
#include <stdlib.h>

enum { PULSE_TAG = 1 };

struct pulse {
    MPI_Comm comm;
    int is_ear;
    int ears; /* of other hosts */
    struct sent {
        int rank;
        MPI_Request request;
    } to[]; /* [ears] */
};

/* The host's lowest verifier, or its lowest rank. */
static enum status choose_ear(const struct world *world, int *ear)
{
    int mine = world->role == ROLE_VERIFIER ? world->rank : world->size + world->rank;

    TRY_MPI(MPI_Allreduce(&mine, ear, 1, MPI_INT, MPI_MIN, world->node));
    *ear %= world->size;
    return STATUS_OK;
}

static void add_ear(struct pulse *pulse, int ear)
{
    for (int i = 0; i < pulse->ears; i++)
        if (pulse->to[i].rank == ear)
            return;
    pulse->to[pulse->ears++] = (struct sent){.rank = ear, .request = MPI_REQUEST_NULL};
}

/* ear: [size] of each rank's host */
static enum status find_ears(struct world *world, struct pulse *pulse, int *ear)
{
    int own;

    TRY(choose_ear(world, &own));
    TRY_MPI(MPI_Allgather(&own, 1, MPI_INT, ear, 1, MPI_INT, world->wire));
    pulse->is_ear = own == world->rank;
    for (int i = 0; i < world->size; i++)
        if (ear[i] != own)
            add_ear(pulse, ear[i]);
    TRY_MPI(MPI_Comm_dup(world->wire, &pulse->comm));
    return STATUS_OK;
}

/* A pulse that cannot be sent is lost; a rank that waits for it is ended by its own deadline. */
static void tell(void *state)
{
    const struct world *world = state;
    struct pulse *pulse = world->pulse;

    for (int i = 0; i < pulse->ears; i++) {
        int arrived = 0;

        if (MPI_Test(&pulse->to[i].request, &arrived, MPI_STATUS_IGNORE) == MPI_SUCCESS && arrived)
            (void)MPI_Isend(NULL, 0, MPI_BYTE, pulse->to[i].rank, PULSE_TAG, pulse->comm, &pulse->to[i].request);
    }
    pulse_listen(world);
}

enum status pulse_open(struct world *world)
{
    struct pulse *pulse;
    enum status status;
    int *ear;

    if (!world->spread)
        return STATUS_OK;
    pulse = calloc(1, sizeof *pulse + (size_t)world->size * sizeof *pulse->to);
    ear = calloc((size_t)world->size, sizeof *ear);
    if (pulse == NULL || ear == NULL) {
        log_error("no memory for the pulses of %d ranks", world->size);
        status = STATUS_INTERNAL;
    } else {
        status = find_ears(world, pulse, ear);
    }
    free(ear);
    if (status != STATUS_OK) {
        free(pulse);
        return status;
    }
    world->pulse = pulse;
    progress_tell(tell, world);
    return STATUS_OK;
}

void pulse_close(struct world *world)
{
    struct pulse *pulse = world->pulse;

    if (pulse == NULL)
        return;
    progress_tell(NULL, NULL);
    pulse_listen(world);
    for (int i = 0; i < pulse->ears; i++)
        if (pulse->to[i].request != MPI_REQUEST_NULL)
            MPI_Request_free(&pulse->to[i].request);
    MPI_Comm_free(&pulse->comm);
    free(pulse);
    world->pulse = NULL;
}

void pulse_listen(const struct world *world)
{
    const struct pulse *pulse = world->pulse;
    int came;

    while (pulse != NULL && pulse->is_ear) {
        MPI_Message message;

        if (MPI_Improbe(MPI_ANY_SOURCE, PULSE_TAG, pulse->comm, &came, &message, MPI_STATUS_IGNORE) != MPI_SUCCESS || !came)
            return;
        if (MPI_Mrecv(NULL, 0, MPI_BYTE, &message, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return;
        atomic_fetch_add(&world->doorbells->first->afar, 1);
    }
}
