/* The text of a result and the first of its tokens: those of the completion, behind the prompt where that is echoed. Owns nothing; pure. */
#ifndef TANDEM_VERIFIER_RESULT_RESULT_TEXT_H
#define TANDEM_VERIFIER_RESULT_RESULT_TEXT_H

#include "verifier/round/sequence.h"
#include <jansson.h>

/* NULL without memory. */
json_t *result_text(const struct sequence *sequence);
/* The place of the result's first token in the sequence. */
int result_first(const struct sequence *sequence);
/* Tokens that were generated for the request, also where the result has not all of its completions. sequences: NULL is none */
int result_tokens(const struct request *request, const struct sequence *sequences);

#endif
