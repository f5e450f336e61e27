#include "common/world/clock_offset.h"

#include "common/base/clock.h"
#include "common/base/progress.h"
#include "common/base/try.h"

enum { PINGS = 64, TAG = 2 /* on world->wire */, PING = 1, OVER = 2 };
#define ANSWER_NS ((int64_t)2000 * 1000000)
#define TURN_NS ((int64_t)20 * 1000000) /* what each rank before this one may take of the lead's time */

/* Waits for a number from `from`; *came is 0 when the deadline passed or the rank ended. */
static enum status hear(struct world *world, int from, int64_t deadline, int64_t *number, int *came)
{
    struct wait wait;

    world_wait_begin(world, &wait);
    for (*came = 0;;) {
        MPI_Message message;
        MPI_Status state;

        TRY_MPI(MPI_Improbe(from, TAG, world->wire, came, &message, &state));
        if (*came) {
            TRY_MPI(MPI_Mrecv(number, 1, MPI_INT64_T, &message, &state));
            return STATUS_OK;
        }
        if (clock_ns() >= deadline || world_is_gone(world, from))
            return STATUS_OK;
        world_wait_step(world, &wait, deadline);
    }
}

static enum status say(struct world *world, int to, int64_t number)
{
    TRY_MPI(MPI_Send(&number, 1, MPI_INT64_T, to, TAG, world->wire)); /* eight bytes: MPI takes them at once */
    world_ring(world, to);
    return STATUS_OK;
}

static enum status measure(struct world *world, int rank, struct clock_offset *offset)
{
    *offset = (struct clock_offset){0};
    for (int i = 0; i < PINGS && !world_is_gone(world, rank); i++) {
        int64_t asked = clock_ns(), there, came_ns;
        int came;

        TRY(say(world, rank, PING));
        TRY(hear(world, rank, asked + ANSWER_NS, &there, &came));
        came_ns = clock_ns();
        if (!came)
            return STATUS_OK;
        if (!offset->measured || came_ns - asked < offset->round_trip_ns)
            *offset = (struct clock_offset){
                .measured = 1, .offset_ns = there - (asked + (came_ns - asked) / 2), .round_trip_ns = came_ns - asked};
    }
    return world_is_gone(world, rank) ? STATUS_OK : say(world, rank, OVER);
}

static enum status answer(struct world *world)
{
    int64_t patience = ANSWER_NS + world->size * TURN_NS, number = 0;
    int came = 1;

    while (number != OVER) {
        TRY(hear(world, world->lead, clock_ns() + patience, &number, &came));
        if (!came)
            return STATUS_OK;
        if (number == PING)
            TRY(say(world, world->lead, clock_ns()));
    }
    return STATUS_OK;
}

enum status clock_offset_measure(struct world *world, struct clock_offset *offsets)
{
    if (world->rank != world->lead)
        return answer(world);
    for (int rank = 0; rank < world->size; rank++) {
        progress_made("measuring clocks");
        if (rank == world->lead)
            offsets[rank] = (struct clock_offset){.measured = 1};
        else
            TRY(measure(world, rank, &offsets[rank]));
    }
    return STATUS_OK;
}
