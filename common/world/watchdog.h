/* The last resort against a hang: a thread that makes no MPI call and ends the process with 76 when nothing has reported progress
 * (common/base/progress.h) for too long; mpirun then ends the others. It asks for progress, never for speed: everything that takes long reports as it
 * goes, and who waits for other ranks goes on waiting while any of them gets something done (common/world/wait.c). */
#ifndef TANDEM_COMMON_WORLD_WATCHDOG_H
#define TANDEM_COMMON_WORLD_WATCHDOG_H

#include "common/base/status.h"

/* Local. Starts the thread; `seconds` <= 0 starts none. Until the first progress it grants at least a minute, for MPI starts when the machine lets
 * it. One per process. */
enum status watchdog_open(double seconds);
void watchdog_close(void);
/* Local. Lets this rank's watchdog wait longer than `others` ranks' before it ends the job: the rank that hangs is to report it, in one line, and
 * then the launcher ends the rest. */
void watchdog_stand_behind(int others);

#endif
