/* Where the ranks of a sweep's jobs are: as they were asked for and, where that is on several hosts, all on one of them, so that the network is what
 * differs. Plain data; pure. It starts nothing. */
#ifndef TANDEM_LAUNCH_BENCH_SWEEP_PLACEMENT_H
#define TANDEM_LAUNCH_BENCH_SWEEP_PLACEMENT_H

#include "common/options/options.h"

enum { PLACEMENT_MOST = 2, PLACEMENT_HOST = 256 };

struct placement {
    const char *name;           /* "same-node", "other-node" */
    char hosts[PLACEMENT_HOST]; /* for --hosts, where it is not what was asked for; "" */
};

/* placements: [PLACEMENT_MOST]. Slots are filled in order, drafters first, so the last host has verifiers: that is where all go together.
 * STATUS_USAGE when --hosts is no list of hosts. */
enum status placement_list(const struct options *run, struct placement *placements, int *count);

#endif
