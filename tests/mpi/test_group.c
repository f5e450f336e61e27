/* Every kind of group, with as many ranks as the job has. A rank that finds something wrong ends the job, because the others would
 * wait for it. */
#include "common/backend/backend.h"
#include "common/base/clock.h"
#include "group_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

enum { BUFFER = 4096, LONGEST = 5 * BUFFER + 12, MS = 1000000, MOST_RANKS = 4 };


static int open_shared(void **state)
{
    (void)state;
    return group_open_shared(&world, BUFFER, &group) == STATUS_OK ? 0 : -1;
}

static int open_mpi(void **state)
{
    (void)state;
    return group_open_mpi(&world, BUFFER, &group) == STATUS_OK ? 0 : -1;
}

static int close_group(void **state)
{
    (void)state;
    group_close(&group);
    return 0;
}

static void nap(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static void paint(unsigned char *bytes, size_t count, int rank, int number)
{
    uint32_t start = mixed((uint32_t)rank, (uint32_t)number, 7);

    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(start + i * 37 + i / 256);
}

static void check_sum(size_t count, int number)
{
    static float x[LONGEST];

    for (size_t i = 0; i < count; i++)
        x[i] = given(group.rank, i, number);
    check(group_sum(&group, x, count) == STATUS_OK, "sum failed", number);
    for (size_t i = 0; i < count; i++) {
        float expected = tree(i, number);

        check(memcmp(&expected, &x[i], sizeof expected) == 0, "a sum is not the tree's", number);
    }
}

static void check_broadcast(size_t count, int number)
{
    static unsigned char bytes[LONGEST + 1], expected[LONGEST];

    paint(expected, count, 0, number);
    paint(bytes, count, group.rank, number);
    bytes[count] = 0x5a;
    check(group_broadcast(&group, bytes, count) == STATUS_OK, "broadcast failed", number);
    check(memcmp(bytes, expected, count) == 0 && bytes[count] == 0x5a, "broadcast bytes differ", number);
}

static void check_gather(size_t count, int number)
{
    static unsigned char mine[LONGEST], all[MOST_RANKS * LONGEST], expected[LONGEST];

    paint(mine, count, group.rank, number);
    check(group_gather(&group, mine, count, group.rank == 0 ? all : NULL) == STATUS_OK, "gather failed", number);
    for (int r = 0; group.rank == 0 && r < group.size; r++) {
        paint(expected, count, r, number);
        check(memcmp(all + (size_t)r * count, expected, count) == 0, "gathered bytes differ", number);
    }
}

static const size_t sizes[] = {1, 2, 3, 15, 257, 1023, 1024, 1025, 4095, 4096, 4097, 8192, 10007, LONGEST};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void test_group__sum_is_the_tree_over_the_ranks_bit_for_bit(void **state)
{
    (void)state;
    check(group.size == world.size && group.rank == world.rank, "the group is not the team", 0);
    for (int i = 0; i < SIZES; i++)
        check_sum(sizes[i], i);
}

static void test_group__broadcast_gives_rank_0s_bytes(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++)
        check_broadcast(sizes[i], i);
}

static void test_group__gather_keeps_rank_order(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++)
        check_gather(sizes[i], i);
}

/* Every rank draws the same operations and its own delays. */
static void test_group__twenty_thousand_mixed_operations_stay_consistent(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint32_t word = mixed(11, (uint32_t)i, 1), delay = mixed(13, (uint32_t)i, (uint32_t)group.rank + 2);
        size_t count = word % 64 == 0 ? 1 + word / 64 % LONGEST : 1 + word / 64 % 300;

        if (delay % 256 == 0)
            nap((long)(delay / 256 % 200000));
        switch (word / 4 % 3) {
        case 0:
            check_sum(count, i);
            break;
        case 1:
            check_broadcast(count, i);
            break;
        default:
            check_gather(count, i);
        }
    }
}

static double cpu_ms(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

static void test_group__a_waiting_rank_uses_little_cpu(void **state)
{
    enum { WAIT_MS = 300, MOST_CPU_MS = 100 };
    float x[16] = {0};

    (void)state;
    check(group_sum(&group, x, 16) == STATUS_OK, "sum failed", 0); /* all begin together */
    for (int i = 0; i < 2; i++) {
        int64_t start = clock_ns();
        double cpu = cpu_ms();

        if (group.rank == 0)
            nap((long)WAIT_MS * MS);
        check((i == 0 ? group_sum(&group, x, 16) : group_broadcast(&group, x, sizeof x)) == STATUS_OK, "operation failed", i);
        cpu = cpu_ms() - cpu;
        check(clock_ns() - start > (int64_t)(WAIT_MS - 50) * MS, "a rank did not wait", i);
        check(cpu < MOST_CPU_MS, "milliseconds of CPU used while waiting", (long)cpu);
        if (group.rank == group.size - 1 && group.size > 1)
            print_message("%s: %.1f ms of CPU in %d ms of waiting\n", group.kind->name, cpu, WAIT_MS);
        check(group_sum(&group, x, 16) == STATUS_OK, "sum failed", i);
    }
}

static void test_group__a_sum_is_soon_done(void **state)
{
    enum { SUMS = 2000, COUNT = 256 };
    static float x[COUNT];
    int64_t start;

    (void)state;
    check(group_sum(&group, x, COUNT) == STATUS_OK, "sum failed", 0);
    start = clock_ns();
    for (int i = 0; i < SUMS; i++)
        check(group_sum(&group, x, COUNT) == STATUS_OK, "sum failed", i);
    if (group.rank == 0)
        print_message("%s, %d ranks: %.1f us for a sum of %d\n", group.kind->name, group.size, (double)(clock_ns() - start) / 1e3 / SUMS,
                      COUNT);
}

static void test_group_team__ranks_of_one_host_share_memory(void **state)
{
    (void)state;
    assert_int_equal(group_open_team(&world, BUFFER, &group), STATUS_OK);
    assert_string_equal(group.kind->name, world.size == 1 ? "self" : "shared memory");
    check_sum(1025, 1);
    check_broadcast(4097, 2);
    check_gather(4097, 3);
    group_close(&group);
}

#define OF_BOTH_KINDS(test)                                                                                                                \
    cmocka_unit_test_setup_teardown(test, open_shared, close_group), cmocka_unit_test_setup_teardown(test, open_mpi, close_group)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        OF_BOTH_KINDS(test_group__sum_is_the_tree_over_the_ranks_bit_for_bit),
        OF_BOTH_KINDS(test_group__broadcast_gives_rank_0s_bytes),
        OF_BOTH_KINDS(test_group__gather_keeps_rank_order),
        OF_BOTH_KINDS(test_group__twenty_thousand_mixed_operations_stay_consistent),
        OF_BOTH_KINDS(test_group__a_waiting_rank_uses_little_cpu),
        OF_BOTH_KINDS(test_group__a_sum_is_soon_done),
        cmocka_unit_test(test_group_team__ranks_of_one_host_share_memory),
    };
    const char *name = argc > 0 ? argv[0] : "";
    int failed;

    if (world_open(&argc, &argv, ROLE_VERIFIER, &world) != STATUS_OK || world.size > MOST_RANKS)
        world_abort(STATUS_INTERNAL);
    failed = cmocka_run_group_tests_name(name, tests, NULL, NULL);
    if (failed > 0)
        world_abort(STATUS_INTERNAL);
    world_close(&world, STATUS_OK);
    return failed;
}
