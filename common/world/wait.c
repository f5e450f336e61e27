/* How a rank waits: it looks again and again for a little while, because most answers come within microseconds, then yields, then
 * sleeps in the kernel on its bell. A job often has more ranks than cores, and a rank that spins keeps the one that it waits for from
 * running. */
#include "common/base/clock.h"
#include "common/world/bells.h"
#include "common/world/world.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SPIN_NS = 4000,
    YIELD_NS = 50000,        /* since the start. When the awaited rank has to run on this core, a yield lets it, and two that are ready
                                to run on one core are soon moved apart, which two that put each other to sleep are not */
    DEAF_NAP_NS = 50000,     /* no bell rings: the first naps, which cost a sixth of a core */
    DEAF_SHARE = 64,         /* later ones are this part of the time waited so far, so that they delay by no more than that */
    LONGEST_NAP_NS = 2000000, /* all ring: this bounds the cost of a ring that outran its message */
};

static void spin_a_little(void)
{
    for (int i = 0; i < 16; i++)
        __builtin_ia32_pause();
}

static void sleep_on(struct bell *bell, uint32_t heard, int64_t ns)
{
    const struct timespec nap = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

    atomic_store(&bell->asleep, 1);
    /* The kernel compares again: a ring since `heard` was read ends the call at once. */
    syscall(SYS_futex, &bell->rings, FUTEX_WAIT, heard, &nap, NULL, 0);
    atomic_store(&bell->asleep, 0);
}

static int64_t nap_ns(const struct wait *wait, int64_t now)
{
    int64_t share = (now - wait->started_ns) / DEAF_SHARE;

    if (!wait->deaf || share > LONGEST_NAP_NS)
        return LONGEST_NAP_NS;
    return share > DEAF_NAP_NS ? share : DEAF_NAP_NS;
}

void world_wait_begin(const struct world *world, struct wait *wait)
{
    *wait = (struct wait){.started_ns = clock_ns(), .heard = atomic_load(&world->bells->mine->rings), .deaf = world->spread};
}

void world_wait_step(const struct world *world, struct wait *wait, int64_t deadline_ns)
{
    struct bell *bell = world->bells->mine;
    int64_t now = clock_ns();

    if (now - wait->started_ns < SPIN_NS) {
        spin_a_little();
    } else if (now - wait->started_ns < YIELD_NS) {
        sched_yield();
    } else if (now < deadline_ns) {
        int64_t nap = nap_ns(wait, now);

        sleep_on(bell, wait->heard, nap < deadline_ns - now ? nap : deadline_ns - now);
    }
    wait->heard = atomic_load(&bell->rings);
}

void world_ring(const struct world *world, int rank)
{
    struct bell *bell = world->bells->of[rank];

    if (bell == NULL)
        return;
    atomic_fetch_add(&bell->rings, 1);
    if (atomic_load(&bell->asleep))
        syscall(SYS_futex, &bell->rings, FUTEX_WAKE, 1, NULL, NULL, 0);
}
