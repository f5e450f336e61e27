/* Penalties change the logits of tokens that the sequence already has. Each shard applies them to its own part of the vocabulary. Local; owns
 * nothing. */
#ifndef TANDEM_COMMON_SAMPLE_PENALTY_H
#define TANDEM_COMMON_SAMPLE_PENALTY_H

#include "common/sample/history.h"
#include "common/sample/sampling.h"

/* logits: [vocab_count], of the ids from vocab_first on; history: the tokens before the one that the row predicts; tally: [vocab_count] scratch, all
 * zero before and after.
 * Repetition (Keskar et al. 2019) looks at the whole history, presence and frequency at the generated part. */
void penalty_apply(const struct sampling *sampling, const struct history *history, float *logits, int vocab_first, int vocab_count,
                   int32_t *tally);

#endif
