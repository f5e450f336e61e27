/* The calls of any channel: what holds for every kind is checked here, once. */
#include "common/wire/channel_kind.h"

#include "common/base/log.h"
#include "common/base/recorder.h"
#include <stddef.h>

/* Texts for the flight recorder, by message type. */
static const char *const sends[] = {
    [0] = "sends rank # what is no message, # bytes",
    [MESSAGE_HELLO] = "sends rank # a Hello, # bytes",
    [MESSAGE_OPEN] = "sends rank # an Open, # bytes",
    [MESSAGE_CLOSE] = "sends rank # a Close, # bytes",
    [MESSAGE_PROPOSAL] = "sends rank # a Proposal, # bytes",
    [MESSAGE_COMMIT] = "sends rank # a Commit, # bytes",
    [MESSAGE_HEARTBEAT] = "sends rank # a Heartbeat, # bytes",
    [MESSAGE_FAILURE] = "sends rank # a Failure, # bytes",
    [MESSAGE_SHUTDOWN] = "sends rank # the Shutdown, # bytes",
    [MESSAGE_DRAIN] = "sends rank # a Drain, # bytes",
};
static const char *const hears[] = {
    [0] = "hears from rank # what is no message, # bytes",
    [MESSAGE_HELLO] = "hears from rank # a Hello, # bytes",
    [MESSAGE_OPEN] = "hears from rank # an Open, # bytes",
    [MESSAGE_CLOSE] = "hears from rank # a Close, # bytes",
    [MESSAGE_PROPOSAL] = "hears from rank # a Proposal, # bytes",
    [MESSAGE_COMMIT] = "hears from rank # a Commit, # bytes",
    [MESSAGE_HEARTBEAT] = "hears from rank # a Heartbeat, # bytes",
    [MESSAGE_FAILURE] = "hears from rank # a Failure, # bytes",
    [MESSAGE_SHUTDOWN] = "hears from rank # the Shutdown, # bytes",
    [MESSAGE_DRAIN] = "hears from rank # a Drain, # bytes",
};

static size_t type_of(struct frame frame)
{
    int type = message_type(frame);

    return type > 0 && type < (int)(sizeof sends / sizeof *sends) && sends[type] != NULL ? (size_t)type : 0;
}

enum status channel_send(struct channel *channel, int peer, struct frame frame, int *taken)
{
    if (peer < 0 || peer >= channel->peers || frame.count == 0 || frame.count > message_frame_limit()) {
        log_error("internal: a frame of %zu bytes to peer %d of %d cannot be sent", frame.count, peer, channel->peers);
        return STATUS_INTERNAL;
    }
    *taken = 0;
    enum status status = channel->kind->send(channel, peer, frame, taken);
    recorder_note(*taken ? sends[type_of(frame)] : "sends nothing to rank #: its outbox is full", peer, (int64_t)frame.count, 0);
    return status;
}

enum status channel_receive(struct channel *channel, int *peer, struct frame *frame, int *refused)
{
    *peer = -1;
    *frame = (struct frame){0};
    *refused = 0;
    enum status status = channel->kind->receive(channel, peer, frame, refused);
    if (frame->count > 0 || *refused)
        recorder_note(hears[type_of(*frame)], *peer, (int64_t)frame->count, 0);
    return status;
}

enum status channel_wait(struct channel *channel, int64_t deadline_ns, int *peer, struct frame *frame, int *refused)
{
    return channel->kind->wait(channel, deadline_ns, peer, frame, refused);
}

int channel_is_gone(const struct channel *channel, int peer)
{
    return channel->kind->is_gone != NULL && channel->kind->is_gone(channel, peer);
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
