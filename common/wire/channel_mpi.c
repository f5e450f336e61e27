/* The channel between ranks: one communicator, one tag, an outbox and an inbox, and the doorbell after each send. */
#include "common/wire/channel_kind.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/wire/mpi_inbox.h"
#include "common/wire/mpi_outbox.h"
#include <stdlib.h>

struct mpi_channel {
    struct channel channel;
    struct world *world;
    struct mpi_outbox outbox;
    struct mpi_inbox inbox;
    struct wait_usual usual; /* waits for a frame */
};

static enum status send_frame(struct channel *channel, int peer, struct frame frame, int *taken)
{
    struct mpi_channel *mpi = (struct mpi_channel *)channel;

    TRY(mpi_outbox_send(&mpi->outbox, mpi->world->wire, peer, frame, taken));
    if (*taken)
        world_ring(mpi->world, peer);
    return STATUS_OK;
}

static enum status receive(struct channel *channel, int *peer, struct frame *frame, int *refused)
{
    return mpi_inbox_receive(&((struct mpi_channel *)channel)->inbox, peer, frame, refused);
}

static enum status wait_for_frame(struct channel *channel, int64_t deadline_ns, int *peer, struct frame *frame, int *refused)
{
    struct mpi_channel *mpi = (struct mpi_channel *)channel;
    struct wait wait;

    world_wait_begin_usual(mpi->world, &wait, &mpi->usual);
    for (;;) {
        TRY(channel_receive(channel, peer, frame, refused));
        if (frame->count > 0)
            world_wait_end(&wait, clock_ns());
        if (frame->count > 0 || *refused || clock_ns() >= deadline_ns)
            return STATUS_OK;
        wait.settled = wait.naps > 0 && mpi->inbox.under_way == 0 && mpi_outbox_is_empty(&mpi->outbox);
        world_wait_step(mpi->world, &wait, deadline_ns);
    }
}

static int pending(struct channel *channel, int peer)
{
    struct mpi_outbox *outbox = &((struct mpi_channel *)channel)->outbox;

    (void)mpi_outbox_reap(outbox, peer); /* an error is logged there; such frames count as on their way */
    return mpi_outbox_count(outbox, peer);
}

static int is_gone(const struct channel *channel, int peer)
{
    return world_is_gone(((const struct mpi_channel *)channel)->world, peer);
}

static void close_mpi(struct channel *channel)
{
    struct mpi_channel *mpi = (struct mpi_channel *)channel;

    mpi_outbox_close(&mpi->outbox);
    mpi_inbox_close(&mpi->inbox);
    free(mpi);
}

enum status channel_open_mpi(struct world *world, struct channel **channel)
{
    static const struct channel_kind kind = {
        .send = send_frame, .receive = receive, .wait = wait_for_frame, .pending = pending, .is_gone = is_gone, .close = close_mpi};
    struct mpi_channel *opened = calloc(1, sizeof *opened);
    enum status status;

    if (opened == NULL) {
        log_error("no memory for a channel");
        return STATUS_INTERNAL;
    }
    opened->channel = (struct channel){.kind = &kind, .peers = world->size};
    opened->world = world;
    TRY_TO(mpi_outbox_open(world->size, &opened->outbox), free_opened);
    TRY_TO(mpi_inbox_open(world->wire, world->size, &opened->inbox), close_outbox);
    *channel = &opened->channel;
    return STATUS_OK;
close_outbox:
    mpi_outbox_close(&opened->outbox);
free_opened:
    free(opened);
    return status;
}
