#include "common/world/signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

/* One per process, as signals are. */
static atomic_int asked;

static void note(int signal)
{
    (void)signal;
    atomic_store(&asked, 1);
}

void signals_open(void)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &action, NULL);
    sigaction(SIGPIPE, &action, NULL);
}

int signals_ask_to_drain(void)
{
    return atomic_load(&asked);
}
