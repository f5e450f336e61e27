/* Lines of OpenAI's batch input: {"custom_id", "method", "url", "body"}, for /v1/completions and /v1/chat/completions. A line becomes one of this
 * project's own, and its result is written in OpenAI's form, that of a chat for a request that has messages. Source: OpenAI's Batch API, "request input object" and "request output object". For request.c and result.c alone. */
#ifndef TANDEM_VERIFIER_REQUEST_REQUEST_OPENAI_H
#define TANDEM_VERIFIER_REQUEST_REQUEST_OPENAI_H

#include "verifier/round/sequence.h"
#include <jansson.h>

/* Is this line of that form? No line of the other has any of its keys. */
int request_openai_knows(const json_t *line);
/* The same as a line of the other form goes to *own; json_decref frees it. What is wrong goes into `reason`, which is empty otherwise; *own then
 * has the id alone. The model's name, to be freed, goes to *model, NULL where there is none. STATUS_INTERNAL without memory. */
enum status request_openai_convert(json_t *line, json_t **own, char **model, char *reason, size_t size);
/* The result, NULL without memory. sequence: NULL where the request could not be run. id: taken over; `plain` leaves out the time. */
json_t *request_openai_result(json_t *id, const struct request *request, const struct sequence *sequence, int plain);

#endif
