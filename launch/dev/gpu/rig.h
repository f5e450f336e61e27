/* A model with one sequence, fed by hand: chains of tokens at consecutive places, through the same forward pass that drafters and verifiers use: with
 * logits for comparing bits, and for measuring with what they ask, which a device answers and records. It owns the model, its cache and its
 * activations. One thread, one process; it never samples. */
#ifndef TANDEM_LAUNCH_DEV_GPU_RIG_H
#define TANDEM_LAUNCH_DEV_GPU_RIG_H

#include "common/model/forward.h"
#include "launch/dev/gpu/seeded.h"

enum { RIG_MOST_ROWS = 512 };

struct rig {
    struct group self;
    struct model *model;
    struct seeded_model *seeded; /* the owner of the model, or NULL: it is from files */
    struct kv_cache cache;
    struct forward forward;
    float *logits; /* [model->max_outputs][vocab] of the last rig_step */
    struct kept_query query[BACKEND_MAX_ROWS]; /* of the last rig_ask */
    int answered;  /* the last one was rig_ask, and the device has answered */
};

enum status rig_open_seeded(struct rig *rig, const struct seeded_options *options, const struct backend *backend);
enum status rig_open_files(struct rig *rig, const char *path, const struct model_options *options);
void rig_close(struct rig *rig);

/* Feeds tokens, at most RIG_MOST_ROWS and as many as the model takes, to the places from `first` on and gives the logits of the last `asked` of
 * them. */
enum status rig_step(struct rig *rig, const int32_t *tokens, int first, int count, int asked);
/* The same as a greedy verifier does it: what is asked is the largest logit of each row, and where the backend keeps logits they stay there. */
enum status rig_ask(struct rig *rig, const int32_t *tokens, int first, int count, int asked);
/* Feeds `count` tokens from the place `first` on and drafts `wanted` greedy tokens behind them, in one go where the device drafts by itself.
 * count + wanted is at most BACKEND_MAX_ROWS.  to: [wanted] */
enum status rig_draft(struct rig *rig, const int32_t *tokens, int first, int count, int wanted, int32_t *to);
/* The token with the largest logit of row i of those asked for, the lowest of equals. */
int32_t rig_best(const struct rig *rig, int i);
/* Of a prompt in one step. */
int rig_prompt_rows(const struct rig *rig);
/* Feeds tokens that follow from a seed to the places [first, context), rig_prompt_rows in a step. */
enum status rig_fill(struct rig *rig, int first, int context);
/* The token at a place of such a text. */
int32_t rig_token(const struct rig *rig, int place);

#endif
