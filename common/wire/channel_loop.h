/* Channels inside one process, for tests: the real loops of both roles run on them, and a seed decides what happens to each frame. The time
 * is clock_ns, which such a test pretends (clock.h), so a run repeats exactly. */
#ifndef TANDEM_COMMON_WIRE_CHANNEL_LOOP_H
#define TANDEM_COMMON_WIRE_CHANNEL_LOOP_H

#include "common/wire/channel.h"

/* Probabilities in [0, 1) by frame; delays are uniform up to delay_us, and the frames of a pair keep their order whatever their delays. */
struct loop_faults {
    uint64_t seed;
    double lose;
    double repeat;
    double reorder;  /* the frame overtakes the one before it */
    double corrupt;  /* one bit flips */
    double truncate; /* its end is cut off, perhaps all of it */
    int64_t delay_us;
    int outbox; /* frames that an outbox holds; 0: CHANNEL_OUTBOX */
};

enum loop_fate { LOOP_SENT, LOOP_LOST, LOOP_REPEATED, LOOP_OVERTOOK, LOOP_CORRUPTED, LOOP_TRUNCATED, LOOP_FULL, LOOP_RECEIVED, LOOP_FATES };

/* All optional. */
struct loop_hooks {
    void *user;
    /* Called where an end waits: advances the clock until a frame for it is due or the deadline has come. NULL: waits return at once. */
    void (*wait)(void *user, int end, int64_t deadline_ns);
    /* Reports what happens to each frame, in order: LOOP_SENT with the frame as it was given, then its faults, and LOOP_RECEIVED when it is
     * received. */
    void (*note)(void *user, enum loop_fate fate, int from, int to, struct frame frame);
};

/* `ends` channels that reach each other; peers are named 0 .. ends - 1. `faults` may be NULL: none, and a frame can be received as soon as it
 * is sent. */
enum status channel_loop_open(int ends, const struct loop_faults *faults, struct channel **channel /* [ends] */);

/* Called on any end, these two hold for all ends of the loop. */
void channel_loop_hook(struct channel *channel, const struct loop_hooks *hooks);
void channel_loop_set_faults(struct channel *channel, const struct loop_faults *faults);

/* When the next frame for this end is due, in nanoseconds of clock_ns; INT64_MAX when none is on its way. */
int64_t channel_loop_due_ns(const struct channel *channel);

/* Simulates that the process at this end dies: frames that wait for it are lost. Until it is back, frames to it are lost or (`piles`) fill their
 * senders' outboxes; they are lost, too, when it returns. Frames that it has sent still arrive. */
void channel_loop_kill(struct channel *channel, int piles);
void channel_loop_return(struct channel *channel);

#endif
