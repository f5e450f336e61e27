/* One-shot sums of the CUDA backend between processes, over the emulation: no group, no MPI, no NCCL. Each rank is a child of this process. */
#include "common/backend/cuda/context.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 1500, SUMS = 24, WRONG = 1 };

/* What the children share. */
struct page {
    struct backend_handle handle[ONE_SHOT_RANKS];
    _Atomic int arrived;
};

struct ring {
    struct page *page;
    int rank, size, meetings;
    struct backend_context *context;
    struct arena arena;
    float *partial, *x; /* [MOST] */
};

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", what);
    _exit(WRONG);
}

static void meet(struct ring *ring)
{
    ring->meetings++;
    ring->page->arrived++;
    while (ring->page->arrived < ring->meetings * ring->size)
        sched_yield();
}

/* Numbers of sizes so different that the order of adding shows. */
static float given(int rank, size_t i, int number)
{
    const struct rng_key key = {.seed = 3, .request = (uint32_t)number, .position = (uint32_t)i};
    uint32_t words[4];

    rng_words(&key, RNG_NOISE, (uint32_t)rank, words);
    return ((float)(words[0] >> 8) - 0x1p23f) * (float)(1 << words[1] % 20);
}

static float tree(const struct ring *ring, size_t i, int number)
{
    float terms[ONE_SHOT_RANKS];

    for (int r = 0; r < ring->size; r++)
        terms[r] = given(r, i, number);
    return backend_tree_sum(terms, ring->size);
}

static void open_ring(struct ring *ring)
{
    const char *reason = "";

    check(backend_cuda.open(&(struct backend_options){.threads = 1, .max_rows = 1, .device = ring->rank}, &ring->context) == STATUS_OK, "no device");
    check(backend_cuda.memory.open(ring->context, 2 * MOST * sizeof(float), "a test's arrays", &ring->arena) == STATUS_OK, "no memory");
    ring->partial = (float *)(void *)ring->arena.base;
    ring->x = ring->partial + MOST;
    check(backend_cuda.device.one_shot->open(ring->context, ring->rank, ring->size, MOST, &ring->page->handle[ring->rank], &reason), reason);
    meet(ring);
    check(backend_cuda.device.one_shot->connect(ring->context, ring->page->handle, &reason), reason);
    meet(ring);
}

static void close_ring(struct ring *ring)
{
    backend_cuda.device.one_shot->leave(ring->context);
    meet(ring);
    backend_cuda.device.one_shot->close(ring->context);
    backend_cuda.memory.close(ring->context, &ring->arena);
    backend_cuda.close(ring->context);
}

/* Runs the body in so many processes; every one must find all right. Where one does not, the others would wait for it. */
static void run_ranks(int size, void (*body)(struct ring *))
{
    struct page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[ONE_SHOT_RANKS];
    int code, good = 1;

    assert_true(page != MAP_FAILED);
    for (int r = 0; r < size; r++) {
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            struct ring ring = {.page = page, .rank = r, .size = size};

            open_ring(&ring);
            body(&ring);
            close_ring(&ring);
            _exit(0);
        }
        children[r] = child;
    }
    for (int r = 0; r < size; r++) {
        pid_t ended = wait(&code);

        good &= ended > 0 && WIFEXITED(code) && WEXITSTATUS(code) == 0;
        for (int i = 0; i < size; i++) {
            if (children[i] == ended)
                children[i] = 0;
            else if (!good && children[i] > 0)
                kill(children[i], SIGKILL);
        }
    }
    munmap(page, sizeof *page);
    assert_true(good);
}

static void put(struct ring *ring, size_t count, int number)
{
    for (size_t i = 0; i < count; i++)
        ring->partial[i] = given(ring->rank, i, number);
}

/* Sizes that change, odd ones, one number, all: what an inbox held before is not taken for new. */
static void sum_many(struct ring *ring)
{
    for (int n = 0; n < SUMS; n++) {
        size_t count = n % 5 == 0 ? MOST : n % 5 == 1 ? 1 : (size_t)(n * 61 % MOST + 1);
        int adds = n % 3 == 1;

        put(ring, count, n);
        for (size_t i = 0; i < count; i++)
            ring->x[i] = 100.0f;
        backend_cuda.device.one_shot->sum(ring->context, ring->partial, count, ring->x, adds);
        check(backend_cuda.step.finish(ring->context) == STATUS_OK, "the device failed");
        for (size_t i = 0; i < count; i++) {
            float expected = tree(ring, i, n);

            expected = adds ? 100.0f + expected : expected;
            check(memcmp(&expected, &ring->x[i], sizeof expected) == 0, "a sum is not the tree's");
        }
    }
}

static void test_cuda_one_shot__sums_are_the_trees(void **state)
{
    (void)state;
    for (int size = 1; size <= ONE_SHOT_RANKS - 4; size++)
        run_ranks(size, sum_many);
}

/* Rank 0 says so before it waits: the numbers that never come are not waited for. */
static void stop_rank_0(struct ring *ring)
{
    if (ring->rank == 0) {
        backend_cuda.device.one_shot->stop(ring->context);
        backend_cuda.device.one_shot->sum(ring->context, ring->partial, 10, ring->x, 0);
        check(backend_cuda.step.finish(ring->context) == STATUS_OK, "the device failed");
    }
}

static void test_cuda_one_shot__stopped_sums_end(void **state)
{
    (void)state;
    run_ranks(2, stop_rank_0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_one_shot__sums_are_the_trees),
        cmocka_unit_test(test_cuda_one_shot__stopped_sums_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
