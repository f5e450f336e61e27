/* A rank that is told to drain tells the lead, which is the one that can. */
#ifndef TANDEM_COMMON_WIRE_DRAIN_RELAY_H
#define TANDEM_COMMON_WIRE_DRAIN_RELAY_H

#include "common/wire/channel.h"

struct drain_relay {
    struct channel *channel;     /* borrowed */
    struct message_space *space; /* borrowed */
    int lead;                    /* on the channel */
    uint64_t run;
    int sent;
};

/* To be called now and then. Point to point; never waits. */
enum status drain_relay_look(struct drain_relay *relay);

#endif
