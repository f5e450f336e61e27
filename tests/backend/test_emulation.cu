/* The emulation behaves as a device does where kernels rely on it: barriers, exchanges within a warp, the order of threads. */
#include "common/backend/cuda/kernel/warp.h"

#include <csetjmp>
#include <cstdarg>

extern "C" {
#include <cmocka.h>
}

enum { THREADS = 96 };

static __global__ void turn_round(const int *from, int *to)
{
    SHARED(shared);
    int *all = (int *)(void *)shared, i = (int)threadIdx.x, base = (int)(blockIdx.x * blockDim.x);

    all[i] = from[base + i];
    __syncthreads();
    to[base + i] = all[(int)blockDim.x - 1 - i];
}

static __global__ void without_barrier(int *to)
{
    SHARED(shared);
    int *all = (int *)(void *)shared, i = (int)threadIdx.x;

    all[i] = i;
    to[i] = all[(int)blockDim.x - 1 - i];
}

static __global__ void overwritten_early(int *to)
{
    SHARED(shared);
    int *all = (int *)(void *)shared, i = (int)threadIdx.x;

    all[i] = i;
    __syncthreads();
    to[i] = all[(int)blockDim.x - 1 - i];
    __syncwarp(); /* of the warp alone, where the block's should be */
    all[i] = -1;
}

static __global__ void sum_by_warp(const int *from, int *to)
{
    int sum = from[threadIdx.x];

    for (int by = 16; by > 0; by /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, by);
    to[threadIdx.x] = sum;
}

static __global__ void half_of_it_leaves(int *count)
{
    if (threadIdx.x % 2 == 0)
        return;
    __syncthreads();
    atomicAdd(count, 1);
}

/* The first warp meets alone, the others among themselves, and as often as they like. */
static __global__ void meet_in_parts(int *to)
{
    SHARED(shared);
    int *all = (int *)(void *)shared, i = (int)threadIdx.x, part = i / 32 == 0 ? 0 : 1, size = part == 0 ? 32 : THREADS - 32;

    for (int round = 0; round < (part == 0 ? 2 : 3); round++) {
        all[i] = i + round;
        warp_meet(part, size);
        to[i] = all[part == 0 ? 31 - i : THREADS - 1 - (i - 32)] - round;
        warp_meet(part, size);
    }
    __syncthreads();
}

/* Each block has what another one of its four began with. */
static __global__ void turn_blocks_round(const int *from, int *to, int meets_before, int meets_behind)
{
    SHARED(shared);
    int *all = (int *)(void *)shared, i = (int)threadIdx.x, base = (int)(blockIdx.x * blockDim.x);

    all[i] = from[base + i];
    if (meets_before)
        cluster_meet();
    to[base + i] = cluster_of(all, 3 - (int)blockIdx.x % 4)[(int)blockDim.x - 1 - i];
    if (meets_behind)
        cluster_meet();
}

static __global__ void see_shared(float *to)
{
    SHARED(shared);

    to[threadIdx.x] = ((float *)(void *)shared)[threadIdx.x];
}

static void test_emulation__a_barrier_is_met_by_all_in_any_order(void **)
{
    int from[3 * THREADS], to[3 * THREADS];

    for (int i = 0; i < 3 * THREADS; i++)
        from[i] = i;
    for (unsigned seed = 0; seed < 5; seed++) {
        const int *source = from;
        int *target = to;

        emulation_order(seed);
        LAUNCH(turn_round, 3, THREADS, THREADS * sizeof(int), NULL, source, target);
        for (int i = 0; i < 3 * THREADS; i++)
            assert_int_equal(to[i], i / THREADS * THREADS + THREADS - 1 - i % THREADS);
    }
    emulation_order(0);
}

static void test_emulation__a_missing_barrier_shows(void **)
{
    int to[THREADS], *target = to, wrong = 0;

    LAUNCH(without_barrier, 1, THREADS, THREADS * sizeof(int), NULL, target);
    for (int i = 0; i < THREADS; i++)
        wrong += to[i] != THREADS - 1 - i;
    assert_true(wrong > 0);
}

static void test_emulation__a_warp_that_runs_ahead_shows_a_barrier_too_few(void **)
{
    int to[THREADS], *target = to, wrong = 0;

    for (unsigned seed = 3; seed < 7; seed += 2) {
        emulation_order(seed);
        LAUNCH(overwritten_early, 1, THREADS, THREADS * sizeof(int), NULL, target);
        for (int i = 0; i < THREADS; i++)
            wrong += to[i] != THREADS - 1 - i;
    }
    emulation_order(0);
    assert_true(wrong > 0);
}

static void test_emulation__a_warp_exchanges_among_its_own(void **)
{
    int from[THREADS], to[THREADS];
    const int *source = from;
    int *target = to;

    for (int i = 0; i < THREADS; i++)
        from[i] = i * i;
    for (unsigned seed = 0; seed < 4; seed++) {
        emulation_order(seed);
        
        LAUNCH(sum_by_warp, 1, THREADS, 0, NULL, source, target);
        for (int i = 0; i < THREADS; i++) {
            int sum = 0;

            for (int j = i / 32 * 32; j < i / 32 * 32 + 32; j++)
                sum += j * j;
            assert_int_equal(to[i], sum);
        }
    }
    emulation_order(0);
}

static void test_emulation__who_has_left_is_not_waited_for(void **)
{
    int count = 0, *target = &count;

    LAUNCH(half_of_it_leaves, 2, THREADS, 0, NULL, target);
    assert_int_equal(count, THREADS);
}

static void test_emulation__parts_of_a_block_meet_apart(void **)
{
    int to[THREADS], *target = to;

    for (unsigned seed = 0; seed < 6; seed++) {
        emulation_order(seed);
        LAUNCH(meet_in_parts, 2, THREADS, THREADS * sizeof(int), NULL, target);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(to[i], i < 32 ? 31 - i : THREADS - 1 - (i - 32));
    }
    emulation_order(0);
}

/* How many numbers are wrong in two clusters of four blocks, by some orders. */
static int wrong_of_clusters(int meets_before, int meets_behind)
{
    int from[8 * THREADS], to[8 * THREADS], wrong = 0;
    const int *source = from;
    int *target = to;

    for (int i = 0; i < 8 * THREADS; i++)
        from[i] = i;
    for (unsigned seed = 0; seed < 6; seed++) {
        emulation_order(seed);
        LAUNCH_TOGETHER(turn_blocks_round, 4, 8, THREADS, THREADS * sizeof(int), NULL, 0, source, target, meets_before, meets_behind);
        for (int i = 0; i < 8 * THREADS; i++)
            wrong += to[i] != i / (4 * THREADS) * 4 * THREADS + 4 * THREADS - 1 - i % (4 * THREADS);
    }
    emulation_order(0);
    return wrong;
}

static void test_emulation__blocks_of_a_cluster_read_each_others_memory(void **)
{
    assert_int_equal(wrong_of_clusters(1, 1), 0);
    assert_true(wrong_of_clusters(0, 1) > 0);
    assert_true(wrong_of_clusters(1, 0) > 0); /* of a block that has ended nothing is left */
}

static void test_emulation__shared_memory_begins_as_nan(void **)
{
    float to[THREADS], *target = to;

    LAUNCH(see_shared, 1, THREADS, THREADS * sizeof(float), NULL, target);
    for (int i = 0; i < THREADS; i++)
        assert_true(to[i] != to[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_emulation__a_barrier_is_met_by_all_in_any_order),
        cmocka_unit_test(test_emulation__a_missing_barrier_shows),
        cmocka_unit_test(test_emulation__a_warp_that_runs_ahead_shows_a_barrier_too_few),
        cmocka_unit_test(test_emulation__a_warp_exchanges_among_its_own),
        cmocka_unit_test(test_emulation__who_has_left_is_not_waited_for),
        cmocka_unit_test(test_emulation__parts_of_a_block_meet_apart),
        cmocka_unit_test(test_emulation__blocks_of_a_cluster_read_each_others_memory),
        cmocka_unit_test(test_emulation__shared_memory_begins_as_nan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
