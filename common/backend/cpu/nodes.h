/* Binds threads to NUMA nodes. On a machine with several nodes each thread of a pool keeps to the cores of one node, so that the weights that it
 * packs, which it alone will read, lie in that node's memory. Owns nothing; to be called before the pool's first operation. */
#ifndef TANDEM_COMMON_BACKEND_CPU_NODES_H
#define TANDEM_COMMON_BACKEND_CPU_NODES_H

#include "common/backend/cpu/pool.h"
#include <sched.h>

enum { NODES_MOST = 64 };

struct nodes {
    int count;                   /* at least 1 */
    cpu_set_t cores[NODES_MOST]; /* [count], of more than one: no core is in two */
};

/* The nodes that have cores among `own`; one node where the kernel does not tell. */
void nodes_find(const cpu_set_t *own, struct nodes *nodes);
/* Which cores each of `threads` threads should keep to: thread by thread from the first node to the last, as many for a core everywhere.
 * Returns the number of nodes, or 1, and then leaves `place` alone, where there is one, or the threads would not come out even: several
 * ranks that all put one more on the first node would crowd it.  place: [threads] */
int nodes_places(const struct nodes *nodes, int threads, cpu_set_t *place);
/* Binds the threads of a pool, the caller's included, to cores that the process was given (cores_own). Returns the number of nodes. */
int nodes_settle(struct pool *pool);

#endif
