/* What a request says of single tokens, from its options or its line of JSON: logit biases and bad words. It owns nothing: what it takes belongs to
 * the request. For request_line.c alone; never logs, the reason is the caller's. */
#ifndef TANDEM_VERIFIER_REQUEST_REQUEST_BIAS_H
#define TANDEM_VERIFIER_REQUEST_REQUEST_BIAS_H

#include "verifier/request/request.h"
#include <jansson.h>

/* Is this key of a line one of them? */
int request_bias_knows(const char *key);
/* Takes its value, in place of what the options say. What is wrong with it goes into `reason`, which is empty otherwise. */
enum status request_bias_take(struct request *request, const struct request_terms *terms, const char *key, const json_t *value, char *reason,
                              size_t size);

#endif
