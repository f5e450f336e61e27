#include "common/base/clock.h"
#include "common/world/keeper.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A keeper with its child, as a launcher starts one. The child tells its pid by a pipe, whose other end closes with it. */
struct pair {
    pid_t keeper, child;
    int from_child;
};

enum life { DIES_EARLY, IS_TOLD_TO_END, DIES_JOINED, ENDS, LIVES };

static void live(enum life life, int to_test)
{
    pid_t self = getpid();

    if (write(to_test, &self, sizeof self) != sizeof self)
        _exit(1);
    if (life == IS_TOLD_TO_END)
        raise(SIGTERM);
    if (life != DIES_EARLY)
        keeper_joined();
    if (life == ENDS) {
        keeper_close();
        _exit(65);
    }
    if (life == LIVES)
        pause();
    raise(SIGKILL);
}

static struct pair start(enum life life)
{
    struct pair pair;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    pair.keeper = fork();
    if (pair.keeper == 0) {
        signal(SIGTERM, SIG_DFL);
        close(ends[0]);
        if (keeper_open() == STATUS_OK)
            live(life, ends[1]);
        _exit(1);
    }
    close(ends[1]);
    pair.from_child = ends[0];
    assert_int_equal(read(pair.from_child, &pair.child, sizeof pair.child), sizeof pair.child);
    return pair;
}

static int status_of(const struct pair *pair)
{
    int status;

    assert_int_equal(waitpid(pair->keeper, &status, 0), pair->keeper);
    close(pair->from_child);
    return status;
}

static void test_keeper__goes_with_a_child_that_has_not_joined(void **state)
{
    struct pair pair = start(DIES_EARLY);
    int status = status_of(&pair);

    (void)state;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 128 + SIGKILL);
}

/* So that the children of the others can write their last events: the launcher ends all as soon as one has ended. */
static void test_keeper__outlives_a_child_that_was_told_to_end(void **state)
{
    int64_t began = clock_ns();
    struct pair pair = start(IS_TOLD_TO_END);
    int status = status_of(&pair);

    (void)state;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
    assert_true(clock_ns() - began >= 200000000);
}

static void test_keeper__stays_when_a_child_that_joined_dies(void **state)
{
    struct pair pair = start(DIES_JOINED);
    int status;

    (void)state;
    while (kill(pair.child, 0) == 0) /* until it was reaped */
        usleep(1000);
    kill(pair.keeper, SIGTERM); /* as a launcher does at the end of the job */
    status = status_of(&pair);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
}

static void test_keeper__ends_as_a_child_that_came_to_its_end(void **state)
{
    struct pair pair = start(ENDS);
    int status = status_of(&pair);

    (void)state;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 65);
}

static void test_keeper__takes_its_child_along(void **state)
{
    struct pair pair = start(LIVES);

    (void)state;
    kill(pair.keeper, SIGKILL);
    assert_int_equal(waitpid(pair.keeper, NULL, 0), pair.keeper);
    assert_int_equal(read(pair.from_child, &pair.child, 1), 0); /* nobody has the other end any more */
    close(pair.from_child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keeper__goes_with_a_child_that_has_not_joined),
        cmocka_unit_test(test_keeper__outlives_a_child_that_was_told_to_end),
        cmocka_unit_test(test_keeper__stays_when_a_child_that_joined_dies),
        cmocka_unit_test(test_keeper__ends_as_a_child_that_came_to_its_end),
        cmocka_unit_test(test_keeper__takes_its_child_along),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
