/* The signals that end a process: each is written to the recorder, then has the effect that it would have had. */
#include "common/base/recorder.h"

#include <signal.h>
#include <stddef.h>

static const struct {
    int signal;
    const char *why;
} fatal[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
             {SIGILL, "SIGILL"},   {SIGABRT, "SIGABRT"}, {SIGTERM, "SIGTERM: the job is torn down, or somebody asked for it"}};
enum { FATALS = sizeof fatal / sizeof *fatal };

static struct sigaction before[FATALS];

/* Puts back what was there before and sends the signal again: it arrives when this returns. */
static void on_signal(int signal)
{
    for (size_t i = 0; i < FATALS; i++)
        if (fatal[i].signal == signal) {
            recorder_dump(fatal[i].why);
            sigaction(signal, &before[i], NULL);
            raise(signal);
        }
}

void recorder_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < FATALS; i++)
        sigaction(fatal[i].signal, &action, &before[i]);
}
