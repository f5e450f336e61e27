#include "common/base/clock.h"
#include "common/world/bells.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SECOND_NS ((int64_t)1000000000)

/* A drafter and the lead on one core, without MPI. */
static struct bell own, other;
static struct bells bells = {.mine = &own, .of = {&own, &other}};
static struct world world = {.role = ROLE_DRAFTER, .lead = 1, .size = 2, .node_size = 2, .bells = &bells};

/* As if the core had been given to another rank for a second. */
static void lose_the_core(struct wait *wait)
{
    wait->started_ns -= SECOND_NS;
    wait->look_ns -= SECOND_NS;
}

static void step_off_core(struct wait *wait, int count)
{
    for (int i = 0; i < count; i++) {
        lose_the_core(wait);
        world_wait_step(&world, wait, INT64_MAX);
    }
}

/* MPI_Improbe finds a message and only the next one shows it: who sleeps after one look sleeps on what has come. */
static void test_wait__a_rank_that_lost_its_core_looks_again_before_it_sleeps(void **state)
{
    struct wait wait;

    (void)state;
    world_wait_begin(&world, &wait);
    step_off_core(&wait, 3);
    assert_int_equal(wait.naps, 0);
    step_off_core(&wait, 2);
    assert_int_equal(wait.naps, 1);
}

static void test_wait__a_ring_is_looked_for_as_often(void **state)
{
    struct wait wait;

    (void)state;
    world_wait_begin(&world, &wait);
    step_off_core(&wait, 5);
    assert_int_equal(wait.naps, 1);
    world_ring(&world, 0);
    world_wait_step(&world, &wait, INT64_MAX); /* sleeps on a bell that has rung: returns at once */
    step_off_core(&wait, 4);
    assert_int_equal(wait.naps, 2);
    step_off_core(&wait, 1);
    assert_int_equal(wait.naps, 3);
}

static void test_wait__a_deadline_that_is_over_ends_the_sleep(void **state)
{
    struct wait wait;

    (void)state;
    world_wait_begin(&world, &wait);
    for (int i = 0; i < 8; i++) {
        lose_the_core(&wait);
        world_wait_step(&world, &wait, clock_ns() - 1);
    }
    assert_int_equal(wait.naps, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait__a_rank_that_lost_its_core_looks_again_before_it_sleeps),
        cmocka_unit_test(test_wait__a_ring_is_looked_for_as_often),
        cmocka_unit_test(test_wait__a_deadline_that_is_over_ends_the_sleep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
