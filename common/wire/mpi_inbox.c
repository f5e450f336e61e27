#include "common/wire/mpi_inbox.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/wire/channel.h"
#include <stdlib.h>

/* The buffer's size at open, enough for usual proposals, and the size from which on an invalid frame is not even received. */
enum { INBOX_BYTES = 64 << 10, DRAIN_BYTES = 64 << 20 };

static enum status grow(struct inbox_buffer *buffer, size_t count)
{
    size_t capacity = count > INBOX_BYTES ? count : INBOX_BYTES;

    if (buffer->capacity >= count && buffer->bytes != NULL)
        return STATUS_OK;
    free(buffer->bytes);
    *buffer = (struct inbox_buffer){.bytes = malloc(capacity), .capacity = capacity};
    if (buffer->bytes != NULL)
        return STATUS_OK;
    *buffer = (struct inbox_buffer){0};
    log_error("no memory to receive a frame of %zu bytes", count);
    return STATUS_INTERNAL;
}

enum status mpi_inbox_open(MPI_Comm comm, int peers, struct mpi_inbox *inbox)
{
    struct mpi_inbox opened = {.comm = comm, .peers = peers, .arrival = calloc((size_t)peers, sizeof *opened.arrival)};
    enum status status;

    if (opened.arrival == NULL) {
        log_error("no memory to receive from %d peers", peers);
        return STATUS_INTERNAL;
    }
    TRY_TO(grow(&opened.current, INBOX_BYTES), free_arrival);
    *inbox = opened;
    return STATUS_OK;
free_arrival:
    free(opened.arrival);
    return status;
}

void mpi_inbox_close(struct mpi_inbox *inbox)
{
    free(inbox->current.bytes);
    free(inbox->arrival);
}

/* Hands out the complete frame in `current`. One that is empty or longer than any message is dropped, and its memory is freed. */
static void hand_out(struct mpi_inbox *inbox, int from, size_t count, int *peer, struct frame *frame, int *refused)
{
    *peer = from;
    *refused = count == 0 || count > message_frame_limit();
    if (!*refused)
        *frame = (struct frame){.bytes = inbox->current.bytes, .count = count};
    if (inbox->current.capacity > message_frame_limit()) {
        free(inbox->current.bytes);
        inbox->current = (struct inbox_buffer){0};
    }
}

/* Looks whether an incomplete arrival is complete now. */
static enum status look_at_arrivals(struct mpi_inbox *inbox, int *peer, struct frame *frame, int *refused)
{
    for (int i = 0; i < inbox->peers; i++) {
        int from = (inbox->turn + i) % inbox->peers, whole;
        struct inbox_arrival *arrival = &inbox->arrival[from];

        if (arrival->buffer.bytes == NULL)
            continue;
        TRY_MPI(MPI_Test(&arrival->request, &whole, MPI_STATUS_IGNORE));
        if (!whole)
            continue;
        free(inbox->current.bytes);
        inbox->current = arrival->buffer;
        arrival->buffer = (struct inbox_buffer){0};
        inbox->under_way--;
        inbox->turn = (from + 1) % inbox->peers;
        hand_out(inbox, from, arrival->count, peer, frame, refused);
        return STATUS_OK;
    }
    return STATUS_OK;
}

/* Finds a message of a peer that has no arrival under way. */
static enum status probe(struct mpi_inbox *inbox, int *found, MPI_Message *message, MPI_Status *state)
{
    *found = 0;
    if (inbox->under_way == 0) {
        TRY_MPI(MPI_Improbe(MPI_ANY_SOURCE, CHANNEL_TAG, inbox->comm, found, message, state));
        return STATUS_OK;
    }
    for (int i = 0; i < inbox->peers && !*found; i++) {
        int from = (inbox->turn + i) % inbox->peers;

        if (inbox->arrival[from].buffer.bytes == NULL)
            TRY_MPI(MPI_Improbe(from, CHANNEL_TAG, inbox->comm, found, message, state));
    }
    return STATUS_OK;
}

static enum status accept_message(struct mpi_inbox *inbox, MPI_Message message, MPI_Status *state, int *peer, struct frame *frame,
                                  int *refused)
{
    struct inbox_arrival *arrival = &inbox->arrival[state->MPI_SOURCE];
    MPI_Count count;
    int whole;

    TRY_MPI(MPI_Get_elements_x(state, MPI_BYTE, &count));
    if (count < 0 || count >= DRAIN_BYTES) {
        *peer = state->MPI_SOURCE; /* matched and never received: the memory is its sender's */
        *refused = 1;
        return STATUS_OK;
    }
    TRY(grow(&inbox->current, (size_t)count));
    TRY_MPI(MPI_Imrecv(inbox->current.bytes, (int)count, MPI_BYTE, &message, &arrival->request));
    TRY_MPI(MPI_Test(&arrival->request, &whole, MPI_STATUS_IGNORE));
    if (whole) {
        hand_out(inbox, state->MPI_SOURCE, (size_t)count, peer, frame, refused);
        return STATUS_OK;
    }
    arrival->buffer = inbox->current;
    arrival->count = (size_t)count;
    inbox->current = (struct inbox_buffer){0};
    inbox->under_way++;
    return STATUS_OK;
}

enum status mpi_inbox_receive(struct mpi_inbox *inbox, int *peer, struct frame *frame, int *refused)
{
    MPI_Message message;
    MPI_Status state;
    int found;

    if (inbox->under_way > 0) {
        TRY(look_at_arrivals(inbox, peer, frame, refused));
        if (frame->count > 0 || *refused)
            return STATUS_OK;
    }
    TRY(probe(inbox, &found, &message, &state));
    if (!found)
        return STATUS_OK;
    return accept_message(inbox, message, &state, peer, frame, refused);
}
