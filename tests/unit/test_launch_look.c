/* Devices that words of sbatch ask for. */
#include "verifier/launch_look.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_launch_look__devices_are_those_of_all_nodes(void **state)
{
    static const struct {
        const char *words;
        int devices;
    } cases[] = {{"", 0},
                 {"-p gpu --time=4:00:00", 0},
                 {"--nodes=2 --gpus-per-node=8", 16},
                 {"--gpus-per-node=a100:8 -N2", 16},
                 {"-N 2  --gpus-per-node 4", 8},
                 {"--nodes 1 --gres=gpu:4", 4},
                 {"--gres=gpu:h100:4 --nodes=3", 12},
                 {"--gpus=6", 6},
                 {"-G 6", 6},
                 {"--gpus-per-node=8", -1},
                 {"--gpus-per-node=8 --nodes=1 --gpus-per-node=2", 2}}; /* the last one counts */

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (launch_look_devices(cases[i].words) != cases[i].devices)
            fail_msg("'%s': %d, expected %d", cases[i].words, launch_look_devices(cases[i].words), cases[i].devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_launch_look__devices_are_those_of_all_nodes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
