/* Sums over devices that reach each other's memory: struct backend_one_shot of this backend. It owns this rank's inbox and, once connected, the
 * mappings of the others'. Invariant: all ranks make the same sums in the same order, and each gets the same bits. The context's thread alone calls;
 * a sum waits on the device, never on the host. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_ONE_SHOT_H
#define TANDEM_COMMON_BACKEND_CUDA_ONE_SHOT_H

#include "common/backend/backend.h"
#include "common/backend/cuda/kernels.h"

struct one_shot {
    int rank, size;
    size_t most;
    void *inbox[ONE_SHOT_RANKS]; /* this rank's own and, once connected, the others'; NULL where there is none */
    unsigned *counters;          /* of the device, see one_shot_launch */
    unsigned *stop;              /* in pinned memory of the host */
};

extern const struct backend_one_shot cuda_one_shot;

/* Room for counters or for stop. */
size_t one_shot_counter_bytes(void);

#endif
