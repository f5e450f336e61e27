/* A model with its cache and its forward pass, and how tests feed it: chains of tokens, each at consecutive places of one slot. What
 * goes wrong ends the test. */
#ifndef TANDEM_TESTS_SUPPORT_MODEL_RIG_H
#define TANDEM_TESTS_SUPPORT_MODEL_RIG_H

#include "common/model/checkpoint.h"
#include "common/model/forward.h"

enum { MODEL_RIG_ROWS = 96, MODEL_RIG_SLOTS = 3 };

struct model_rig {
    struct group self; /* of one, used when no other is given */
    struct model *model;
    struct kv_cache cache;
    struct forward forward;
};

/* Tokens for the places [first, first + count) of a slot. */
struct chain {
    int slot;
    int first;
    int count;
    const int32_t *tokens;
};

/* Opens the model of the folder or file on this rank of `group` (NULL: a group of one). isa may be NULL. */
void model_rig_open(struct model_rig *rig, const char *path, struct group *group, int threads, const char *isa);
/* The same, with weights of more bits rounded. */
void model_rig_open_quantised(struct model_rig *rig, const char *path, struct group *group, enum dtype quantise);
/* The same, alone, with such a cache. */
void model_rig_open_narrow(struct model_rig *rig, const char *path, int threads, const char *isa, enum cache_choice cache);
/* The same, alone, on another backend than the CPU's. */
void model_rig_open_on(struct model_rig *rig, const char *path, const struct backend *backend);
/* The same, as the options say, with max_rows MODEL_RIG_ROWS. */
void model_rig_open_with(struct model_rig *rig, const char *path, struct group *group, const struct model_options *options);
void model_rig_close(struct model_rig *rig);

/* Collective over the model's group. Feeds all chains in one step, their rows in turns, and gives this rank's logits chain by
 * chain.  logits: [sum of counts][model->vocab_count], or NULL */
void model_rig_step(struct model_rig *rig, const struct chain *chains, int count, float *logits);
/* Collective over the model's group. Feeds tokens [0, count) to a slot from place 0 on, `stride` in a step.
 * logits: [count][model->vocab_count], or NULL */
void model_rig_feed(struct model_rig *rig, int slot, const int32_t *tokens, int count, int stride, float *logits);
/* Writes NaN to all places of the slot from `first` on, in the CPU backend's cache of float32. */
void model_rig_poison(struct model_rig *rig, int slot, int first);

/* Feeds the tokens to slot 0, and others to slot 2; copies the first `kept` there, in two parts, and feeds the rest: the same logits to the bit. */
void model_rig_assert_copied(struct model_rig *rig, const int32_t *tokens, int count, int kept);

/* The values of a row of a map that is packed in a checkpoint.  values: [columns] */
void model_rig_map_row(const struct tensor *map, int row, float *values);

/* The largest logit's lowest index, and how far the next one is below it (margin may be NULL). */
int32_t model_rig_argmax(const float *logits, int count, float *margin);

#endif
