/* Lines of OpenAI's batch input: {"custom_id", "method", "url", "body"}, for /v1/completions and /v1/chat/completions. A line becomes one of this
 * project's own, which is then read and checked as any other; its result is written by verifier/result. Source: OpenAI's Batch API, "request input
 * object". Owns nothing; for request_line.c alone. */
#ifndef TANDEM_VERIFIER_REQUEST_REQUEST_OPENAI_H
#define TANDEM_VERIFIER_REQUEST_REQUEST_OPENAI_H

#include "common/base/status.h"
#include <jansson.h>

/* Is this line of that form? No line of the other has any of its keys. */
int request_openai_knows(const json_t *line);
/* The same as a line of the other form goes to *own; json_decref frees it. What is wrong goes into `reason`, which is empty otherwise; *own then
 * has the id alone. The model's name, to be freed, goes to *model, NULL where there is none. STATUS_INTERNAL without memory. */
enum status request_openai_convert(json_t *line, json_t **own, char **model, char *reason, size_t size);

#endif
