/* An MPI outbox owns frames on their way out: CHANNEL_OUTBOX slots for each peer, each with an MPI request and a buffer of its own. Invariant: a
 * buffer is not touched until MPI has sent it. A send never waits: without a free slot the frame is not taken. The channel's thread alone calls; only
 * a frame larger than a slot allocates. Used inside common/wire only. */
#ifndef TANDEM_COMMON_WIRE_MPI_OUTBOX_H
#define TANDEM_COMMON_WIRE_MPI_OUTBOX_H

#include "common/base/arena.h"
#include "common/wire/message.h"
#include <mpi.h>

/* Holds a proposal of K = 8 with a support of 256. A larger frame (a long prompt) gets a buffer of its own. */
enum { OUTBOX_SLOT_BYTES = 16 << 10 };

struct mpi_outbox {
    struct arena arena;
    int peers;
    uint64_t *busy;        /* [peers] bit i: slot i is on its way */
    MPI_Request *request;  /* [peers][CHANNEL_OUTBOX] */
    unsigned char **large; /* [peers][CHANNEL_OUTBOX] the buffer of a large frame, or NULL */
    /* [CHANNEL_OUTBOX][peers][OUTBOX_SLOT_BYTES]: the slots numbered 0, which are nearly all that is used, lie together, so that an
     * outbox for a thousand peers touches few pages. */
    unsigned char *slots;
};

enum status mpi_outbox_open(int peers, struct mpi_outbox *outbox);
/* Frees everything but buffers of frames that MPI has not sent: these stay allocated until the process ends. */
void mpi_outbox_close(struct mpi_outbox *outbox);

/* Point to point, never blocks. *taken = 0 when all of the peer's slots are in use. */
enum status mpi_outbox_send(struct mpi_outbox *outbox, MPI_Comm comm, int peer, struct frame frame, int *taken);
/* Local. Frees the peer's slots whose frames MPI has sent. */
enum status mpi_outbox_reap(struct mpi_outbox *outbox, int peer);
/* Local. Has MPI sent every frame? An error counts as a frame on its way. */
int mpi_outbox_is_empty(struct mpi_outbox *outbox);
/* Local. The peer's slots in use, as of the last reap. */
int mpi_outbox_count(const struct mpi_outbox *outbox, int peer);

#endif
