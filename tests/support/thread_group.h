/* A group whose ranks are threads of one process: each rank's calls are made by its own thread, in the same order with the same sizes. Every
 * operation is: all leave their bytes, all meet, all take what they need, all meet again. */
#ifndef TANDEM_TESTS_SUPPORT_THREAD_GROUP_H
#define TANDEM_TESTS_SUPPORT_THREAD_GROUP_H

#include "common/group/group.h"
#include <pthread.h>

enum { THREAD_GROUP_MOST = 4 };

struct thread_group {
    int ranks;
    size_t largest;       /* bytes that one rank gives in one operation; more go in several parts */
    unsigned char *bytes; /* [ranks][largest] */
    pthread_barrier_t meeting;
};

/* groups: [ranks], filled. Closing one of them does nothing. */
void thread_group_open(struct thread_group *all, int ranks, size_t largest, struct group *groups);
void thread_group_close(struct thread_group *all);

#endif
