/* A replay records a step's work on the device once, and plays the recording for later steps of the same shape. It owns the recorded graphs.
 * Invariant: a played step computes what the same step would have computed operation by operation; what a recording points at is still there, or the
 * recording is forgotten (replay_forget). The context's thread alone calls; where nothing can be recorded the step is done as always. */
#ifndef TANDEM_COMMON_BACKEND_CUDA_REPLAY_H
#define TANDEM_COMMON_BACKEND_CUDA_REPLAY_H

#include "common/backend/cuda/device.h"
#include "common/backend/cuda/kernels.h"
#include "common/backend/cuda/matrix.h"
#include <stdint.h>

enum { REPLAY_SHAPES = 64 };

/* The last head of a step. */
struct head_step {
    const struct matrix *matrix;
    struct linear_launch launch; /* its launch if it stores logits */
    int told;                    /* it answered the queries and stored no logits */
};

/* A shape of step that was seen before. */
struct replay {
    const void *who; /* NULL: a free one */
    int rows, longest;
    uint64_t what;
    int64_t used;                /* number of the step that last used it */
    struct device_graph *graph; /* NULL until the shape is seen a second time */
    struct head_step head;
    int refused; /* the device could not record it */
};

struct backend_context;
/* To be called when device memory is freed: drops recordings that may use it. */
void replay_forget(struct backend_context *context);
/* Steps that were played from a recording so far. */
int64_t replay_count(const struct backend_context *context);

#endif
