/* Devices and memory that words of sbatch ask for. */
#include "verifier/job/launch_ask.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { TASKS = 4 };
#define MIB INT64_C(1048576)
#define GIB (1024 * MIB)

static void test_launch_ask__devices_are_those_of_all_nodes(void **state)
{
    static const struct {
        const char *words;
        int devices;
    } cases[] = {{"", 0},
                 {"-p gpu --time=4:00:00", 0},
                 {"--nodes=2 --gpus-per-node=8", 16},
                 {"--gpus-per-node=a100:8 -N2", 16},
                 {"-N 2  --gpus-per-node 4", 8},
                 {"-N 2-4 --gpus-per-node 4", 8}, /* those that are sure */
                 {"--nodes 1 --gres=gpu:4", 4},
                 {"--gres=gpu:h100:4 --nodes=3", 12},
                 {"--gres=gpu --nodes=3", 3},
                 {"--gres=gpu:h100 --nodes=3", 3},
                 {"--gres=gpu:8,nvme:1 --nodes=1", 8},
                 {"--gres=nvme:1,gpu:8 --nodes=1", 8},
                 {"--gres=gpu:a100:2,gpu:h100:4,gpuless:9 -N2", 12},
                 {"--gres=gres/gpu:2 -N2", 4},
                 {"--gres gpu:2(S:0-1) -N2", 4},
                 {"--gres=nvme:4 -N2", 0},
                 {"--gpus=6", 6},
                 {"--gpus=a100:2,h100:4", 6},
                 {"-G 6", 6},
                 {"-Gh100:6", 6},
                 {"--gpus=6 --nodes=2 --gpus-per-node=8", 6},
                 {"--gpus-per-task=2", 2 * TASKS},
                 {"--gpus-per-task=a100:1 --ntasks=3", 3},
                 {"--gpus-per-node=8", -1},
                 {"--gres=gpu:8,nvme:1", -1},
                 {"--gpus-per-node=2 --ntasks-per-node=2", TASKS},
                 {"--gpus-per-node=8 --nodes=1 --gpus-per-node=2", 2}, /* the last one counts */
                 {"--nodes", 0}};
    struct launch_ask ask;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        launch_ask_read(&ask, cases[i].words, TASKS, 0);
        if (launch_ask_devices(&ask) != cases[i].devices)
            fail_msg("'%s': %d, expected %d", cases[i].words, launch_ask_devices(&ask), cases[i].devices);
    }
}

static void test_launch_ask__memory_is_that_of_all_nodes_and_of_one_task(void **state)
{
    static const struct {
        const char *words;
        int64_t all, one;
    } cases[] = {{"", -1, -1},
                 {"--mem=0", -1, -1}, /* all that a node has */
                 {"--mem=much", -1, -1},
                 {"--mem=64G", -1, 64 * GIB},
                 {"--mem=64G -N 2", 128 * GIB, 64 * GIB},
                 {"--mem 512 --nodes=1", 512 * MIB, 512 * MIB},
                 {"--mem=1t --nodes=1", 1024 * GIB, 1024 * GIB},
                 {"--mem=2048K --nodes=1", 2 * MIB, 2 * MIB},
                 {"--mem-per-cpu=2G", 2 * GIB * TASKS * 8, 2 * GIB * TASKS * 8},
                 {"--mem-per-cpu=2G -c 3", 2 * GIB * TASKS * 3, 2 * GIB * TASKS * 3},
                 {"--mem-per-gpu=10G --gpus=2", 20 * GIB, 20 * GIB},
                 {"--mem-per-gpu=10G", -1, -1}};
    struct launch_ask ask;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        launch_ask_read(&ask, cases[i].words, TASKS, 8);
        if (launch_ask_memory(&ask) != cases[i].all || launch_ask_task_memory(&ask) != cases[i].one)
            fail_msg("'%s': %" PRId64 " and %" PRId64, cases[i].words, launch_ask_memory(&ask), launch_ask_task_memory(&ask));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launch_ask__devices_are_those_of_all_nodes),
        cmocka_unit_test(test_launch_ask__memory_is_that_of_all_nodes_and_of_one_task),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
