/* How a rank waits: it looks again and again for a little while, because most answers come within microseconds, then yields, then
 * sleeps in the kernel on its doorbell. A job often has more ranks than cores, and a rank that spins keeps the one that it waits for from
 * running. */
#include "common/base/clock.h"
#include "common/base/cores.h"
#include "common/base/progress.h"
#include "common/base/relax.h"
#include "common/base/try.h"
#include "common/world/doorbells.h"
#include "common/world/pulse.h"
#include "common/world/world.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SPIN_NS = 4000,
    /* From there on it yields between looks. Two ranks that are ready on one core are soon moved apart, two that put each other to
     * sleep are not: with yields a sum of two ranks takes 1 us, with spinning alone up to 20. How long, since the start: */
    LOOK_FREE_NS = 1000000,    /* a core for every thread: nobody needs ours, and a sleeper's core takes tens of microseconds to wake */
    LOOK_USUAL_NS = 5000000,   /* at most so long where waits of a kind are known to end by then */
    USUAL_SHARE = 8,           /* weight of the newest wait in what is usual: one part in so many */
    LOOK_VERIFIER_NS = 300000, /* more of them than cores: as long as drafts are made, because to wake a follower costs a drafter on its
                                  core 60 us; a yield leaves the core to the drafter */
    LOOK_DRAFTER_NS = 4000,    /* it waits while the group computes, and must not take a core of theirs */
    LOOK_RUNG_NS = 60000,      /* after a ring: MPI may need several looks to show the message */
    LEAST_LOOKS = 4,           /* and at least this many looks, even if this rank had no core meanwhile: MPI may need two looks to show a message */
    DEAF_NAP_NS = 50000,       /* nap where no doorbell rings; such naps take a sixth of a core */
    DEAF_SHARE = 64,           /* later naps last this part of the time waited so far, so the added delay is bounded by it */
    LONGEST_NAP_NS = 2000000,  /* a doorbell may ring before its message can be seen: a sleeper that found none looks again after this */
    SETTLED_SHARE = 2,         /* where there is nothing to look for, the later naps last this part of the silence, */
    SETTLED_NAP_NS = 20000000, /* at most this: each takes its core from whoever works there, 500 in a second one part in a hundred */
    LISTEN_NS = 50000000,      /* from one look at what others get done to the next */
};

int world_claimed_threads(const struct world *world)
{
    return (int)atomic_load_explicit(&world->doorbells->first->threads, memory_order_relaxed);
}

int world_is_crowded(const struct world *world)
{
    return world->node_size > world->cores || world_claimed_threads(world) > world->cores;
}

static int64_t most_usual_ns(const struct wait_usual *usual)
{
    return usual->most_ns > 0 ? usual->most_ns : LOOK_USUAL_NS;
}

/* Half as long again as a usual wait, where that is worth it: one that is longer than anybody looks had better sleep from the beginning. */
static int64_t look_usual_ns(const struct wait_usual *usual)
{
    int64_t look = usual != NULL ? usual->ns + usual->ns / 2 : 0;

    return look > LOOK_FREE_NS && look <= most_usual_ns(usual) ? look : LOOK_FREE_NS;
}

/* How long a wait looks before it sleeps. */
static int64_t look_ns(const struct world *world, const struct wait_usual *usual)
{
    if (!world_is_crowded(world))
        return look_usual_ns(usual);
    return world->role == ROLE_DRAFTER ? LOOK_DRAFTER_NS : LOOK_VERIFIER_NS;
}

static void spin_a_little(void)
{
    for (int i = 0; i < 16; i++)
        relax();
}

static void sleep_on(struct doorbell *doorbell, uint32_t heard, int64_t ns)
{
    const struct timespec nap = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

    atomic_store(&doorbell->asleep, 1);
    /* The kernel compares again: a ring since `heard` was read ends the call at once. */
    syscall(SYS_futex, &doorbell->rings, FUTEX_WAIT, heard, &nap, NULL, 0);
    atomic_store(&doorbell->asleep, 0);
}

int64_t world_wait_nap_ns(const struct wait *wait, int64_t now)
{
    int64_t share = (now - wait->started_ns) / DEAF_SHARE, silence = (now - wait->rung_ns) / SETTLED_SHARE;

    if (!wait->deaf && wait->settled && silence > LONGEST_NAP_NS)
        return silence < SETTLED_NAP_NS ? silence : SETTLED_NAP_NS;
    if (!wait->deaf || share > LONGEST_NAP_NS)
        return LONGEST_NAP_NS;
    return share > DEAF_NAP_NS ? share : DEAF_NAP_NS;
}

uint64_t world_progress(const struct world *world)
{
    uint64_t made;

    pulse_listen(world);
    made = atomic_load_explicit(&world->doorbells->first->afar, memory_order_relaxed);
    for (int i = 0; i < world->size; i++)
        if (i != world->rank && world->doorbells->of[i] != NULL)
            made += atomic_load_explicit(&world->doorbells->of[i]->made, memory_order_relaxed);
    return made;
}

/* While other ranks make progress, a rank that waits for them does not hang, however long it takes. This does not count as progress of its own, so
 * two ranks that wait for each other do not keep each other alive. */
static void listen(const struct world *world, int64_t now)
{
    struct doorbells *doorbells = world->doorbells;
    uint64_t made;

    if (now < doorbells->listen_ns)
        return;
    doorbells->listen_ns = now + LISTEN_NS;
    progress_awaits();
    made = world_progress(world);
    if (made != doorbells->heard)
        progress_excused(NULL);
    doorbells->heard = made;
}

void world_wait_begin_usual(const struct world *world, struct wait *wait, struct wait_usual *usual)
{
    int64_t now = clock_ns();

    *wait = (struct wait){.started_ns = now,
                          .rung_ns = now,
                          .look_ns = now + look_ns(world, usual),
                          .heard = atomic_load(&world->doorbells->mine->rings),
                          .deaf = world->spread,
                          .usual = usual};
}

void world_wait_begin(const struct world *world, struct wait *wait)
{
    world_wait_begin_usual(world, wait, NULL);
}

/* One long pause, of a job that has nothing to do, is bounded: some usual waits later it is forgotten. */
void world_wait_end(const struct wait *wait, int64_t now)
{
    int64_t ns = now - wait->started_ns;

    if (wait->usual == NULL || ns < SPIN_NS) /* it was there: that was no wait */
        return;
    ns = ns < 2 * most_usual_ns(wait->usual) ? ns : 2 * most_usual_ns(wait->usual);
    wait->usual->ns = wait->usual->ns == 0 ? ns : wait->usual->ns + (ns - wait->usual->ns) / USUAL_SHARE;
}

void world_wait_step(const struct world *world, struct wait *wait, int64_t deadline_ns)
{
    struct doorbell *doorbell = world->doorbells->mine;
    int64_t now = clock_ns();
    int taken = cores_are_taken(now);

    if (taken ? now - wait->rung_ns < LOOK_RUNG_NS || wait->looks < LEAST_LOOKS : now - wait->started_ns < SPIN_NS) {
        spin_a_little();
    } else if (!taken && (now < wait->look_ns || wait->looks < LEAST_LOOKS)) {
        cores_yield();
    } else if (now < deadline_ns) {
        int64_t nap = world_wait_nap_ns(wait, now);

        listen(world, now);
        wait->naps++;
        sleep_on(doorbell, wait->heard, nap < deadline_ns - now ? nap : deadline_ns - now);
    }
    uint32_t rings = atomic_load(&doorbell->rings);
    wait->looks++;
    if (rings != wait->heard) {
        int64_t look = look_ns(world, wait->usual);

        wait->looks = 0;
        wait->rung_ns = clock_ns();
        wait->look_ns = wait->rung_ns + (look > LOOK_RUNG_NS ? look : LOOK_RUNG_NS);
    }
    wait->heard = rings;
}

static enum status is_there(MPI_Request *request, int *arrived)
{
    TRY_MPI(MPI_Test(request, arrived, MPI_STATUS_IGNORE));
    return STATUS_OK;
}

void world_await(const struct world *world, MPI_Request *request)
{
    struct wait wait;
    int arrived = 0;

    world_wait_begin(world, &wait);
    wait.deaf = 1; /* a collective rings no doorbell, and goes on only while its ranks look at it */
    for (;;) {
        enum status status = is_there(request, &arrived);

        if (status != STATUS_OK)
            world_abort(status);
        if (arrived)
            return;
        world_wait_step(world, &wait, INT64_MAX);
    }
}

enum status world_meet(const struct world *world, MPI_Comm comm)
{
    MPI_Request request;

    TRY_MPI(MPI_Ibarrier(comm, &request));
    world_await(world, &request);
    return STATUS_OK;
}

void world_ring(const struct world *world, int rank)
{
    struct doorbell *doorbell = world->doorbells->of[rank];

    if (doorbell == NULL)
        return;
    atomic_fetch_add(&doorbell->rings, 1);
    if (atomic_load(&doorbell->asleep))
        syscall(SYS_futex, &doorbell->rings, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void world_ring_verifiers(const struct world *world)
{
    for (int i = 0; i < world->verifiers; i++)
        world_ring(world, world->verifier_rank[i]);
}

void world_lend(const struct world *world, const struct arena_loan *loan)
{
    struct doorbell *mine = world->doorbells->mine;

    if (loan != NULL)
        mine->loan = *loan;
    atomic_store(&mine->lends, loan != NULL ? LOAN_MADE : LOAN_NONE);
    for (int i = 0; i < world->size; i++)
        if (i != world->rank)
            world_ring(world, i);
}

int world_borrow(const struct world *world, int rank, struct arena_loan *loan)
{
    struct doorbell *lender = rank >= 0 ? world->doorbells->of[rank] : NULL;
    struct wait wait;

    if (lender == NULL)
        return 0;
    world_wait_begin(world, &wait);
    while (atomic_load(&lender->lends) == LOAN_UNTOLD)
        world_wait_step(world, &wait, INT64_MAX);
    *loan = lender->loan;
    return atomic_load(&lender->lends) == LOAN_MADE;
}
