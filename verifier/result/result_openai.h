/* Results in OpenAI's form, that of a chat for a request that has messages. Source: OpenAI's Batch API, "request output object". Owns nothing; for
 * result.c alone. */
#ifndef TANDEM_VERIFIER_RESULT_RESULT_OPENAI_H
#define TANDEM_VERIFIER_RESULT_RESULT_OPENAI_H

#include "verifier/round/sequence.h"
#include <jansson.h>

/* The result, NULL without memory. sequences: as result_line has them. id: taken over; `plain` leaves out the time. */
json_t *result_openai(json_t *id, const struct request *request, const struct sequence *sequences, int plain);

#endif
