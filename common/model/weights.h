/* Which rows of which tensors make up this rank's matrices. It owns nothing that outlives a call: the packed weights are the model's. For model.c,
 * and for measurements that make weights of their own. It never looks at a dtype: that is packing.h's part. */
#ifndef TANDEM_COMMON_MODEL_WEIGHTS_H
#define TANDEM_COMMON_MODEL_WEIGHTS_H

#include "common/model/model.h"

/* Slices of the reduced dimension of out and down over the whole group: the power of two in kv_heads, or kv_heads when odd. */
int weights_slices(const struct config *config);
/* Sizes model->weights by a first pass and fills it by a second, which it tells of as the options ask. Refuses, before it reads a weight, when
 * they, and a cache and activations of so many bytes, are more than the device has free. */
enum status weights_pack(struct model *model, const struct model_options *options, size_t cache, size_t activations);
/* The first pass alone: every tensor is there, of the right shape and dtype, and would take so many bytes. Reads none. */
enum status weights_check(struct model *model, size_t *bytes);

#endif
