#include "common/world/watchdog.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/recorder.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_LOOK_NS ((int64_t)2 * 1000000000)
#define TURN_NS 100000000
#define BEHIND_NS ((int64_t)300 * 1000000)
#define BEHIND_MOST 3
#define STARTING_NS ((int64_t)60 * 1000000000)

/* One per process by nature: it ends the process. */
static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int running;
    int64_t limit_ns;
    _Atomic int started;
    _Atomic int64_t grace_ns;
    _Atomic int64_t last_ns;
    _Atomic(const char *) doing;
} dog = {.lock = PTHREAD_MUTEX_INITIALIZER, .doing = "starting"};

static void bite(int64_t silent_ns)
{
    log_let_go(1);
    log_error("no progress for %.0f s while %s: ending the job (a rank is lost or hangs)", (double)silent_ns / 1e9, atomic_load(&dog.doing));
    recorder_note("no progress for # ms", silent_ns / 1000000, 0, 0);
    recorder_dump(atomic_load(&dog.doing));
    _exit(STATUS_WATCHDOG);
}

static int64_t limit_ns(void)
{
    int64_t limit = !atomic_load(&dog.started) && dog.limit_ns < STARTING_NS ? STARTING_NS : dog.limit_ns;

    return limit + atomic_load(&dog.grace_ns);
}

/* Adds up what passes without progress, look by look. A look counts for a second or two at most: a process that was stopped, or a
 * machine that slept, has not been hanging. */
static void *watch(void *unused)
{
    int64_t looked = clock_ns(), seen = 0, silent = 0;

    (void)unused;
    pthread_mutex_lock(&dog.lock);
    while (dog.running) {
        struct timespec until;
        int64_t now = clock_ns(), last = atomic_load(&dog.last_ns), passed = now - looked;

        silent = last != seen ? 0 : silent + (passed < LONGEST_LOOK_NS ? passed : LONGEST_LOOK_NS);
        seen = last;
        looked = now;
        if (silent > limit_ns())
            bite(silent);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += TURN_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&dog.ended, &dog.lock, &until);
    }
    pthread_mutex_unlock(&dog.lock);
    return NULL;
}

enum status watchdog_open(double seconds)
{
    pthread_condattr_t attributes;

    watchdog_progress("starting");
    if (seconds <= 0)
        return STATUS_OK;
    atomic_store(&dog.started, 0);
    dog.limit_ns = (int64_t)(seconds * 1e9);
    dog.running = 1;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* the other one jumps: set back by an hour, it would be waited for */
    pthread_cond_init(&dog.ended, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&dog.thread, NULL, watch, NULL) != 0) {
        dog.running = 0;
        log_error("cannot start the watchdog thread");
        return STATUS_INTERNAL;
    }
    return STATUS_OK;
}

void watchdog_stand_behind(int others)
{
    atomic_store(&dog.grace_ns, (others < BEHIND_MOST ? others : BEHIND_MOST) * BEHIND_NS);
}

void watchdog_close(void)
{
    if (!dog.running)
        return;
    pthread_mutex_lock(&dog.lock);
    dog.running = 0;
    pthread_cond_signal(&dog.ended);
    pthread_mutex_unlock(&dog.lock);
    pthread_join(dog.thread, NULL);
}

void watchdog_progress(const char *doing)
{
    atomic_store_explicit(&dog.last_ns, clock_ns(), memory_order_relaxed);
    atomic_store_explicit(&dog.doing, doing, memory_order_relaxed);
    atomic_store_explicit(&dog.started, 1, memory_order_relaxed);
}

const char *watchdog_doing(const char *doing)
{
    return doing != NULL && doing[0] != '\0' ? atomic_exchange_explicit(&dog.doing, doing, memory_order_relaxed) : NULL;
}
