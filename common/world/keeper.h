/* Keeps a job alive that lost a drafter, and from waiting for ever for a rank that hangs at its very end. What the launcher starts forks
 * before MPI starts: the child becomes the rank, and the parent, its keeper, does nothing but wait.
 *
 * A launcher ends every rank when one of its processes dies. A child that dies before it has joined takes the keeper with it, and the
 * launcher ends the job, for MPI itself cannot start without it. One that dies later is a drafter less: the keeper stays until the launcher
 * ends it or is gone. A verifier never joins in this sense, for no job goes on without it. The child never outlives its keeper. */
#ifndef TANDEM_COMMON_WORLD_KEEPER_H
#define TANDEM_COMMON_WORLD_KEEPER_H

#include "common/base/status.h"

/* Local, before MPI and threads. Returns in the child, which is the rank; the parent never returns. */
enum status keeper_open(void);
/* Local, in the child: the job goes on without this rank from here on. */
void keeper_joined(void);
/* Local, in the child: ends this rank alone, at once. Before it has joined, and where no keeper stands by, that ends the job. */
void keeper_leave(enum status status) __attribute__((noreturn));
/* Local, in the child, where there is one: every rank has come to the end, and the exit code counts again. A child that then takes more than
 * 15 s to be gone is ended, with STATUS_WATCHDOG: nobody else is left who would notice. */
void keeper_close(void);

#endif
