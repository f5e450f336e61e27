/* What ends a request's completion before its limit, from its options or its line of JSON: stop texts and stop tokens. The request owns what is taken
 * here, until request_stop_release. For the files that make requests; never logs, the reason is the caller's. */
#ifndef TANDEM_VERIFIER_REQUEST_REQUEST_STOP_H
#define TANDEM_VERIFIER_REQUEST_REQUEST_STOP_H

#include "verifier/request/request.h"
#include <jansson.h>

/* Is this key of a line one of them? */
int request_stop_knows(const char *key);
/* Takes its value. What is wrong with it goes into `reason`, which is empty otherwise. */
enum status request_stop_take(struct request *request, const struct request_terms *terms, const char *key, const json_t *value, char *reason,
                              size_t size);
/* What was not taken is as the options say. */
enum status request_stop_complete(struct request *request, const struct options *options);
/* One more stop text, behind the others. */
enum status request_stop_add(struct request *request, const char *text);
void request_stop_release(struct request *request);

#endif
