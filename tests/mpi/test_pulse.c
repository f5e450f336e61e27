/* Three ranks of one host that are taken for those of two: a drafter and a verifier on one, a verifier on the other, who sees no doorbell of
 * theirs. */
#include "common/base/clock.h"
#include "common/base/progress.h"
#include "common/world/doorbells.h"
#include "common/world/pulse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { DRAFTER, EAR, AFAR, RANKS };
#define DEADLINE_NS ((int64_t)60 * 1000000000)

static struct world world;
static struct doorbells apart;

static void check(int holds, const char *what)
{
    if (holds)
        return;
    print_message("rank %d: %s\n", world.rank, what);
    world_abort(STATUS_INTERNAL);
}

/* The rank as it would be with the last one on another host. */
static struct world split(void)
{
    struct world seen = world;

    check(MPI_Comm_split(world.wire, world.rank == AFAR, world.rank, &seen.node) == MPI_SUCCESS, "no communicator");
    apart = *world.doorbells;
    for (int i = 0; i < RANKS; i++)
        if ((i == AFAR) != (world.rank == AFAR))
            apart.of[i] = NULL;
    if (world.rank == AFAR)
        apart.first = apart.mine;
    seen.doorbells = &apart;
    seen.spread = 1;
    return seen;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

/* Who works does so until the others have heard of it. */
static void test_pulse__work_is_heard_on_another_host(void **state)
{
    struct world seen = split();
    MPI_Request heard;
    int64_t deadline = clock_ns() + DEADLINE_NS;
    uint64_t before;
    int all = 0;

    (void)state;
    check(pulse_open(&seen) == STATUS_OK && seen.pulse != NULL, "no pulses");
    before = world_progress(&seen);
    check(world_meet(&seen, world.wire) == STATUS_OK, "they do not meet");
    while (world.rank != AFAR && world_progress(&seen) == before) {
        check(clock_ns() < deadline, "it hears nothing");
        nap();
    }
    check(MPI_Ibarrier(world.wire, &heard) == MPI_SUCCESS, "no barrier");
    while (!all) {
        check(clock_ns() < deadline, "some do not hear");
        if (world.rank == AFAR)
            progress_made(NULL);
        pulse_listen(&seen); /* the drafter hears what its host's ear takes */
        nap();
        check(MPI_Test(&heard, &all, MPI_STATUS_IGNORE) == MPI_SUCCESS, "no answer");
    }
    pulse_close(&seen);
    MPI_Comm_free(&seen.node);
}

/* Whoever waits is no work for those on another host. */
static void test_pulse__waiting_is_not_heard(void **state)
{
    struct world seen = split();
    uint64_t before;

    (void)state;
    check(pulse_open(&seen) == STATUS_OK, "no pulses");
    check(world_meet(&seen, world.wire) == STATUS_OK, "they do not meet");
    before = world_progress(&seen);
    for (int i = 0; i < 50; i++) {
        progress_excused("waiting");
        nap();
    }
    check(world_meet(&seen, world.wire) == STATUS_OK, "they do not meet again");
    check(world_progress(&seen) == before, "waiting is taken for work");
    check(world_meet(&seen, world.wire) == STATUS_OK, "they do not meet at last");
    pulse_close(&seen);
    MPI_Comm_free(&seen.node);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pulse__work_is_heard_on_another_host),
                                       cmocka_unit_test(test_pulse__waiting_is_not_heard)};
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    int failed;

    if (world_open(&argc, &argv, rank != NULL && atoi(rank) == DRAFTER ? ROLE_DRAFTER : ROLE_VERIFIER, &world) != STATUS_OK || world.size != RANKS)
        world_abort(STATUS_INTERNAL);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    world_close(&world, STATUS_OK);
    return failed;
}
