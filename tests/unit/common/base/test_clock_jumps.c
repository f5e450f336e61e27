/* The clock of the wall may be set at any time: by a person, by NTP, after a sleep. What waits does not look at it. */
#include "common/base/clock.h"
#include "common/base/progress.h"
#include "common/base/status.h"
#include "common/world/watchdog.h"
#include "verifier/result/journal_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

static int set_back; /* at each look an hour more, instead */

/* It is an hour ahead, and put right between any look at it and whatever is then done. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = __real_clock_gettime(clock, now);

    if (clock == CLOCK_REALTIME)
        now->tv_sec += set_back > 0 ? -3600 * set_back++ : 3600;
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

/* What deadlines and figures are made of. */
static void test_clock_jumps__time_passes_as_ever(void **state)
{
    int64_t began = clock_ns(), last = began;

    (void)state;
    set_back = 1;
    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_ns();

        assert_true(now >= last && now - began < (int64_t)3600 * 1000000000);
        last = now;
    }
    set_back = 0;
}

/* Set back again and again, the clock of the wall would make the wait of a second one of hours. */
static void test_clock_jumps__a_journal_is_waited_for_no_longer(void **state)
{
    char output[] = "/tmp/tandem-clock-XXXXXX", path[64];
    int fd = mkstemp(output), how;
    struct journal_file mine;
    pid_t child;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(journal_file_claim(&mine, output, 0), STATUS_OK);
    child = fork();
    if (child == 0) {
        struct journal_file other;

        alarm(30);
        set_back = 1;
        _exit(journal_file_claim(&other, output, 1));
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), STATUS_IO);
    snprintf(path, sizeof path, "%s.journal", output);
    journal_file_close(&mine);
    unlink(path);
    unlink(output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_jumps__a_watchdog_bites_all_the_same),
        cmocka_unit_test(test_clock_jumps__time_passes_as_ever),
        cmocka_unit_test(test_clock_jumps__a_journal_is_waited_for_no_longer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
