/* A channel carries frames between the lead and the drafters: point to point, in order from one peer, without blocking. Two kinds
 * behind one table: `mpi` between ranks, and `loop` inside one process (channel_loop.h), where a seed decides what happens to each frame, so
 * that the real loops run under faults without MPI. The frame's content is not looked at here.
 *
 * A peer that does not take its frames must not hold up the sender: when its outbox (CHANNEL_OUTBOX frames) is full, sending says so
 * and the frame is dropped; the caller treats the peer as lost until it hears from it. */
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

/* Point to point. Copies the frame. `*taken` says whether it went into the peer's outbox (a loop that loses it says so, too). A frame
 * that is empty or above message_frame_limit() is a fault of ours: STATUS_INTERNAL. */
enum status channel_send(struct channel *channel, int peer, struct frame frame, int *taken);

/* Point to point. Looks for one frame from anybody: frame->count = 0 when there is none. The bytes live until the next call. An empty
 * frame or one above message_frame_limit() is dropped and reported as *peer with frame->count = 0 and *refused = 1. Never waits: a long
 * frame whose sender stopped in the middle is set aside, and the other peers go on being heard. */
enum status channel_receive(struct channel *channel, int *peer, struct frame *frame, int *refused);

/* Local. Waits until a frame may have come or deadline_ns (clock_ns) has passed: world_wait_begin / _step around channel_receive for
 * mpi; a loop lets its hook pass the time. Returns what channel_receive returned at last. */
enum status channel_wait(struct channel *channel, int64_t deadline_ns, int *peer, struct frame *frame, int *refused);

/* Local. Whether the peer is known to have ended: it will neither take frames nor send any but those that are on their way. */
int channel_is_gone(const struct channel *channel, int peer);

/* Local. Frees outboxes whose frames have gone; returns how many are still on their way to `peer`. */
int channel_pending(struct channel *channel, int peer);

#endif
