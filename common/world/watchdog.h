/* The last resort against a hang: a thread that makes no MPI call and ends the process with 76 when nothing has reported progress for
 * too long (mpirun then ends the others). Everything that waits reports progress only when it got what it waited for. */
#ifndef TANDEM_COMMON_WORLD_WATCHDOG_H
#define TANDEM_COMMON_WORLD_WATCHDOG_H

#include "common/base/status.h"

/* Local. Starts the thread; `seconds` <= 0 starts none. Until the first progress it grants at least a minute, for MPI and models start when
 * the machine lets them. One per process. */
enum status watchdog_open(double seconds);
void watchdog_close(void);
/* Local. So many ranks are to bite before this one, which waits a little longer: one line says it, and the launcher ends the others. */
void watchdog_stand_behind(int others);
/* Local. Reports progress; `doing` (a literal) is what a later line says was going on. Cheap enough for every round. */
void watchdog_progress(const char *doing);
/* Local. Other words without progress, up to the next report or until the caller puts back what it was given: the words before. NULL and empty
 * words change nothing, and NULL is returned. */
const char *watchdog_doing(const char *doing);

#endif
