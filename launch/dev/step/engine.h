/* One model on the CPU, alone, and steps of it. It owns the model, a cache of one sequence and the activations. One thread calls; it never
 * samples. */
#ifndef TANDEM_LAUNCH_DEV_STEP_ENGINE_H
#define TANDEM_LAUNCH_DEV_STEP_ENGINE_H

#include "common/model/forward.h"

struct engine {
    struct group self;
    struct model *model;
    struct kv_cache cache;
    struct forward forward;
    float *logits; /* [BACKEND_MAX_ROWS][vocab] of the last step, those that were asked for */
};

/* context: places of the only sequence. STATUS_NOINPUT, STATUS_DATA, STATUS_INTERNAL, logged. */
enum status engine_open(struct engine *engine, const char *path, int threads, int context, enum cache_choice cache);
void engine_close(struct engine *engine);
/* Feeds tokens[0 .. count) at the places from `first` on, at most BACKEND_MAX_ROWS at once, and computes the logits of the last `asked` of them. */
enum status engine_step(struct engine *engine, const int32_t *tokens, int first, int count, int asked);

#endif
