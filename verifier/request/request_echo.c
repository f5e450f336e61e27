#include "verifier/request/request_echo.h"

#include "common/text/utf8_stream.h"
#include "verifier/request/request_parts.h"
#include <stdlib.h>
#include <string.h>

enum { REPLACED = 3 }; /* bytes of what an unfinished character at the end becomes */

/* Special tokens were written out by who gave the tokens, so they are in the text, too. */
static const char *piece(const struct request *request, const struct request_terms *terms, int at, size_t *length)
{
    return tokenizer_piece(terms->tokenizer, request->tokens[at], at == 0, 1, length);
}

/* The text of the prompt's tokens; what is no UTF-8 in it is replaced. */
static enum status decode(struct request *request, const struct request_terms *terms)
{
    struct utf8_stream stream;
    size_t room = REPLACED, length;

    for (int i = 0; i < request->prompt_count; i++) {
        (void)piece(request, terms, i, &length);
        room += 3 * (length + 3);
    }
    request->prompt = malloc(room);
    if (request->prompt == NULL)
        return request_no_memory();
    utf8_stream_init(&stream);
    for (int i = 0; i < request->prompt_count; i++) {
        const char *bytes = piece(request, terms, i, &length);

        request->prompt_length += utf8_stream_push(&stream, bytes, length, request->prompt + request->prompt_length);
    }
    request->prompt_length += utf8_stream_finish(&stream, request->prompt + request->prompt_length);
    return STATUS_OK;
}

static enum status keep(struct request *request, const char *text, size_t length)
{
    request->prompt = malloc(length + 1);
    if (request->prompt == NULL)
        return request_no_memory();
    memcpy(request->prompt, text, length);
    request->prompt_length = length;
    return STATUS_OK;
}

enum status request_echo_complete(struct request *request, const struct request_terms *terms, const char *text, size_t length)
{
    if (!request->echo || request->error != NULL || request->prompt_count == 0 || request->chat)
        return STATUS_OK;
    if (request->logprobs >= 0)
        request->scores = request->prompt_count - 1; /* nothing is before the first token */
    return text != NULL ? keep(request, text, length) : decode(request, terms);
}
