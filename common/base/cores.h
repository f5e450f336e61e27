/* The cores that this process was given by whoever started it. It owns the set, which is looked at once: later a thread may be bound to a part of the
 * cores (common/backend/cpu/nodes.h), and what it starts would take that part for the whole. So the first call comes before that, while one thread
 * runs. It binds nothing itself. */
#ifndef TANDEM_COMMON_BASE_CORES_H
#define TANDEM_COMMON_BASE_CORES_H

#include <sched.h>

/* Those of the caller's thread at the first call; NULL where the system did not say. */
const cpu_set_t *cores_own(void);
/* How many they are; all of this host where the system did not say. */
int cores_count_own(void);
/* Threads for one of `ranks` that share this host's cores, or `asked` where that is above 0; at least 1 and no more than there are of its own. */
int cores_share(int asked, int ranks);

#endif
