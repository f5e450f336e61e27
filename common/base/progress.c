#include "common/base/progress.h"

#include "common/base/clock.h"
#include <stdatomic.h>
#include <stddef.h>

#define TELL_NS ((int64_t)250 * 1000000)

static struct {
    _Atomic(_Atomic uint64_t *) published;
    _Atomic uint64_t count;
    _Atomic(const char *) doing;
    _Atomic int awaits;
    void (*tell)(void *state);
    void *state;
    int64_t told_ns;
} progress = {.doing = "starting"};

static _Thread_local int tells;

static void tell_others(void)
{
    int64_t now = clock_ns();

    if (now - progress.told_ns < TELL_NS)
        return;
    progress.told_ns = now;
    progress.tell(progress.state);
}

void progress_made(const char *doing)
{
    _Atomic uint64_t *published = atomic_load_explicit(&progress.published, memory_order_relaxed);

    progress_excused(doing);
    atomic_store_explicit(&progress.awaits, 0, memory_order_relaxed);
    if (published != NULL)
        atomic_fetch_add_explicit(published, 1, memory_order_relaxed);
    if (tells)
        tell_others();
}

void progress_excused(const char *doing)
{
    atomic_fetch_add_explicit(&progress.count, 1, memory_order_relaxed);
    (void)progress_doing(doing);
}

void progress_awaits(void)
{
    atomic_store_explicit(&progress.awaits, 1, memory_order_relaxed);
}

const char *progress_doing(const char *doing)
{
    return doing != NULL && doing[0] != '\0' ? atomic_exchange_explicit(&progress.doing, doing, memory_order_relaxed) : NULL;
}

struct progress progress_look(void)
{
    return (struct progress){.count = atomic_load_explicit(&progress.count, memory_order_relaxed),
                             .doing = atomic_load_explicit(&progress.doing, memory_order_relaxed),
                             .awaits = atomic_load_explicit(&progress.awaits, memory_order_relaxed)};
}

void progress_publish(_Atomic uint64_t *word)
{
    atomic_store(&progress.published, word);
}

void progress_tell(void (*tell)(void *state), void *state)
{
    tells = tell != NULL;
    progress.tell = tell;
    progress.state = state;
}
