/* A job's trace (common/base/trace.h) from its begin to its files: clocks are compared, spans are kept, clocks are compared again, each rank
 * writes its own file, and the lead clocks.csv beside them: `when,rank,measured,offset_ns,round_trip_ns`, where `offset_ns` is what to subtract
 * from that rank's times to have the lead's. */
#ifndef TANDEM_COMMON_WORLD_WORLD_TRACE_H
#define TANDEM_COMMON_WORLD_WORLD_TRACE_H

#include "common/world/clock_offset.h"

enum { WORLD_TRACE_SPANS = 1 << 20 };

struct world_trace {
    const char *folder;          /* NULL: there is none, and the calls do nothing; borrowed */
    struct clock_offset *before; /* [world->size], on the lead */
};

/* Takes memory and this rank's file, while the job is still being prepared; folder: NULL for none, borrowed. STATUS_IO, STATUS_INTERNAL, logged. */
enum status world_trace_open(const struct world *world, const char *folder, struct world_trace *trace);
/* Collective over all ranks. */
enum status world_trace_begin(struct world *world, struct world_trace *trace);
/* Collective over all ranks that have not ended. */
enum status world_trace_end(struct world *world, struct world_trace *trace);

#endif
