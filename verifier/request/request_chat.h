/* A request's messages: [{"role", "content"}], in this project's form and in OpenAI's. They become the prompt that the chat template makes of them,
 * and the answer ends where the template ends one. It owns nothing: prompt and end belong to the request. For the files that make requests; never
 * logs, the reason is the caller's. */
#ifndef TANDEM_VERIFIER_REQUEST_REQUEST_CHAT_H
#define TANDEM_VERIFIER_REQUEST_REQUEST_CHAT_H

#include "verifier/request/request.h"
#include <jansson.h>

enum { REQUEST_CHAT_REASON = CHAT_FAULT_BYTES + 80 };

/* Takes the list. What is wrong with it goes into `reason`, which is empty otherwise. */
enum status request_chat_take(struct request *request, const struct request_terms *terms, const json_t *value, char *reason, size_t size);
/* The same for one text, as the only message and a user's. It is valid UTF-8. */
enum status request_chat_take_text(struct request *request, const struct request_terms *terms, const char *text, size_t length, char *reason,
                                   size_t size);
/* The end of an answer ends the completion, as a token, or as a stop text where the tokenizer has no such token. */
enum status request_chat_end(struct request *request, const struct request_terms *terms);

#endif
