/* The calls of any channel: what holds for every kind is checked here, once. */
#include "common/wire/channel_kind.h"

#include "common/base/log.h"
#include <stddef.h>

enum status channel_send(struct channel *channel, int peer, struct frame frame, int *taken)
{
    if (peer < 0 || peer >= channel->peers || frame.count == 0 || frame.count > message_frame_limit()) {
        log_error("internal: a frame of %zu bytes to peer %d of %d cannot be sent", frame.count, peer, channel->peers);
        return STATUS_INTERNAL;
    }
    return channel->kind->send(channel, peer, frame, taken);
}

enum status channel_receive(struct channel *channel, int *peer, struct frame *frame, int *refused)
{
    *peer = -1;
    *frame = (struct frame){0};
    *refused = 0;
    return channel->kind->receive(channel, peer, frame, refused);
}

enum status channel_wait(struct channel *channel, int64_t deadline_ns, int *peer, struct frame *frame, int *refused)
{
    return channel->kind->wait(channel, deadline_ns, peer, frame, refused);
}

int channel_pending(struct channel *channel, int peer)
{
    return peer < 0 || peer >= channel->peers ? 0 : channel->kind->pending(channel, peer);
}

void channel_close(struct channel *channel)
{
    if (channel != NULL)
        channel->kind->close(channel);
}
