/* The processed distribution of one row on the tokens that truncation keeps. Plain data; pure; compiled for the device, too. */
#ifndef TANDEM_COMMON_SAMPLE_DISTRIBUTION_H
#define TANDEM_COMMON_SAMPLE_DISTRIBUTION_H

#include "common/sample/row.h"
#include "common/sample/sampling.h"

/* What logits are multiplied by: 1 / temperature (1 when that is 0), bounded so that no logit becomes infinite. */
DEVICE_CODE float distribution_scale(const struct sampling *sampling);

/* Does any of top-k, top-p, min-p cut tokens off? */
DEVICE_CODE int distribution_truncates(const struct sampling *sampling);

/* Applies top-k, top-p and min-p to the `count` best tokens of a row (largest logit first, ties to the lowest id; after penalties and
 * temperature). `complete`: these are all tokens of the vocabulary. `sum`: of exp(logit - best[0].score) over the whole vocabulary.
 * Returns how many tokens stay, at least 1, with p: [that many], summing to 1; or 0 when the list is too short to tell. Tokens tied
 * with the last of top-k are cut by id. */
DEVICE_CODE int distribution_truncate(const struct sampling *sampling, const struct scored_token *best, int count, int complete, double sum,
                          double *p);

/* Sorts tokens by falling score, ties by rising id: a list as above. No allocation. */
DEVICE_CODE void distribution_sort(struct scored_token *tokens, int count);
/* Merges another such list into a list, as those of several shards are.  tokens: [count + more_count], of which `count` are there */
DEVICE_CODE void distribution_merge(struct scored_token *tokens, int count, const struct scored_token *more, int more_count);

#endif
