/* The jobs of a sweep: their exit codes, and what becomes of a signal. */
#include "common/base/log.h"
#include "launch/bench/sweep/child.h"
#include "tests/support/capture.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* What `sh -c script` came to. */
static int code_of(const char *script)
{
    struct child_words words = {0};
    int code = -1;

    assert_int_equal(child_add(&words, "sh"), STATUS_OK);
    assert_int_equal(child_add(&words, "-c"), STATUS_OK);
    assert_int_equal(child_add(&words, script), STATUS_OK);
    assert_int_equal(child_run(&words, NULL, &code), STATUS_OK);
    return code;
}

static void test_child__its_code_is_that_of_the_program(void **state)
{
    (void)state;
    assert_int_equal(code_of("exit 0"), 0);
    assert_int_equal(code_of("exit 65"), 65);
    assert_int_equal(code_of("kill -KILL $$"), 128 + SIGKILL);
}

/* The program tells whoever started it, who tells the program. */
static void test_child__a_signal_is_passed_on(void **state)
{
    (void)state;
    assert_int_equal(code_of("trap 'exit 7' TERM; kill -TERM $PPID; while :; do sleep 0.01; done"), 7);
    assert_int_equal(code_of("kill -HUP $PPID; while :; do sleep 0.01; done"), 128 + SIGHUP);
}

/* It ends well all the same: nothing more is to be started. */
static void test_child__a_signal_is_not_forgotten(void **state)
{
    (void)state;
    assert_int_equal(code_of("trap 'exit 0' TERM; kill -TERM $PPID; while :; do sleep 0.01; done"), 128 + SIGTERM);
    assert_int_equal(code_of("trap 'exit 0' USR1; kill -USR1 $PPID; while :; do sleep 0.01; done"), STATUS_DRAINED);
    assert_int_equal(code_of("exit 0"), 0);
}

static void test_child__who_cannot_be_started_is_named(void **state)
{
    struct child_words words = {0};
    struct capture capture;
    char said[256];
    int code = 0;

    (void)state;
    assert_int_equal(child_add(&words, "/nowhere/program"), STATUS_OK);
    capture_begin(&capture);
    assert_int_equal(child_run(&words, NULL, &code), STATUS_INTERNAL);
    capture_end(&capture, said, sizeof said);
    capture_assert_one_line(said, "cannot start /nowhere/program: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_child__its_code_is_that_of_the_program),
        cmocka_unit_test(test_child__a_signal_is_passed_on),
        cmocka_unit_test(test_child__a_signal_is_not_forgotten),
        cmocka_unit_test(test_child__who_cannot_be_started_is_named),
    };

    log_init("test_child", LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
