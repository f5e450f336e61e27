/* The table behind a channel. Each kind embeds `struct channel` as its first member. Used inside common/wire only. */
#ifndef TANDEM_COMMON_WIRE_CHANNEL_KIND_H
#define TANDEM_COMMON_WIRE_CHANNEL_KIND_H

#include "common/wire/channel.h"

struct channel_kind {
    enum status (*send)(struct channel *channel, int peer, struct frame frame, int *taken);
    enum status (*receive)(struct channel *channel, int *peer, struct frame *frame, int *refused);
    enum status (*wait)(struct channel *channel, int64_t deadline_ns, int *peer, struct frame *frame, int *refused);
    int (*pending)(struct channel *channel, int peer);
    int (*is_gone)(const struct channel *channel, int peer); /* NULL: cannot be known */
    void (*close)(struct channel *channel);
};

struct channel {
    const struct channel_kind *kind;
    int peers;
};

#endif
