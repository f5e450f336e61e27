#include "common/base/cores.h"

#include <pthread.h>
#include <stddef.h>

static cpu_set_t own;
static int is_known;

static void look(void)
{
    is_known = sched_getaffinity(0, sizeof own, &own) == 0;
}

const cpu_set_t *cores_own(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, look);
    return is_known ? &own : NULL;
}
