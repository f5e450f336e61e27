/* What a request that echoes its prompt keeps of it: the text that its result begins with, and with logprobs how many of its tokens are asked about.
 * The request owns the text. For the files that make requests. */
#ifndef TANDEM_VERIFIER_REQUEST_REQUEST_ECHO_H
#define TANDEM_VERIFIER_REQUEST_REQUEST_ECHO_H

#include "verifier/request/request.h"

/* Once all else that was said of the request is taken. text: its prompt, or NULL where it was given as tokens, whose text it is then. Nothing is kept
 * of a request that is wrong or does not echo. */
enum status request_echo_complete(struct request *request, const struct request_terms *terms, const char *text, size_t length);

#endif
