/* What request.c and request_line.c share: a request in the making. It owns nothing: all is the list's. Invariant: between request_add and
 * request_check a request may be incomplete, and only its maker looks at it. For these two files alone. */
#ifndef TANDEM_VERIFIER_REQUEST_REQUEST_PARTS_H
#define TANDEM_VERIFIER_REQUEST_REQUEST_PARTS_H

#include "verifier/request/request.h"

/* Logs it: STATUS_INTERNAL. */
enum status request_no_memory(void);
/* Makes the request a wrong one, for this reason; the first is kept. */
void request_fail(struct request *request, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A new request at the end of the list, as the options have it. */
enum status request_add(struct request_list *list, const struct request_terms *terms, struct request **out);
/* The prompt's tokens, or with --chat those of a user's message. */
enum status request_encode(struct request *request, const struct request_terms *terms, const char *text, size_t length);
/* Once all that was said of it is taken: the answer of a chat ends where its template ends one. */
enum status request_end_chat(struct request *request, const struct request_terms *terms);
/* The last of all. STATUS_OK for a request that is wrong and says so. */
enum status request_check(struct request *request, const struct request_terms *terms);

#endif
