/* How long somebody has been waiting, look by look, before he gives up on another. A look counts for so long at most: a process that was stopped
 * (SIGSTOP), or whose machine stood still or slept, has not been waiting, and those whom it waits for may have stood still with it.
 * Pure but for clock_ns; one thread. */
#ifndef TANDEM_COMMON_BASE_PATIENCE_H
#define TANDEM_COMMON_BASE_PATIENCE_H

#include <stdint.h>

struct patience {
    int64_t longest_ns; /* what one look may count */
    int64_t looked_ns;
    int64_t spent_ns;
};

/* From now on. longest_ns: a few times what usually lies between two looks. */
struct patience patience_begin(int64_t longest_ns);
/* Looks: nanoseconds that were waited since it began or was renewed. */
int64_t patience_spent(struct patience *patience);
/* Looks, and begins anew: what was waited for has come, or something else shows that it lives. */
void patience_renew(struct patience *patience);

#endif
