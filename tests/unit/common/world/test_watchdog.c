/* Processes with a watchdog of one second: how they end. */
#include "common/base/progress.h"
#include "common/world/watchdog.h"
#include "tests/support/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { TURNS = 30 }; /* of 0.1 s */

static void work(void)
{
    progress_made("working");
}

static void rest(void)
{
    progress_excused("resting");
}

static void nothing(void)
{
}

/* The exit code of a process that does `first`, and then `then` at each turn; what it says in `said`. */
static int ends(void (*first)(void), void (*then)(void), char *said, size_t room)
{
    struct capture capture;
    int how = -1;
    pid_t child;

    capture_begin(&capture);
    child = fork();
    if (child == 0) {
        if (watchdog_open(1) != STATUS_OK)
            _exit(1);
        first();
        for (int i = 0; i < TURNS; i++) {
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
            then();
        }
        watchdog_close();
        _exit(0);
    }
    assert_true(child > 0 && waitpid(child, &how, 0) == child);
    capture_end(&capture, said, room);
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static void test_watchdog__does_not_bite_while_something_gets_done_or_nothing_is_to_be_done(void **state)
{
    char said[1024];

    (void)state;
    assert_int_equal(ends(work, work, said, sizeof said), 0);
    assert_int_equal(ends(work, rest, said, sizeof said), 0);
}

static void test_watchdog__bites_with_what_was_done_last(void **state)
{
    char said[1024];

    (void)state;
    assert_int_equal(ends(work, nothing, said, sizeof said), STATUS_WATCHDOG);
    capture_assert_one_line(said, "no progress for 1 s while working: ending the job");
}

/* To say that one waits, time and again, is no progress; nor is it to come to other words. */
static void test_watchdog__bites_who_waits(void **state)
{
    char said[1024];

    (void)state;
    assert_int_equal(ends(work, progress_awaits, said, sizeof said), STATUS_WATCHDOG);
}

static void test_watchdog__grants_a_minute_to_the_beginning(void **state)
{
    char said[1024];

    (void)state;
    assert_int_equal(ends(nothing, nothing, said, sizeof said), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watchdog__does_not_bite_while_something_gets_done_or_nothing_is_to_be_done),
        cmocka_unit_test(test_watchdog__bites_with_what_was_done_last),
        cmocka_unit_test(test_watchdog__bites_who_waits),
        cmocka_unit_test(test_watchdog__grants_a_minute_to_the_beginning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
