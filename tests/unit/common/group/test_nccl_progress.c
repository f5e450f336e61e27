/* Making a group over NCCL reports as it goes: one rank, over the library of the tests, and nothing of MPI. */
#include "common/base/progress.h"
#include "common/group/group.h"
#include "common/world/doorbells.h"
#include "tests/support/pretended_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { QUESTIONS = 7, PATIENCE_S = 60 };

static struct doorbell own;
static struct doorbells doorbells = {.mine = &own, .first = &own, .of = {&own}};
static struct world world = {.role = ROLE_VERIFIER, .size = 1, .node_size = 1, .cores = 1, .doorbells = &doorbells};
static struct pretended_device rig;

/* In place of the library's, which was not started. */
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy)
{
    *copy = comm;
    return MPI_SUCCESS;
}

int MPI_Comm_free(MPI_Comm *comm)
{
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *found)
{
    (void)from;
    (void)tag;
    (void)comm;
    (void)found;
    *flag = 0;
    return MPI_SUCCESS;
}

/* Reports while a group is made for sums of up to so many bytes, where each call is in progress for so many questions. */
static uint64_t counted(size_t bytes, const char *questions)
{
    uint64_t before = progress_look().count;
    struct group group;

    setenv("FAKE_NCCL_PROGRESS", questions, 1);
    group_open_self(&group);
    assert_int_equal(group_open_nccl(&world, &rig.backend, rig.context, bytes, PATIENCE_S, GROUP_SUMS_NCCL, &group), STATUS_OK);
    before = progress_look().count - before;
    group_close(&group);
    return before;
}

/* As long as the call's own deadline lasts, the watchdog has no say. */
static void test_nccl_progress__each_look_at_a_call_that_goes_on(void **state)
{
    (void)state;
    assert_true(counted(4096, "7") - counted(4096, "0") >= QUESTIONS);
}

/* Of 256 numbers and four times as many each, for each of which NCCL may have to connect devices first. */
static void test_nccl_progress__each_of_the_first_sums(void **state)
{
    (void)state;
    assert_true(counted(64 << 10, "0") - counted(4096, "0") >= 2);
}

static int open_device(void **state)
{
    (void)state;
    return pretended_device_open(&rig, 0) == STATUS_OK ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    pretended_device_close(&rig);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nccl_progress__each_look_at_a_call_that_goes_on),
        cmocka_unit_test(test_nccl_progress__each_of_the_first_sums),
    };

    return cmocka_run_group_tests(tests, open_device, close_device);
}
