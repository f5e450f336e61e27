#include "verifier/request/request_stop.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status no_memory(void)
{
    log_error("no memory for the requests");
    return STATUS_INTERNAL;
}

int request_stop_knows(const char *key)
{
    return strcmp(key, "stop") == 0 || strcmp(key, "stop_token_ids") == 0;
}

static enum status set_texts(struct request *request, const char *const *stop, int stops)
{
    request->stop = calloc((size_t)stops + 1, sizeof *request->stop);
    if (request->stop == NULL)
        return no_memory();
    for (; request->stops < stops; request->stops++) {
        request->stop[request->stops] = strdup(stop[request->stops]);
        if (request->stop[request->stops] == NULL)
            return no_memory();
    }
    return STATUS_OK;
}

static enum status set_tokens(struct request *request, const int32_t *tokens, int count)
{
    request->stop_token = calloc((size_t)count + 1, sizeof *request->stop_token);
    if (request->stop_token == NULL)
        return no_memory();
    for (; request->stop_tokens < count; request->stop_tokens++)
        request->stop_token[request->stop_tokens] = tokens[request->stop_tokens];
    return STATUS_OK;
}

/* A text that can be looked for: not empty, and without a NUL, which ends texts here. */
static int is_text(const json_t *value)
{
    return json_is_string(value) && json_string_length(value) > 0 && strlen(json_string_value(value)) == json_string_length(value);
}

static enum status take_texts(struct request *request, const json_t *value, char *reason, size_t size)
{
    const char *stop[OPTIONS_MAX_STOPS];
    int stops = 0;

    if (is_text(value))
        stop[stops++] = json_string_value(value);
    else if (!json_is_array(value))
        snprintf(reason, size, "stop is not a text or a list of texts that are not empty and have no NUL");
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *entry = json_array_get(value, i);

        if (stops == OPTIONS_MAX_STOPS || !is_text(entry)) {
            snprintf(reason, size, "stop is not a list of at most %d texts that are not empty and have no NUL", OPTIONS_MAX_STOPS);
            return STATUS_OK;
        }
        stop[stops++] = json_string_value(entry);
    }
    return set_texts(request, stop, stops);
}

static enum status take_tokens(struct request *request, const json_t *array, int vocab, char *reason, size_t size)
{
    int32_t tokens[BIAS_MAX_STOPS];
    int count = 0;

    if (!json_is_array(array))
        snprintf(reason, size, "stop_token_ids is not a list of token ids");
    else if (json_array_size(array) > BIAS_MAX_STOPS)
        snprintf(reason, size, "stop_token_ids has %zu tokens, expected at most %d", json_array_size(array), BIAS_MAX_STOPS);
    for (size_t i = 0; i < json_array_size(array) && *reason == '\0'; i++) {
        const json_t *entry = json_array_get(array, i);

        if (!json_is_integer(entry) || json_integer_value(entry) < 0 || json_integer_value(entry) >= vocab)
            snprintf(reason, size, "stop_token_ids[%zu] is not a token id from 0 to %d", i, vocab - 1);
        else
            tokens[count++] = (int32_t)json_integer_value(entry);
    }
    return set_tokens(request, tokens, count);
}

enum status request_stop_take(struct request *request, const struct request_terms *terms, const char *key, const json_t *value, char *reason,
                              size_t size)
{
    *reason = '\0';
    return strcmp(key, "stop") == 0 ? take_texts(request, value, reason, size) : take_tokens(request, value, terms->vocab, reason, size);
}

enum status request_stop_complete(struct request *request, const struct options *options)
{
    if (request->stop == NULL)
        TRY(set_texts(request, options->request.stop.text, options->request.stop.count));
    if (request->stop_token == NULL)
        TRY(set_tokens(request, options->request.stop_token.id, options->request.stop_token.count));
    return STATUS_OK;
}

enum status request_stop_add(struct request *request, const char *text)
{
    char **more = realloc(request->stop, ((size_t)request->stops + 1) * sizeof *more);

    if (more == NULL)
        return no_memory();
    request->stop = more;
    more[request->stops] = strdup(text);
    if (more[request->stops] == NULL)
        return no_memory();
    request->stops++;
    return STATUS_OK;
}

void request_stop_release(struct request *request)
{
    for (int s = 0; s < request->stops; s++)
        free(request->stop[s]);
    free(request->stop);
    free(request->stop_token);
}
