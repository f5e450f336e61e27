/* Steps that are alike are recorded once and played. */
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
    struct linear_launch launch; /* as it would be with its logits */
    int told;                    /* it gave the evidence that was asked for, and no logits */
};

/* A step that was met, by its shape. */
struct replay {
    const void *who; /* NULL: a free one */
    int rows, longest;
    uint64_t what;
    int64_t used;                /* when, in steps */
    struct device_graph *graph; /* NULL until it is met again */
    struct head_step head;
    int refused; /* the device could not record it */
};

struct backend_context;
/* When memory of the device goes away, so must what was recorded about it. */
void replay_forget(struct backend_context *context);

#endif
