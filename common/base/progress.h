/* Reports that this process makes progress, so that its own watchdog and the ranks that wait for it do not take it for hung. Whatever takes long
 * reports as it goes, from any layer: a matrix packed, a layer computed, a line read. One per process, as the recorder is. Any thread may report and
 * look; never waits or allocates. */
#ifndef TANDEM_COMMON_BASE_PROGRESS_H
#define TANDEM_COMMON_BASE_PROGRESS_H

#include <stdint.h>

/* Something got done. `doing` (a literal) is what a later line says was going on; NULL: what went on before. Costs some nanoseconds. */
void progress_made(const char *doing);
/* Nothing got done, and that is right: there is nothing to do, or another rank is at work. It contents this process's watchdog, but is not shown
 * to other ranks: ranks that wait for each other must not take waiting for work. */
void progress_excused(const char *doing);
/* This process waits for others until it makes progress itself. The watchdogs of the ranks that it waits for get the first chance to report. */
void progress_awaits(void);
/* Other words, up to the next report or until the caller puts back what it was given: the words before. NULL and empty words change nothing,
 * and NULL is returned. */
const char *progress_doing(const char *doing);

struct progress {
    uint64_t count; /* of all that was made or excused */
    const char *doing;
    int awaits;
};

/* Any thread. */
struct progress progress_look(void);

/* Where others look for the number of things done: a word that they can read; NULL: nowhere. */
void progress_publish(_Atomic uint64_t *word);
/* As something gets done on this thread, `tell` is called, four times a second at most: it tells those who cannot read the word. NULL: nobody
 * does. */
void progress_tell(void (*tell)(void *state), void *state);

#endif
