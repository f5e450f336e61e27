/* Ways of the device that can be left out, each by a word of TANDEM_CUDA, to tell faults of a machine apart: the bits of what is computed are the same
 * with any of them. Plain data of a context, read when it is opened. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_SWITCHES_H
#define TANDEM_COMMON_BACKEND_CUDA_SWITCHES_H

#include "common/base/status.h"

struct switches {
    int no_overlap;  /* a kernel begins when the one ahead of it has ended */
    int no_graph;    /* no step is recorded */
    int no_one_shot; /* devices do not write into each other's memory */
    int no_clusters; /* blocks do not read each other's shared memory */
};

/* `words`: "nooverlap,nograph,nooneshot,noclusters" or some of it; NULL or empty: none. STATUS_USAGE, with a line that names the word, for any other.
 */
enum status switches_read(const char *words, struct switches *switches);
/* ", without overlapping kernels, recorded steps", or empty where nothing is left out. */
const char *switches_describe(const struct switches *switches, char text[96]);

#endif
