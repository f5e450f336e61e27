#include "common/base/cores.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

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

int cores_count_own(void)
{
    const cpu_set_t *set = cores_own();

    return set != NULL ? CPU_COUNT(set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int cores_share(int asked, int ranks)
{
    int share = asked > 0 ? asked : (int)sysconf(_SC_NPROCESSORS_ONLN) / ranks, most = cores_count_own();

    share = share < most ? share : most;
    return share > 1 ? share : 1;
}
