#include "common/world/watchdog.h"

#include "common/base/log.h"
#include "common/base/patience.h"
#include "common/base/progress.h"
#include "common/base/recorder.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_LOOK_NS ((int64_t)2 * 1000000000)
#define TURN_NS 100000000
#define BEHIND_NS ((int64_t)300 * 1000000)
#define AWAITS_NS ((int64_t)300 * 1000000)
#define BEHIND_MOST 3
#define STARTING_NS ((int64_t)60 * 1000000000)

/* One per process by nature: it ends the process. */
static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int running;
    int64_t limit_ns;
    uint64_t before; /* progress count at the last look */
    _Atomic int64_t grace_ns;
} dog = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void bite(int64_t silent_ns, const char *doing)
{
    log_let_go(1);
    log_error("no progress for %.0f s while %s: ending the job (a rank is lost or hangs)", (double)silent_ns / 1e9, doing);
    recorder_note("no progress for # ms", silent_ns / 1000000, 0, 0);
    recorder_dump(doing);
    _exit(STATUS_WATCHDOG);
}

static int64_t limit_of(const struct progress *progress)
{
    return progress->count == dog.before && dog.limit_ns < STARTING_NS ? STARTING_NS : dog.limit_ns;
}

/* Extra time that lets the rank that hangs report it before those that wait for it. */
static int64_t courtesy(const struct progress *progress)
{
    return progress->awaits ? AWAITS_NS + atomic_load(&dog.grace_ns) : 0;
}

/* Adds up what passes without progress; a process that was stopped has not been hanging. */
static void *watch(void *unused)
{
    struct patience patience = patience_begin(LONGEST_LOOK_NS);
    uint64_t seen = dog.before;

    (void)unused;
    pthread_mutex_lock(&dog.lock);
    while (dog.running) {
        struct timespec until;
        struct progress progress = progress_look();
        int64_t silent;

        if (progress.count != seen)
            patience_renew(&patience);
        silent = patience_spent(&patience);
        seen = progress.count;
        if (silent > limit_of(&progress) + courtesy(&progress))
            bite(silent - courtesy(&progress), progress.doing);
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

    (void)progress_doing("starting");
    if (seconds <= 0)
        return STATUS_OK;
    dog.before = progress_look().count;
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
