#include "common/wire/mpi_outbox.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/wire/channel.h"
#include <stdlib.h>
#include <string.h>

_Static_assert(CHANNEL_OUTBOX == 64, "one bit of `busy` for each slot");

enum status mpi_outbox_open(int peers, struct mpi_outbox *outbox)
{
    size_t slots = (size_t)peers * CHANNEL_OUTBOX;
    size_t bytes = arena_round((size_t)peers * sizeof *outbox->busy) + arena_round(slots * sizeof *outbox->request) +
                   arena_round(slots * sizeof *outbox->large) + slots * OUTBOX_SLOT_BYTES;
    struct mpi_outbox opened = {.peers = peers};

    TRY(arena_open(&opened.arena, bytes, "the frames to be sent"));
    opened.busy = arena_take(&opened.arena, (size_t)peers * sizeof *opened.busy);
    opened.request = arena_take(&opened.arena, slots * sizeof(MPI_Request));
    opened.large = arena_take(&opened.arena, slots * sizeof *opened.large);
    opened.slots = arena_take(&opened.arena, slots * OUTBOX_SLOT_BYTES);
    *outbox = opened;
    return STATUS_OK;
}

void mpi_outbox_close(struct mpi_outbox *outbox)
{
    if (mpi_outbox_is_empty(outbox)) /* after an error, which is logged there, it is not */
        arena_close(&outbox->arena);
}

enum status mpi_outbox_reap(struct mpi_outbox *outbox, int peer)
{
    for (uint64_t rest = outbox->busy[peer]; rest != 0; rest &= rest - 1) {
        int bit = __builtin_ctzll(rest), gone;
        size_t slot = (size_t)peer * CHANNEL_OUTBOX + (size_t)bit;

        TRY_MPI(MPI_Test(&outbox->request[slot], &gone, MPI_STATUS_IGNORE));
        if (!gone)
            continue;
        free(outbox->large[slot]);
        outbox->large[slot] = NULL;
        outbox->busy[peer] &= ~(UINT64_C(1) << bit);
    }
    return STATUS_OK;
}

int mpi_outbox_count(const struct mpi_outbox *outbox, int peer)
{
    return __builtin_popcountll(outbox->busy[peer]);
}

int mpi_outbox_is_empty(struct mpi_outbox *outbox)
{
    uint64_t left = 0;

    for (int peer = 0; peer < outbox->peers; peer++) {
        (void)mpi_outbox_reap(outbox, peer);
        left |= outbox->busy[peer];
    }
    return left == 0;
}

/* The bytes that slot `bit` of the peer sends from; NULL when there is no memory for a large frame. */
static unsigned char *buffer_of(struct mpi_outbox *outbox, int peer, int bit, size_t count)
{
    size_t slot = (size_t)peer * CHANNEL_OUTBOX + (size_t)bit;

    if (count <= OUTBOX_SLOT_BYTES)
        return outbox->slots + ((size_t)bit * (size_t)outbox->peers + (size_t)peer) * OUTBOX_SLOT_BYTES;
    outbox->large[slot] = malloc(count);
    if (outbox->large[slot] == NULL)
        log_error("no memory for a frame of %zu bytes", count);
    return outbox->large[slot];
}

enum status mpi_outbox_send(struct mpi_outbox *outbox, MPI_Comm comm, int peer, struct frame frame, int *taken)
{
    unsigned char *bytes;
    size_t slot;
    int bit;

    TRY(mpi_outbox_reap(outbox, peer));
    if (outbox->busy[peer] == UINT64_MAX) {
        *taken = 0;
        return STATUS_OK;
    }
    bit = __builtin_ctzll(~outbox->busy[peer]);
    slot = (size_t)peer * CHANNEL_OUTBOX + (size_t)bit;
    bytes = buffer_of(outbox, peer, bit, frame.count);
    if (bytes == NULL)
        return STATUS_INTERNAL;
    memcpy(bytes, frame.bytes, frame.count);
    int code = MPI_Isend(bytes, (int)frame.count, MPI_BYTE, peer, CHANNEL_TAG, comm, &outbox->request[slot]);
    if (code != MPI_SUCCESS) {
        free(outbox->large[slot]);
        outbox->large[slot] = NULL;
        return world_mpi_failed("MPI_Isend", __FILE__, __LINE__, code);
    }
    outbox->busy[peer] |= UINT64_C(1) << bit;
    *taken = 1;
    return STATUS_OK;
}
