/* A drain relay passes a SIGUSR1 on: a rank that is told to drain sends the lead a Drain, as only the lead can end the job. It owns nothing and never
 * waits. For the main thread of any rank but the lead. */
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

/* To be called several times a second. Point to point; never waits. */
enum status drain_relay_look(struct drain_relay *relay);

#endif
