/* How long somebody has been waiting: a process that stood still has not. */
#include "common/base/clock.h"
#include "common/base/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int64_t now;

static struct patience begin(void)
{
    now = 1000;
    clock_pretend(&now);
    return patience_begin(100);
}

static void test_patience__adds_up_what_passes_between_looks(void **state)
{
    struct patience patience = begin();

    (void)state;
    assert_int_equal(patience_spent(&patience), 0);
    now += 60;
    assert_int_equal(patience_spent(&patience), 60);
    assert_int_equal(patience_spent(&patience), 60);
    now += 100;
    assert_int_equal(patience_spent(&patience), 160);
    clock_pretend(NULL);
}

/* However long the process was stopped: it waits on for what is left, so that those who stood still with it can answer. */
static void test_patience__a_process_that_stood_still_has_not_been_waiting(void **state)
{
    struct patience patience = begin();

    (void)state;
    now += 10;
    assert_int_equal(patience_spent(&patience), 10);
    now += (int64_t)3600 * 1000000000;
    assert_int_equal(patience_spent(&patience), 110);
    now += 5;
    assert_int_equal(patience_spent(&patience), 115);
    clock_pretend(NULL);
}

static void test_patience__begins_anew_with_what_passes_from_there(void **state)
{
    struct patience patience = begin();

    (void)state;
    now += 90;
    assert_int_equal(patience_spent(&patience), 90);
    now += 50;
    patience_renew(&patience);
    assert_int_equal(patience_spent(&patience), 0);
    now += 30;
    assert_int_equal(patience_spent(&patience), 30);
    clock_pretend(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patience__adds_up_what_passes_between_looks),
        cmocka_unit_test(test_patience__a_process_that_stood_still_has_not_been_waiting),
        cmocka_unit_test(test_patience__begins_anew_with_what_passes_from_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
