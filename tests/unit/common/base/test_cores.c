#include "common/base/clock.h"
#include "common/base/cores.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

/* As a pool binds who opens it: its next one still finds all. */
static void test_cores__a_thread_that_is_bound_later_has_those_of_the_process(void **state)
{
    const cpu_set_t *own = cores_own();
    cpu_set_t all, one;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_non_null(own);
    assert_true(CPU_EQUAL(own, &all));
    if (CPU_COUNT(&all) < 2) {
        print_message("skipped: one core, and there is nothing to be bound to\n");
        skip();
    }
    CPU_ZERO(&one);
    for (int i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_true(CPU_EQUAL(cores_own(), &all));
}

static int64_t pretended, turn;

int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
    pretended += turn;
    return 0;
}

/* Whether the cores are taken after a yield that came back after so long. */
static int taken_after(int64_t ns)
{
    turn = ns;
    cores_yield();
    return cores_are_taken(pretended);
}

static void test_cores__are_taken_for_a_while_after_a_yield_that_came_back_late(void **state)
{
    const int64_t ms = 1000000;

    (void)state;
    pretended = 1000 * ms;
    clock_pretend(&pretended);
    assert_false(cores_are_taken(pretended));
    assert_false(taken_after(500));
    assert_false(taken_after(ms)); /* another rank's step */
    assert_true(taken_after(3 * ms));
    assert_true(taken_after(500));
    assert_true(cores_are_taken(pretended + 100 * ms));
    assert_false(cores_are_taken(pretended + 300 * ms));
    clock_pretend(NULL);
}

static void test_cores__short_turns_change_nothing_else(void **state)
{
    int policy = sched_getscheduler(0), nice_before = getpriority(PRIO_PROCESS, 0);
    int64_t before = cores_turn_ns();

    (void)state;
    cores_take_short_turns();
    assert_int_equal(sched_getscheduler(0), policy);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), nice_before);
    if (before == 0 || cores_turn_ns() == before) {
        print_message("skipped: here a process has no turn of its own, or may not ask for a shorter one\n");
        skip();
    }
    assert_int_equal(cores_turn_ns(), 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cores__are_taken_for_a_while_after_a_yield_that_came_back_late),
        cmocka_unit_test(test_cores__short_turns_change_nothing_else),
        cmocka_unit_test(test_cores__a_thread_that_is_bound_later_has_those_of_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
