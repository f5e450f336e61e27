/* What logits_process does, as Hugging Face's processors define it (SequenceBias, RepetitionPenalty, NoBadWords, MinNewTokensLength, then the
 * temperature), token by token with no thought for speed. It shares no code with common/sample. */
#ifndef TANDEM_TESTS_LAW_NAIVE_BIAS_H
#define TANDEM_TESTS_LAW_NAIVE_BIAS_H

#include "common/sample/bias.h"
#include "common/sample/sampling.h"

/* Is `token` banned behind history[0 .. count)? */
int naive_bias_bans(const struct bias *bias, const int32_t *history, int count, int prompt_count, int32_t token);
/* logits, to: [vocab], vocab <= NAIVE_LAW_MOST */
void naive_bias_process(const struct sampling *sampling, const struct bias *bias, const float *logits, int vocab, const int32_t *history,
                        int count, int prompt_count, float *to);

#endif
