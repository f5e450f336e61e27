/* Over topologies that hwloc makes up of a line of text. */
#include "common/backend/cpu/nodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MOST_THREADS = 16 };

static cpu_set_t cores(int first, int last)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (int i = first; i <= last; i++)
        CPU_SET(i, &set);
    return set;
}

static cpu_set_t both(cpu_set_t a, cpu_set_t b)
{
    CPU_OR(&a, &a, &b);
    return a;
}

/* Checks how `threads` threads are shared out over nodes with the cores 0-3 and 4-7, as far as they are in `own`: so many on the first. */
static void check_two(const char *topology, cpu_set_t own, int threads, int on_first)
{
    const cpu_set_t node[2] = {cores(0, 3), cores(4, 7)};
    cpu_set_t place[MOST_THREADS];
    struct nodes nodes;

    setenv("HWLOC_SYNTHETIC", topology, 1);
    nodes_find(&own, &nodes);
    assert_int_equal(nodes_places(&nodes, threads, place), 2);
    for (int t = 0; t < threads; t++) {
        cpu_set_t wanted;

        CPU_AND(&wanted, &own, &node[t >= on_first]);
        assert_true(CPU_EQUAL(&place[t], &wanted));
    }
}

static void check_one(const char *topology, cpu_set_t own, int threads)
{
    cpu_set_t place[MOST_THREADS];
    struct nodes nodes;

    setenv("HWLOC_SYNTHETIC", topology, 1);
    nodes_find(&own, &nodes);
    assert_int_equal(nodes_places(&nodes, threads, place), 1);
}

static void test_nodes__threads_keep_to_their_part_of_the_cores(void **state)
{
    (void)state;
    check_two("node:2 core:4 pu:1", cores(0, 7), 8, 4);
    check_two("node:2 core:4 pu:1", cores(0, 7), 4, 2);
    check_two("node:2 core:4 pu:1", cores(0, 7), 2, 1);
    check_two("node:2 core:4 pu:1", cores(0, 7), 9, 4);
    check_two("node:2 core:4 pu:1", both(cores(2, 3), cores(4, 7)), 6, 2); /* the launcher took two away */
}

static void test_nodes__who_has_one_or_would_not_come_out_even_is_left_alone(void **state)
{
    (void)state;
    check_one("node:1 core:8 pu:1", cores(0, 7), 8);
    check_one("node:2 core:4 pu:1", cores(4, 7), 4);
    check_one("node:2 core:4 pu:1", cores(0, 7), 1);
    check_one("node:2 core:4 pu:1", cores(0, 7), 3);
}

static void test_nodes__memory_without_cores_of_its_own_is_not_a_place(void **state)
{
    (void)state;
    check_two("[numa] pack:2 [numa] core:4 pu:1", cores(0, 7), 8, 4);
    check_two("pack:2 [numa] [numa] core:4 pu:1", cores(0, 7), 8, 4);
    check_one("[numa] [numa] core:8 pu:1", cores(0, 7), 8);
}

static int asked; /* how often the program asked what a thread may run on */

int __real_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    asked++;
    return __real_sched_getaffinity(pid, size, set);
}

static void take_affinity(void *argument, int thread)
{
    cpu_set_t *affinity = argument;

    __real_sched_getaffinity(0, sizeof affinity[thread], &affinity[thread]);
}

/* The second pool begins with a caller that the first has bound, and what that one may run on says nothing. */
static void test_nodes__each_thread_of_a_pool_is_bound(void **state)
{
    char topology[64];
    cpu_set_t own, affinity[2];
    struct pool *pool;
    int core[2], count = 0;

    (void)state;
    sched_getaffinity(0, sizeof own, &own);
    for (int i = 0; i < CPU_SETSIZE && count < 2; i++)
        if (CPU_ISSET(i, &own))
            core[count++] = i;
    if (count < 2) {
        print_message("skipped: one core, and there is nothing to choose\n");
        skip();
    }
    snprintf(topology, sizeof topology, "node:2 pu:1(indexes=%d,%d)", core[0], core[1]);
    setenv("HWLOC_SYNTHETIC", topology, 1);
    for (int i = 0; i < 2; i++) {
        asked = 0;
        assert_int_equal(pool_open(2, &pool), STATUS_OK);
        assert_int_equal(nodes_settle(pool), 2);
        assert_true(i == 0 || asked == 0);
        pool_run(pool, take_affinity, affinity);
        pool_close(pool);
        for (int t = 0; t < 2; t++) {
            assert_int_equal(CPU_COUNT(&affinity[t]), 1);
            assert_true(CPU_ISSET(core[t], &affinity[t]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes__threads_keep_to_their_part_of_the_cores),
        cmocka_unit_test(test_nodes__who_has_one_or_would_not_come_out_even_is_left_alone),
        cmocka_unit_test(test_nodes__memory_without_cores_of_its_own_is_not_a_place),
        cmocka_unit_test(test_nodes__each_thread_of_a_pool_is_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
