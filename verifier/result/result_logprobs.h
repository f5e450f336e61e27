/* The log probabilities of a result's tokens as JSON: in our form, and in OpenAI's two. Owns nothing; pure. They are the target's own, of the logits
 * as the model gave them. A token of which there is no whole character stands as "bytes:\\xe2\\x80". The first token of an echoed prompt has null, as
 * nothing is before it. */
#ifndef TANDEM_VERIFIER_RESULT_RESULT_LOGPROBS_H
#define TANDEM_VERIFIER_RESULT_RESULT_LOGPROBS_H

#include "verifier/round/sequence.h"
#include <jansson.h>

/* A log p, or a mean of some. */
json_t *result_number(double logprob);
/* Each gives null where the request asks for none, and NULL without memory. */
/* {"token_logprobs": [..], "top_logprobs": [{text: log p, ..}, ..]}; the latter where it asks for some. */
json_t *result_logprobs(const struct sequence *sequence);
/* {"tokens", "token_logprobs", "top_logprobs", "text_offset"}, offsets in characters of the result's text. */
json_t *result_logprobs_of_text(const struct sequence *sequence);
/* {"content": [{"token", "logprob", "bytes", "top_logprobs": [{"token", "logprob", "bytes"}, ..]}, ..], "refusal": null} */
json_t *result_logprobs_of_chat(const struct sequence *sequence);

#endif
