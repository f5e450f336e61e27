#include "common/backend/cpu/pool.h"

#include "common/base/cores.h"
#include "common/base/log.h"
#include "common/base/relax.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SPINS = 700,  /* about 30 us where a pause takes 140 cycles; no spinning where there are more threads than cores */
    YIELDS = 400, /* then yields, so that other processes can run */
    GATE_LINE = 64,
};

/* A counter; threads wait until it is no longer the value that they have seen. It has cache lines of its own, as threads spin on it. */
struct gate {
    _Alignas(GATE_LINE) atomic_uint value;
    atomic_int sleepers;
};

struct worker {
    struct pool *pool;
    pthread_t thread;
    int index;
};

struct pool {
    int threads;
    int spins;
    struct gate start; /* opens when there is a part to run */
    struct gate met;   /* opens when all threads have arrived */
    _Alignas(GATE_LINE) atomic_int arrived;
    _Alignas(GATE_LINE) pool_part *part; /* NULL ends the workers; written before start opens */
    void *argument;
    struct worker *workers; /* [threads], 0 is unused */
};

/* The kernel compares the value again under its own lock, so no thread sleeps at a gate that has opened meanwhile. */
static void gate_sleep(struct gate *gate, unsigned seen)
{
    atomic_fetch_add(&gate->sleepers, 1);
    syscall(SYS_futex, &gate->value, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_sub(&gate->sleepers, 1);
}

static void gate_wait(struct gate *gate, unsigned seen, int spins)
{
    for (int i = 0; i < spins; i++) {
        if (atomic_load_explicit(&gate->value, memory_order_acquire) != seen)
            return;
        relax();
    }
    for (int i = 0; i < YIELDS; i++) {
        if (atomic_load_explicit(&gate->value, memory_order_acquire) != seen)
            return;
        sched_yield();
    }
    while (atomic_load(&gate->value) == seen)
        gate_sleep(gate, seen);
}

/* Both accesses are sequentially consistent, as are the sleeper's: either the sleeper's count is seen here, or the new value is
 * seen there. */
static void gate_open(struct gate *gate)
{
    atomic_fetch_add(&gate->value, 1);
    if (atomic_load(&gate->sleepers) > 0)
        syscall(SYS_futex, &gate->value, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* The last to arrive opens the gate; only then can anyone arrive for the next time. */
static void arrive(struct pool *pool, int wait)
{
    unsigned seen = atomic_load_explicit(&pool->met.value, memory_order_acquire);

    if (atomic_fetch_add(&pool->arrived, 1) + 1 == pool->threads) {
        atomic_store(&pool->arrived, 0);
        gate_open(&pool->met);
    } else if (wait) {
        gate_wait(&pool->met, seen, pool->spins);
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct pool *pool = worker->pool;

    for (unsigned seen = 0;; seen++) {
        gate_wait(&pool->start, seen, pool->spins);
        if (pool->part == NULL)
            return NULL;
        pool->part(pool->argument, worker->index);
        arrive(pool, 0);
    }
}

void pool_run(struct pool *pool, pool_part *part, void *argument)
{
    if (pool->threads == 1) {
        part(argument, 0);
        return;
    }
    pool->part = part;
    pool->argument = argument;
    gate_open(&pool->start);
    part(argument, 0);
    arrive(pool, 1);
}

void pool_meet(struct pool *pool)
{
    if (pool->threads > 1)
        arrive(pool, 1);
}

int pool_threads(const struct pool *pool)
{
    return pool->threads;
}

struct stretch pool_stretch(const struct pool *pool, int thread, int count)
{
    return (struct stretch){
        .first = (int)((int64_t)count * thread / pool->threads),
        .last = (int)((int64_t)count * (thread + 1) / pool->threads),
    };
}

static void stop_workers(struct pool *pool, int started)
{
    pool->part = NULL;
    gate_open(&pool->start);
    for (int i = 1; i < started; i++)
        pthread_join(pool->workers[i].thread, NULL);
}

/* Is there a core for each thread? If not, a thread that spins may keep the very thread that it waits for from running. */
static int has_cores(int threads)
{
    const cpu_set_t *own = cores_own();

    return own == NULL || threads <= CPU_COUNT(own);
}

enum status pool_open(int threads, struct pool **pool)
{
    struct pool *new = aligned_alloc(GATE_LINE, sizeof *new);
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    int started = 1;

    if (new == NULL || workers == NULL) {
        log_error("cannot have memory for %d threads", threads);
        goto free_memory;
    }
    memset(new, 0, sizeof *new);
    new->threads = threads;
    new->spins = has_cores(threads) ? SPINS : 0;
    new->workers = workers;
    for (; started < threads; started++) {
        int error;

        workers[started] = (struct worker){.pool = new, .index = started};
        error = pthread_create(&workers[started].thread, NULL, work, &workers[started]);
        if (error != 0) {
            log_error("cannot start thread %d of %d: %s", started + 1, threads, strerror(error));
            goto stop_workers;
        }
    }
    *pool = new;
    return STATUS_OK;

stop_workers:
    stop_workers(new, started);
free_memory:
    free(workers);
    free(new);
    return STATUS_INTERNAL;
}

void pool_close(struct pool *pool)
{
    stop_workers(pool, pool->threads);
    free(pool->workers);
    free(pool);
}
