/* How far the monotonic clocks of other ranks are from the lead's, by ping-pong, as NTP does. The round trip that took least is the most symmetric:
 * its middle is taken for the moment at which the other rank read its clock, and the error is at most half of it. Ranks of one host read the same
 * clock: what is measured there shows how exact the method is. Owns nothing. */
#ifndef TANDEM_COMMON_WORLD_CLOCK_OFFSET_H
#define TANDEM_COMMON_WORLD_CLOCK_OFFSET_H

#include "common/world/world.h"

struct clock_offset {
    int measured;          /* 0: the rank was gone, or did not answer in time */
    int64_t offset_ns;     /* what to subtract from its times to have the lead's */
    int64_t round_trip_ns; /* the least */
};

/* Collective over all ranks but those that have ended; whoever does not come is given up after some seconds. offsets: [world->size] on the
 * lead, not used elsewhere. */
enum status clock_offset_measure(struct world *world, struct clock_offset *offsets);

#endif
