/* The group over NCCL with as many ranks as the job has, against the library of the tests. A rank that finds something wrong ends the job,
 * because the others would wait for it. What goes wrong on purpose is in group_nccl.sh. */
#include "common/backend/backend.h"
#include "group_rig.h"
#include "tests/support/pretended_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    BYTES = 64 << 10,
    MOST_RANKS = 4,
    LONGEST = BYTES / 4 * 2 + 77,
    LARGE_BYTES = 6 << 20, /* of which all ranks' are not gathered */
    LARGE = LARGE_BYTES / 4
};

static struct pretended_device rig;

static void open_group_for(size_t bytes)
{
    check(group_open_team(&world, 4096, &group) == STATUS_OK, "no group of the host", 0);
    check(group_open_nccl(&world, &rig.backend, rig.context, bytes, 60, GROUP_SUMS_AUTO, &group) == STATUS_OK, "no group over NCCL", 0);
}

static void open_group(void)
{
    open_group_for(BYTES);
}

static int open_windows(void **state)
{
    (void)state;
    open_group();
    return 0;
}

static int close_group(void **state)
{
    (void)state;
    group_close(&group);
    return 0;
}

static void check_sum(float *x, size_t count, int number)
{
    for (size_t i = 0; i < count; i++)
        x[i] = given(group.rank, i, number);
    check(group_sum(&group, x, count) == STATUS_OK && group_settle(&group) == STATUS_OK, "sum failed", number);
    for (size_t i = 0; i < count; i++) {
        float expected = tree(i, number);

        check(memcmp(&expected, &x[i], sizeof expected) == 0, "a sum is not the tree's", number);
    }
}

static const size_t sizes[] = {1, 2, 3, 255, 576, 4097, BYTES / 4, BYTES / 4 + 1, LONGEST};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void test_group_nccl__sum_is_the_tree_over_the_ranks_bit_for_bit(void **state)
{
    static float x[LONGEST];

    (void)state;
    for (int i = 0; i < 10 * SIZES; i++)
        check_sum(x, sizes[i % SIZES], i);
}

/* Also where a slice more than all ranks have, or a part of a further sum, is left over; and a number's sum is that of a small one. */
static void test_group_nccl__large_sums_in_slices_are_the_tree(void **state)
{
    static const size_t counts[] = {LARGE, LARGE - 1, LARGE - 2, LARGE + 77};
    static float x[LARGE + 77];
    float *buffer;

    (void)state;
    open_group_for(LARGE_BYTES);
    check((strstr(group_describe(&group), " KiB in slices") != NULL) == (group.size > 2), group_describe(&group), 0);
    for (int i = 0; i < 4; i++)
        check_sum(x, counts[i], i);
    buffer = group_buffer(&group, LARGE_BYTES);
    check(buffer != NULL, "no buffer", 0);
    check_sum(buffer, LARGE, 4);
    group_close(&group);
}

static void test_group_nccl__the_groups_own_buffer_is_summed(void **state)
{
    float *buffer = group_buffer(&group, BYTES);

    (void)state;
    check(buffer != NULL && buffer == group_buffer(&group, 1), "no buffer", 0);
    check(group_buffer(&group, BYTES + 4096) == NULL, "a buffer that is not there", 0);
    check_sum(buffer, BYTES / 4, 1);
}

/* The order of adding in the library differs between a sum of 100 and one of 1000 (for more than two ranks); the group's must not. */
static void test_group_nccl__a_number_has_the_same_sum_whatever_stands_beside_it(void **state)
{
    static float few[100], many[1000];

    (void)state;
    for (size_t i = 0; i < 1000; i++)
        many[i] = given(group.rank, i, 5);
    memcpy(few, many, sizeof few);
    check(group_sum(&group, few, 100) == STATUS_OK && group_sum(&group, many, 1000) == STATUS_OK, "sum failed", 0);
    check(memcmp(few, many, sizeof few) == 0, "sums differ with their number", 0);
}

static void test_group_nccl__bytes_of_the_host_go_as_before(void **state)
{
    enum { COUNT = 10007 };
    static unsigned char mine[COUNT], all[MOST_RANKS * COUNT];

    (void)state;
    memset(mine, 'a' + group.rank, sizeof mine);
    check(group_gather(&group, mine, COUNT, all) == STATUS_OK, "gather failed", 0);
    for (size_t i = 0; group.rank == 0 && i < (size_t)group.size * COUNT; i++)
        check(all[i] == 'a' + i / COUNT, "gathered bytes differ", (long)i);
    check(group_broadcast(&group, mine, COUNT) == STATUS_OK, "broadcast failed", 0);
    for (size_t i = 0; i < COUNT; i++)
        check(mine[i] == 'a', "broadcast bytes differ", (long)i);
}

static void test_group_nccl__settle_waits_for_the_device(void **state)
{
    float x = 1;

    (void)state;
    check(group_sum(&group, &x, 1) == STATUS_OK, "sum failed", 0);
    pretended_device_busy(50);
    check(group_settle(&group) == STATUS_OK, "settle failed", 0);
    check(rig.backend.device.idle(rig.context), "the device was not waited for", 0);
}

static void test_group_nccl__says_what_it_took(void **state)
{
    char *windows = getenv("FAKE_NCCL_WINDOWS");

    (void)state;
    setenv("FAKE_NCCL_WINDOWS", "1", 1);
    open_group();
    check(strstr(group_describe(&group), "NCCL 2.30.7, symmetric windows, sums by") != NULL, group_describe(&group), 0);
    check(strstr(group_describe(&group), group.size > 2 ? "all-gather" : "all-reduce") != NULL, group_describe(&group), 0);
    group_close(&group);
    setenv("FAKE_NCCL_WINDOWS", "0", 1);
    open_group();
    check(strstr(group_describe(&group), ", no symmetric windows,") != NULL, group_describe(&group), 0);
    check_sum(group_buffer(&group, 4), 1, 1);
    group_close(&group);
    if (windows == NULL)
        unsetenv("FAKE_NCCL_WINDOWS");
}

/* Before 2.27, and in 2.28 up to 2.30.4, whose window kernels do not wait, the memory is the backend's. */
static void test_group_nccl__some_libraries_sum_without_windows(void **state)
{
    static const char *const versions[][2] = {{"21805", "NCCL 2.18.5, no symmetric windows"},
                                              {"22809", "NCCL 2.28.9, no symmetric windows"},
                                              {"23004", "NCCL 2.30.4, no symmetric windows"},
                                              {"22707", "NCCL 2.27.7, symmetric windows"}};
    static float x[LONGEST];

    (void)state;
    for (int i = 0; i < 4; i++) {
        setenv("FAKE_NCCL_VERSION", versions[i][0], 1);
        open_group();
        unsetenv("FAKE_NCCL_VERSION");
        check(strstr(group_describe(&group), versions[i][1]) != NULL, group_describe(&group), i);
        check_sum(x, LONGEST, 3);
        check_sum(group_buffer(&group, BYTES), BYTES / 4, 4);
        group_close(&group);
    }
}

static void test_group_nccl__answers_in_progress_are_waited_for(void **state)
{
    static float x[LONGEST];

    (void)state;
    setenv("FAKE_NCCL_PROGRESS", "7", 1);
    open_group();
    for (int i = 0; i < SIZES; i++)
        check_sum(x, sizes[i], i);
    group_close(&group);
    unsetenv("FAKE_NCCL_PROGRESS");
}

static void test_group_attach__takes_nccl_for_several_devices_only(void **state)
{
    (void)state;
    check(group_open_team(&world, 4096, &group) == STATUS_OK, "no group of the host", 0);
    const char *before = group_describe(&group);

    check(group_attach(&world, &backend_cpu, rig.context, BYTES, GROUP_SUMS_AUTO, &group) == STATUS_OK, "attach failed", 0);
    check(strcmp(group_describe(&group), before) == 0, "memory of the host is summed over NCCL", 0);
    check(group_attach(&world, &rig.backend, rig.context, BYTES, GROUP_SUMS_AUTO, &group) == STATUS_OK, "attach failed", 0);
    check((group.size > 1) == (strncmp(group_describe(&group), "NCCL", 4) == 0), group_describe(&group), 0);
    group_close(&group);
}

/* A host without a driver among others: nobody waits in NCCL for a rank that computes on the CPU. */
static void test_group_attach__devices_and_cpus_do_not_compute_together(void **state)
{
    const struct backend *backend = world.rank == world.size - 1 ? &backend_cpu : &rig.backend;
    enum status status;

    (void)state;
    check(group_open_team(&world, 4096, &group) == STATUS_OK, "no group of the host", 0);
    status = group_attach(&world, backend, rig.context, BYTES, GROUP_SUMS_AUTO, &group);
    check(status == (group.size == 1 ? STATUS_OK : world.rank == 0 ? STATUS_USAGE : STATUS_ELSEWHERE), "status", (long)status);
    group_close(&group);
}

#define OPEN(test) cmocka_unit_test_setup_teardown(test, open_windows, close_group)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        OPEN(test_group_nccl__sum_is_the_tree_over_the_ranks_bit_for_bit),
        cmocka_unit_test(test_group_nccl__large_sums_in_slices_are_the_tree),
        OPEN(test_group_nccl__the_groups_own_buffer_is_summed),
        OPEN(test_group_nccl__a_number_has_the_same_sum_whatever_stands_beside_it),
        OPEN(test_group_nccl__bytes_of_the_host_go_as_before),
        OPEN(test_group_nccl__settle_waits_for_the_device),
        cmocka_unit_test(test_group_nccl__says_what_it_took),
        cmocka_unit_test(test_group_nccl__some_libraries_sum_without_windows),
        cmocka_unit_test(test_group_nccl__answers_in_progress_are_waited_for),
        cmocka_unit_test(test_group_attach__takes_nccl_for_several_devices_only),
        cmocka_unit_test(test_group_attach__devices_and_cpus_do_not_compute_together),
    };
    const char *name = argc > 0 ? argv[0] : "";
    int failed;

    if (world_open(&argc, &argv, ROLE_VERIFIER, &world) != STATUS_OK || world.size > MOST_RANKS ||
        pretended_device_open(&rig, world.rank) != STATUS_OK)
        world_abort(STATUS_INTERNAL);
    failed = cmocka_run_group_tests_name(name, tests, NULL, NULL);
    if (failed > 0)
        world_abort(STATUS_INTERNAL);
    pretended_device_close(&rig);
    world_close(&world, STATUS_OK);
    return failed;
}
