/* The group over NCCL with the CUDA backend's own memory, stream and sum: over the emulation and the tests' library, and on devices with
 * NCCL itself, one rank to each. */
#include "common/backend/cuda/context.h"
#include "group_rig.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 5000, BYTES = COUNT * 4, MOST_RANKS = 8, SUMS = 20 };

static struct backend_context *context;

static enum status open_group(enum group_sums sums)
{
    check(group_open_team(&world, 4096, &group) == STATUS_OK, "no group of the host", 0);
    return group_open_nccl(&world, &backend_cuda, context, BYTES, 100, sums, &group);
}

static int open_nccl(void **state)
{
    (void)state;
    check(open_group(GROUP_SUMS_NCCL) == STATUS_OK, "no group over NCCL", 0);
    return 0;
}

static int open_one_shot(void **state)
{
    (void)state;
    check(open_group(GROUP_SUMS_ONE_SHOT) == STATUS_OK, "no group with one-shot sums", 0);
    return 0;
}

static int open_auto(void **state)
{
    (void)state;
    check(open_group(GROUP_SUMS_AUTO) == STATUS_OK, "no group that chooses", 0);
    return 0;
}

static int close_group(void **state)
{
    (void)state;
    group_close(&group);
    return 0;
}

static void put(float *x, size_t count, int number)
{
    static float mine[COUNT];

    for (size_t i = 0; i < count; i++)
        mine[i] = given(group.rank, i, number);
    backend_cuda.memory.write(context, x, mine, count * sizeof *x);
}

/* x is the sum of number `number`, with `before` added. */
static void expect(const float *x, size_t count, int number, float before)
{
    static float found[COUNT];

    device_copy_out(context->device, found, x, count * sizeof *x);
    check(group_settle(&group) == STATUS_OK && backend_cuda.step.finish(context) == STATUS_OK, "the step failed", number);
    for (size_t i = 0; i < count; i++) {
        float expected = before + tree(i, number);

        check(memcmp(&expected, &found[i], sizeof expected) == 0, "a sum is not the tree's", (long)i);
    }
}

static void check_sums(float *x)
{
    for (int n = 0; n < SUMS; n++) {
        size_t count = n % 4 == 0 ? COUNT : 1 + mixed(1, 2, (uint32_t)n) % COUNT; /* odd ones, too */

        put(x, count, n);
        check(group_sum(&group, x, count) == STATUS_OK, "sum failed", n);
        expect(x, count, n, 0.0f);
    }
}

static void test_group_cuda__sums_memory_of_devices(void **state)
{
    struct arena arena;

    (void)state;
    check(backend_cuda.memory.open(context, BYTES, "a test's array", &arena) == STATUS_OK, "no memory", 0);
    check_sums((float *)(void *)arena.base);
    backend_cuda.memory.close(context, &arena);
}

static void test_group_cuda__sums_its_own_buffer(void **state)
{
    (void)state;
    check(group_buffer(&group, BYTES) != NULL, "no buffer", 0);
    check_sums(group_buffer(&group, BYTES));
}

/* As a step has them: several sums, which nobody waits for, added to what is there; recorded once and played. */
static void test_group_cuda__one_shot_sums_are_recorded(void **state)
{
    enum { LAYERS = 5, PLAYED = 4, FEW = 600 };
    float *partial = group_buffer(&group, BYTES), *x;
    struct device_graph *graph;
    struct arena arena;

    (void)state;
    check(group_sums_alone(&group, FEW), "they are not alone", 0);
    check(backend_cuda.memory.open(context, BYTES, "a test's array", &arena) == STATUS_OK, "no memory", 0);
    x = (float *)(void *)arena.base;
    put(partial, FEW, 3);
    device_record(context->device);
    for (int i = 0; i < LAYERS; i++)
        check(group_add(&group, x, partial, FEW) == STATUS_OK, "a sum is not recorded", i);
    graph = device_recorded(context->device);
    check(graph != NULL, "no graph", 0);
    for (int i = 0; i < PLAYED; i++)
        device_play(context->device, graph);
    static float found[FEW];
    device_copy_out(context->device, found, x, sizeof found);
    check(group_settle(&group) == STATUS_OK && backend_cuda.step.finish(context) == STATUS_OK, "the steps failed", 0);
    for (size_t i = 0; i < FEW; i++) {
        float expected = 0.0f;

        for (int n = 0; n < LAYERS * PLAYED; n++)
            expected += tree(i, 3);
        check(memcmp(&expected, &found[i], sizeof expected) == 0, "what was played is not what was recorded", (long)i);
    }
    device_graph_close(graph);
    backend_cuda.memory.close(context, &arena);
}

static void test_group_cuda__says_how_it_sums(void **state)
{
    (void)state;
    check(strstr(group_describe(&group), ", up to 20 KiB by one-shot kernels") != NULL, group_describe(&group), 0);
    check(!group_sums_alone(&group, 1 << 20), "a sum that no inbox holds", 0);
}

/* A rank that gives up lets the others' kernels end. */
static void test_group_cuda__a_sum_that_is_stopped_ends(void **state)
{
    float *x = group_buffer(&group, BYTES);

    (void)state;
    if (group.size > 1 && group.rank == 0) {
        backend_cuda.device.one_shot->stop(context);
        check(group_sum(&group, x, 10) == STATUS_OK, "sum failed", 0);
        check(backend_cuda.step.finish(context) == STATUS_OK, "the device failed", 0);
    }
}

/* Machines made from one image have one name, and do not reach each other's memory. */
static void test_group_cuda__hosts_of_one_name_are_several(void **state)
{
    char boot[WORLD_BOOT_BYTES];

    (void)state;
    memcpy(boot, world.boot, sizeof boot);
    check(boot[0] != '\0', "the kernel does not say which start this is", 0);
    world.boot[0] = (char)('g' + world.rank); /* no digit of the kernel's */
    check(open_group(GROUP_SUMS_ONE_SHOT) == (world.size > 1 ? STATUS_USAGE : STATUS_OK), "devices of several hosts reach each other", 0);
    memcpy(world.boot, boot, sizeof boot);
    group_close(&group);
}

#define OPEN(sums, test) cmocka_unit_test_setup_teardown(test_group_cuda__##test, open_##sums, close_group)

/* What a machine with one device may lack: NCCL, and memory that a device shares with other processes, for which CUDA says "not supported". One-shot
 * sums are opened once to see. Anything else that is wrong is for the tests. */
static const char *lacking(void)
{
    const char *reason = "";
    struct backend_handle handle;
    int shares;

    if (world.size > 1 || strstr(backend_cuda.describe(context), "emulation") != NULL)
        return NULL;
    if (dlopen("libnccl.so.2", RTLD_NOW) == NULL)
        return "there is no libnccl.so.2";
    shares = backend_cuda.device.one_shot->open(context, 0, 1, COUNT, &handle, &reason);
    backend_cuda.device.one_shot->close(context);
    return !shares && strstr(reason, "not supported") != NULL ? reason : NULL;
}

static int skipped(const char *reason)
{
    printf("skipped: %s\n", reason);
    return 77;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_cuda__hosts_of_one_name_are_several),
        OPEN(nccl, sums_memory_of_devices),     OPEN(nccl, sums_its_own_buffer),     OPEN(auto, sums_memory_of_devices),
        OPEN(auto, sums_its_own_buffer),        OPEN(one_shot, says_how_it_sums),    OPEN(one_shot, sums_memory_of_devices),
        OPEN(one_shot, sums_its_own_buffer),    OPEN(one_shot, one_shot_sums_are_recorded),
        OPEN(one_shot, a_sum_that_is_stopped_ends), /* the last: a stopped group sums no more */
    };
    const char *name = argc > 0 ? argv[0] : "", *lack_of_it;
    struct device_lack lack = {0};
    int devices = device_count(&lack), failed;

    if (devices == 0)
        return skipped(lack.why);
    if (world_open(&argc, &argv, ROLE_VERIFIER, &world) != STATUS_OK || world.size > MOST_RANKS)
        world_abort(STATUS_INTERNAL);
    if (world.node_size > devices) {
        world_close(&world, STATUS_OK);
        return skipped("fewer devices than ranks");
    }
    check(backend_cuda.open(&(struct backend_options){.threads = 1, .max_rows = 1, .device = world.node_rank}, &context) == STATUS_OK,
          "no device", world.node_rank);
    if (world.rank == 0)
        print_message("%s\n", backend_cuda.describe(context));
    lack_of_it = lacking();
    failed = lack_of_it == NULL ? cmocka_run_group_tests_name(name, tests, NULL, NULL) : 0;
    if (failed > 0)
        world_abort(STATUS_INTERNAL);
    backend_cuda.close(context);
    world_close(&world, STATUS_OK);
    return lack_of_it != NULL ? skipped(lack_of_it) : failed;
}
