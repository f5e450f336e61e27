/* The group over NCCL with the CUDA backend's own memory, stream and sum: over the emulation and the tests' library, and on devices with
 * NCCL itself, one rank to each. */
#include "common/backend/cuda/context.h"
#include "group_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 5000, BYTES = COUNT * 4, MOST_RANKS = 8, SUMS = 20 };

static struct backend_context *context;

/* Several sums are asked for before one is waited for, as in a step. */
static void check_sums(float *x)
{
    static float mine[COUNT], found[COUNT];

    for (int n = 0; n < SUMS; n++) {
        for (int i = 0; i < COUNT; i++)
            mine[i] = given(group.rank, i, n);
        backend_cuda.write(context, x, mine, BYTES);
        check(group_sum(&group, x, COUNT) == STATUS_OK, "sum failed", n);
        device_copy_out(context->device, found, x, BYTES);
        check(group_settle(&group) == STATUS_OK && backend_cuda.finish(context) == STATUS_OK, "the step failed", n);
        for (int i = 0; i < COUNT; i++) {
            float expected = tree(i, n);

            check(memcmp(&expected, &found[i], sizeof expected) == 0, "a sum is not the tree's", i);
        }
    }
}

static void test_group_cuda__sums_memory_of_devices(void **state)
{
    struct arena arena;

    (void)state;
    check(backend_cuda.memory_open(context, BYTES, "a test's array", &arena) == STATUS_OK, "no memory", 0);
    check_sums((float *)(void *)arena.base);
    backend_cuda.memory_close(context, &arena);
}

static void test_group_cuda__sums_its_own_buffer(void **state)
{
    (void)state;
    check(group_buffer(&group, BYTES) != NULL, "no buffer", 0);
    check_sums(group_buffer(&group, BYTES));
}

static int skipped(const char *reason)
{
    printf("skipped: %s\n", reason);
    return 77;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_cuda__sums_memory_of_devices),
        cmocka_unit_test(test_group_cuda__sums_its_own_buffer),
    };
    const char *name = argc > 0 ? argv[0] : "", *reason = "";
    int devices = device_count(&reason), failed;

    if (devices == 0)
        return skipped(reason);
    if (world_open(&argc, &argv, ROLE_VERIFIER, &world) != STATUS_OK || world.size > MOST_RANKS)
        world_abort(STATUS_INTERNAL);
    if (world.node_size > devices) {
        world_close(&world, STATUS_OK);
        return skipped("fewer devices than ranks");
    }
    check(backend_cuda.open(&(struct backend_options){.threads = 1, .max_rows = 1, .device = world.node_rank}, &context) == STATUS_OK,
          "no device", world.node_rank);
    check(group_open_team(&world, 4096, &group) == STATUS_OK, "no group of the host", 0);
    check(group_open_nccl(&world, &backend_cuda, context, BYTES, 100, &group) == STATUS_OK, "no group over NCCL", 0);
    if (world.rank == 0)
        print_message("%s, %s\n", backend_cuda.describe(context), group_describe(&group));
    failed = cmocka_run_group_tests_name(name, tests, NULL, NULL);
    if (failed > 0)
        world_abort(STATUS_INTERNAL);
    group_close(&group);
    backend_cuda.close(context);
    world_close(&world, STATUS_OK);
    return failed;
}
