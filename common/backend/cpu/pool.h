/* A pool owns a few threads that run the parts of one operation together; thread 0 is the caller. Invariant between operations: no part is running,
 * and the other threads spin for some 30 us, then yield, then sleep in the kernel, so that a rank that waits for its peer costs nothing and one in
 * the middle of a forward pass loses no time. One thread at a time may call. Allocates at open alone. A pool of one thread starts none, and its
 * operations are plain calls. */
#ifndef TANDEM_COMMON_BACKEND_CPU_POOL_H
#define TANDEM_COMMON_BACKEND_CPU_POOL_H

#include "common/base/status.h"

struct pool;

/* Runs as thread `thread` of the pool. */
typedef void pool_part(void *argument, int thread);

enum status pool_open(int threads, struct pool **pool);
void pool_close(struct pool *pool);
int pool_threads(const struct pool *pool);
/* Calls part(argument, t) in every thread t and returns when all are done. */
void pool_run(struct pool *pool, pool_part *part, void *argument);
/* Inside a part: waits until every thread is here. */
void pool_meet(struct pool *pool);

/* The stretch [first, last) of `count` items that is thread's own, always the same for the same count. */
struct stretch {
    int first, last;
};
struct stretch pool_stretch(const struct pool *pool, int thread, int count);

#endif
