/* Tensors of a checkpoint that its model does not take. Files hold some that change nothing: tables of angles, a tied model's classifier, biases of
 * zeros, scales of activations and caches. Others mean that config.json is not the file's. Owns nothing; for checkpoint.c alone. */
#ifndef TANDEM_COMMON_MODEL_CHECKPOINT_UNREAD_H
#define TANDEM_COMMON_MODEL_CHECKPOINT_UNREAD_H

#include "common/model/checkpoint_table.h"
#include "common/model/config.h"

/* The first by name that would change the numbers of a model of this config, and how many there are; NULL and 0: none. */
const struct checkpoint_entry *checkpoint_unread_first(const struct checkpoint_table *table, const struct config *config, int *count);
/* The key of the config that would announce such a tensor, as its file calls it: where that does not fit, the text is wrong. */
const char *checkpoint_unread_key(const struct checkpoint_entry *entry, const struct config *config);

#endif
