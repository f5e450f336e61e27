/* An MPI inbox owns frames coming in: the newest one handed out, and those still arriving. A frame is probed first and received into a buffer that is
 * large enough (Open MPI 4.1 overruns a small one before it reports an error). A long frame's content comes only while its sender calls MPI, so an
 * incomplete arrival is set aside, and its peer is not probed meanwhile, which keeps its order; other peers are still served. The channel's thread
 * alone calls; never blocks, and keeps no frame that is longer than a message may be. Used inside common/wire only. */
#ifndef TANDEM_COMMON_WIRE_MPI_INBOX_H
#define TANDEM_COMMON_WIRE_MPI_INBOX_H

#include "common/wire/message.h"
#include <mpi.h>

struct inbox_buffer {
    unsigned char *bytes;
    size_t capacity;
};

/* A frame whose content is on its way; `buffer.bytes` is NULL when there is none. */
struct inbox_arrival {
    MPI_Request request;
    struct inbox_buffer buffer;
    size_t count;
};

struct mpi_inbox {
    MPI_Comm comm;
    int peers;
    struct inbox_arrival *arrival; /* [peers] */
    int under_way;                 /* number of arrivals that are incomplete */
    int turn;                      /* peer to look at first while arrivals are incomplete */
    struct inbox_buffer current;   /* holds the frame handed out last */
};

enum status mpi_inbox_open(MPI_Comm comm, int peers, struct mpi_inbox *inbox);
/* Never waits: buffers of incomplete arrivals are left to MPI. */
void mpi_inbox_close(struct mpi_inbox *inbox);
/* Point to point, never blocks: as channel_receive. */
enum status mpi_inbox_receive(struct mpi_inbox *inbox, int *peer, struct frame *frame, int *refused);

#endif
