/* The clock of the wall may be set at any time: by a person, by NTP, after a sleep. What waits does not look at it. */
#include "common/base/progress.h"
#include "common/base/status.h"
#include "common/world/watchdog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

/* It is an hour ahead, and put right between any look at it and whatever is then done. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = __real_clock_gettime(clock, now);

    if (clock == CLOCK_REALTIME)
        now->tv_sec += 3600;
    return failed;
}

static void test_clock_jumps__a_watchdog_bites_all_the_same(void **state)
{
    int how;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        alarm(60); /* which ends it where the watchdog does not */
        if (watchdog_open(0.2) == STATUS_OK) {
            progress_made("waiting");
            pause();
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), STATUS_WATCHDOG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_clock_jumps__a_watchdog_bites_all_the_same)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
