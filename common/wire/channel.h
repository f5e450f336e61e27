/* A channel carries frames between the lead and the drafters. It owns the frames on their way, in an outbox of CHANNEL_OUTBOX frames per peer.
 * Invariant: one peer's frames come in order (a loop can be told otherwise), and a peer that takes none never holds up the sender: when its outbox is
 * full the frame is dropped, and the caller treats the peer as lost until it hears from it. Two kinds: `mpi` between ranks, `loop` inside one process
 * (channel_loop.h), where a seed decides each frame's faults. One thread per channel; point to point; only channel_wait waits. A frame's content is
 * never looked at. */
#ifndef TANDEM_COMMON_WIRE_CHANNEL_H
#define TANDEM_COMMON_WIRE_CHANNEL_H

#include "common/base/status.h"
#include "common/wire/message.h"
#include "common/world/world.h"

enum { CHANNEL_OUTBOX = 64, CHANNEL_TAG = 1 /* the one tag on world->wire */ };

struct channel;

/* Over world->wire. Collective over all ranks in that every rank opens one; no communication happens. */
enum status channel_open_mpi(struct world *world, struct channel **channel);

/* Local. Never waits: frames that have not gone are left to MPI. NULL is allowed. */
void channel_close(struct channel *channel);

/* Point to point. Copies the frame. *taken: 1 when it went into the peer's outbox (also where a loop loses it later). An empty frame, or one above
 * message_frame_limit(), is an error of this program: STATUS_INTERNAL. */
enum status channel_send(struct channel *channel, int peer, struct frame frame, int *taken);

/* Point to point. Looks for one frame from anybody: frame->count = 0 when there is none. The bytes live until the next call. An empty
 * frame or one above message_frame_limit() is dropped and reported as *peer with frame->count = 0 and *refused = 1. Never waits: a long
 * frame whose sender stopped in the middle is set aside, and the other peers go on being heard. */
enum status channel_receive(struct channel *channel, int *peer, struct frame *frame, int *refused);

/* Local. Waits until a frame has come or deadline_ns (clock_ns) has passed: by world_wait_begin and world_wait_step for mpi; a loop calls its hook to
 * advance the clock. Returns what the last channel_receive returned. */
enum status channel_wait(struct channel *channel, int64_t deadline_ns, int *peer, struct frame *frame, int *refused);

/* Local. Is the peer known to have ended? Frames of it that are on their way may still come. */
int channel_is_gone(const struct channel *channel, int peer);

/* Local. Frees outboxes whose frames have gone; returns how many are still on their way to `peer`. */
int channel_pending(struct channel *channel, int peer);

#endif
