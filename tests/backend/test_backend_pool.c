#include "common/backend/cpu/pool.h"
#include "tests/backend/rig.h"

#include <stdatomic.h>
#include <time.h>

struct count {
    struct pool *pool;
    atomic_int before, bad;
    int threads;
};

static void count_part(void *argument, int thread)
{
    struct count *count = argument;

    (void)thread;
    for (int i = 1; i <= 3; i++) {
        atomic_fetch_add(&count->before, 1);
        pool_meet(count->pool);
        if (atomic_load(&count->before) < i * count->threads)
            atomic_fetch_add(&count->bad, 1);
        pool_meet(count->pool);
    }
}

static void check_pool(int threads, int times)
{
    struct pool *pool;

    assert_int_equal(pool_open(threads, &pool), STATUS_OK);
    for (int i = 0; i < times; i++) {
        struct count count = {.pool = pool, .threads = threads};

        pool_run(pool, count_part, &count);
        assert_int_equal(atomic_load(&count.before), 3 * threads);
        assert_int_equal(atomic_load(&count.bad), 0);
    }
    pool_close(pool);
}

static void test_pool__every_part_runs_and_meets(void **state)
{
    (void)state;
    check_pool(1, 100);
    check_pool(2, 3000);
    check_pool(3, 500);
    check_pool(7, 100);
}

static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Sleeps between operations, so that the workers are woken from the kernel; and they must have cost nothing meanwhile. */
static void test_pool__idle_threads_sleep_and_wake(void **state)
{
    const struct timespec nap = {.tv_nsec = 100 * 1000 * 1000};
    struct count count = {.threads = 3};
    double before;

    (void)state;
    assert_int_equal(pool_open(3, &count.pool), STATUS_OK);
    for (int i = 0; i < 5; i++) {
        atomic_store(&count.before, 0);
        pool_run(count.pool, count_part, &count);
        before = cpu_seconds();
        nanosleep(&nap, NULL);
        assert_true(cpu_seconds() - before < 0.05);
    }
    assert_int_equal(atomic_load(&count.bad), 0);
    pool_close(count.pool);
}

static void test_pool__stretches_cover_without_overlap(void **state)
{
    struct pool *pool;

    (void)state;
    assert_int_equal(pool_open(3, &pool), STATUS_OK);
    for (int count = 0; count < 50; count++)
        for (int t = 0, next = 0; t < 3; t++) {
            struct stretch stretch = pool_stretch(pool, t, count);

            assert_int_equal(stretch.first, next);
            next = stretch.last;
            assert_true(t < 2 || next == count);
        }
    pool_close(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool__every_part_runs_and_meets),
        cmocka_unit_test(test_pool__idle_threads_sleep_and_wake),
        cmocka_unit_test(test_pool__stretches_cover_without_overlap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
