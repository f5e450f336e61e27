/* Keeps a job alive that lost a drafter. A launcher ends every rank when one of its processes dies; so what it started stays: it forks
 * before MPI starts, the child becomes the rank, and the parent, its keeper, does nothing but wait.
 *
 * A child that dies before it has joined takes the keeper with it, and the launcher ends the job, for MPI itself cannot start without
 * it. One that dies later is a drafter less: the keeper stays until the launcher ends it or is gone. The child never outlives its keeper. */
#ifndef TANDEM_COMMON_WORLD_KEEPER_H
#define TANDEM_COMMON_WORLD_KEEPER_H

#include "common/base/status.h"

/* Local, before MPI and threads. Returns in the child, which is the rank; the parent never returns. */
enum status keeper_open(void);
/* Local, in the child: the job goes on without this rank from here on. */
void keeper_joined(void);
/* Local, in the child: ends this rank alone, at once. Before it has joined, and where no keeper stands by, that ends the job. */
void keeper_leave(enum status status) __attribute__((noreturn));
/* Local, in the child, where there is one: every rank has come to the end, and the exit code counts again. */
void keeper_close(void);

#endif
