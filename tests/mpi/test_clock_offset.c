/* Clocks of ranks of one host are one clock: what is measured between them is nothing, within the doubt that is told. */
#include "common/world/clock_offset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { RANKS = 3 };

static struct world world;

static void check(int holds, const char *what, int rank)
{
    if (holds)
        return;
    print_message("rank %d: %s\n", rank, what);
    world_abort(STATUS_INTERNAL);
}

static void test_clock_offset__one_clock_differs_by_no_more_than_the_doubt(void **state)
{
    struct clock_offset offsets[RANKS] = {0};

    (void)state;
    for (int again = 0; again < 3; again++) {
        check(clock_offset_measure(&world, offsets) == STATUS_OK, "measuring failed", world.rank);
        for (int i = 0; world.rank == world.lead && i < world.size; i++) {
            int64_t distance = offsets[i].offset_ns < 0 ? -offsets[i].offset_ns : offsets[i].offset_ns;

            check(offsets[i].measured, "it did not answer", i);
            check(distance <= offsets[i].round_trip_ns / 2 + 1, "its clock is farther off than half a round trip", i);
            check(i == world.lead || offsets[i].round_trip_ns > 0, "its answer took no time", i);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_clock_offset__one_clock_differs_by_no_more_than_the_doubt)};
    int failed;

    if (world_open(&argc, &argv, ROLE_VERIFIER, &world) != STATUS_OK || world.size != RANKS)
        world_abort(STATUS_INTERNAL);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    world_close(&world, STATUS_OK);
    return failed;
}
