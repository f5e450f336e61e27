#include "common/base/cores.h"

#include "common/base/clock.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LATE_NS = 2000000, /* a turn is longer, and what else has the core meanwhile, as another rank's step or the kernel, mostly shorter */
    TAKEN_NS = 200000000,
    TURN_NS = 100000, /* the shortest that Linux gives */
};

static _Atomic int64_t taken_ns; /* until when the cores are taken */
static cpu_set_t own;
static int is_known;

static void look(void)
{
    is_known = sched_getaffinity(0, sizeof own, &own) == 0;
}

const cpu_set_t *cores_own(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, look);
    return is_known ? &own : NULL;
}

int cores_count_own(void)
{
    const cpu_set_t *set = cores_own();

    return set != NULL ? CPU_COUNT(set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int cores_share(int asked, int ranks)
{
    int share = asked > 0 ? asked : (int)sysconf(_SC_NPROCESSORS_ONLN) / ranks, most = cores_count_own();

    share = share < most ? share : most;
    return share > 1 ? share : 1;
}

/* The kernel's sched_attr, as its first version was: the C library has no name for it, and the kernel's header takes one of the library's. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

int64_t cores_turn_ns(void)
{
    struct attributes now = {.size = sizeof now};

    return syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) == 0 && now.policy == SCHED_OTHER ? (int64_t)now.runtime : 0;
}

void cores_take_short_turns(void)
{
    struct attributes now = {.size = sizeof now};

    if (syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0 || now.policy != SCHED_OTHER)
        return;
    now.runtime = TURN_NS;
    (void)syscall(SYS_sched_setattr, 0, &now, 0); /* refused: turns are as they were */
}

void cores_yield(void)
{
    int64_t before = clock_ns(), after;

    sched_yield();
    after = clock_ns();
    if (after - before > LATE_NS)
        atomic_store_explicit(&taken_ns, after + TAKEN_NS, memory_order_relaxed);
}

int cores_are_taken(int64_t now)
{
    return now < atomic_load_explicit(&taken_ns, memory_order_relaxed);
}

double cores_load(void)
{
    double load;

    return getloadavg(&load, 1) == 1 ? load : -1;
}

void cores_put_busy(double load, FILE *to)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (load > (double)cores)
        fprintf(to, "This host was busy in the minute before: a load of %.1f on %ld core%s. An idle one has other speeds.\n", load, cores,
                cores == 1 ? "" : "s");
}
