/* Turns the logits that a model gives into those that a token is drawn from, on one shard of the vocabulary: biases, then penalties, then bans (bad
 * words, tokens that would end too early), then the temperature; the order of Hugging Face transformers and vLLM. Drafter and verifier both use this,
 * so p and q are processed alike. Pure. */
#ifndef TANDEM_COMMON_SAMPLE_LOGITS_H
#define TANDEM_COMMON_SAMPLE_LOGITS_H

#include "common/sample/bias.h"
#include "common/sample/history.h"
#include "common/sample/sampling.h"

/* Would logits_process change anything? (A temperature alone does not move the argmax, so at 0 it is no change.) */
int logits_are_processed(const struct sampling *sampling, const struct bias *bias);
/* Would it do no more than multiply them by distribution_scale? bias may be NULL. */
int logits_are_only_scaled(const struct sampling *sampling, const struct bias *bias);

/* logits: [vocab_count], of the ids from vocab_first on, in place; a banned one becomes minus infinity. history: the tokens that the row follows,
 * those committed, then the drafted ones that lead to it. bias may be NULL. tally: [vocab_count] scratch, all zero before and after. The result
 * does not depend on how the vocabulary is cut. */
void logits_process(const struct sampling *sampling, const struct bias *bias, const struct history *history, float *logits,
                    int vocab_first, int vocab_count, int32_t *tally);

#endif
