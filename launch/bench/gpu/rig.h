/* A model with one sequence, fed by hand: chains of tokens at consecutive places, through the same forward_run that drafters and
 * verifiers use. */
#ifndef TANDEM_LAUNCH_BENCH_GPU_RIG_H
#define TANDEM_LAUNCH_BENCH_GPU_RIG_H

#include "common/model/forward.h"
#include "launch/bench/gpu/seeded.h"

struct rig {
    struct group self;
    struct model *model;
    struct seeded_model *seeded; /* the owner of the model, or NULL: it is from files */
    struct kv_cache cache;
    struct forward forward;
    float *logits; /* [BACKEND_MAX_ROWS][vocab] of the last step */
};

enum status rig_open_seeded(struct rig *rig, const struct seeded_options *options, const struct backend *backend);
enum status rig_open_files(struct rig *rig, const char *path, const struct model_options *options);
void rig_close(struct rig *rig);

/* Feeds 1 .. BACKEND_MAX_ROWS tokens to the places from `first` on and gives the logits of the last `asked` of them. */
enum status rig_step(struct rig *rig, const int32_t *tokens, int first, int count, int asked);
/* The token with the largest logit of row i of those asked for, the lowest of equals. */
int32_t rig_best(const struct rig *rig, int i);
/* Feeds tokens that follow from a seed to the places [first, context). */
enum status rig_fill(struct rig *rig, int first, int context);
/* The token at a place of such a text. */
int32_t rig_token(const struct rig *rig, int place);

#endif
