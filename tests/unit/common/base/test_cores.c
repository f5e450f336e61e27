#include "common/base/cores.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cores__a_thread_that_is_bound_later_has_those_of_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
