#include "common/wire/drain_relay.h"

#include "common/world/signals.h"

enum status drain_relay_look(struct drain_relay *relay)
{
    if (!signals_ask_to_drain())
        return STATUS_OK;
    if (relay->sent) {
        (void)channel_pending(relay->channel, relay->lead); /* gives MPI a chance to send it */
        return STATUS_OK;
    }
    return channel_send(relay->channel, relay->lead, message_pack_plain(relay->space, MESSAGE_DRAIN, ~relay->run), &relay->sent);
}
