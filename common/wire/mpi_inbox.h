/* Frames coming in over MPI. A frame is probed first and received into a buffer that holds it (Open MPI 4.1 writes past a buffer that
 * is too small before it says so). The content of a long frame comes only as its sender calls MPI, and the sender may have stopped in
 * the middle: so nothing here waits for content. An arrival that is not complete at once is set aside, and the other peers go on being
 * heard; its own peer is not probed meanwhile, which keeps the order. Used inside common/wire only. */
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
    int under_way;                 /* how many of them are */
    int turn;                      /* peer that is looked at first while some are under way */
    struct inbox_buffer current;   /* holds the frame handed out last */
};

enum status mpi_inbox_open(MPI_Comm comm, int peers, struct mpi_inbox *inbox);
/* Never waits: buffers of arrivals under way are left to MPI. */
void mpi_inbox_close(struct mpi_inbox *inbox);
/* Point to point, never blocks: as channel_receive. */
enum status mpi_inbox_receive(struct mpi_inbox *inbox, int *peer, struct frame *frame, int *refused);

#endif
