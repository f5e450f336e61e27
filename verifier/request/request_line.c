/* What a line of JSON says of its request, key by key. */
#include "verifier/request/request_parts.h"

#include "common/base/digest.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include "common/sample/row.h"
#include "common/sample/rule.h"
#include "common/text/utf8_stream.h"
#include "verifier/request/request_bias.h"
#include "verifier/request/request_chat.h"
#include "verifier/request/request_echo.h"
#include "verifier/request/request_keys.h"
#include "verifier/request/request_openai.h"
#include "verifier/request/request_stop.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 16 << 20 };

static enum status take_tokens(struct request *request, const struct request_terms *terms, const json_t *array)
{
    size_t count = json_array_size(array);

    if (request->tokens != NULL)
        return STATUS_OK;
    request->tokens = calloc(count + 1, sizeof *request->tokens);
    if (request->tokens == NULL)
        return request_no_memory();
    if (!json_is_array(array))
        request_fail(request, "prompt_tokens is not a list of numbers");
    for (size_t i = 0; i < count; i++) {
        json_t *entry = json_array_get(array, i);

        if (!json_is_integer(entry) || json_integer_value(entry) < 0 || json_integer_value(entry) >= terms->vocab) {
            request_fail(request, "prompt_tokens[%zu] is not a token id from 0 to %d", i, terms->vocab - 1);
            break;
        }
        request->tokens[request->prompt_count++] = (int32_t)json_integer_value(entry);
    }
    return STATUS_OK;
}

static const char *kind_of(const json_t *value)
{
    static const char *const kinds[] = {[JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_STRING] = "a text", [JSON_INTEGER] = "a number",
                                        [JSON_REAL] = "a number",    [JSON_TRUE] = "true",    [JSON_FALSE] = "false",   [JSON_NULL] = "null"};

    return kinds[json_typeof(value)];
}

/* Keys whose value is true or false, or a number as that. */
static int is_flag(const char *key)
{
    return strcmp(key, "ignore_eos") == 0 || strcmp(key, "echo") == 0;
}

static long double number_of(const json_t *value)
{
    return json_is_boolean(value) ? json_is_true(value) : json_is_integer(value) ? (long double)json_integer_value(value) : json_real_value(value);
}

static void take_number(struct request *request, const struct request_terms *terms, const char *key, const json_t *value)
{
    struct options options = {.request.sampling = request->sampling,
                              .request.max_tokens = request->max_tokens,
                              .request.min_tokens = request->min_tokens,
                              .request.n = request->choices,
                              .request.best_of = request->best_of,
                              .request.logprobs = request->logprobs,
                              .request.echo = request->echo,
                              .rounds.draft_length = request->draft_length,
                              .request.ignore_eos = request->ignore_eos};
    char reason[160], words[REQUEST_KEYS_WORDS], expected[OPTIONS_NUMBER_EXPECTED];
    int known;

    known = options_set_number(&options, key, number_of(value), reason, sizeof reason);
    if (known == 0) {
        int is_elsewhere = request_keys_explain(key, words);

        request_fail(request, is_elsewhere ? "key \"%s\" is not supported%s" : "unknown key \"%s\"%s", key, words);
    } else if (strcmp(key, "logprobs") == 0 && json_is_boolean(value)) {
        request_fail(request,
                     "logprobs is %s, expected how many of the most probable tokens are told, from 0 to %d; true and false are what a chat's "
                     "line of OpenAI's batches has",
                     json_is_true(value) ? "true" : "false", ROW_MAX_LOGPROBS);
    } else if (!json_is_number(value) && !(is_flag(key) && json_is_boolean(value))) {
        options_number_expected(key, expected);
        request_fail(request, "%s is %s, expected %s", key, kind_of(value), expected);
    } else if (known < 0) {
        request_fail(request, "%s", reason);
    } else if (options.rounds.draft_length > options_most_drafts(terms->options)) {
        request_fail(request, "draft_length is %d, expected at most %d, or a job with --tree or --draft-length %d, whose steps have room for more",
                     options.rounds.draft_length, options_most_drafts(terms->options), options.rounds.draft_length);
    }
    request->sampling = options.request.sampling;
    request->max_tokens = options.request.max_tokens;
    request->min_tokens = options.request.min_tokens;
    request->choices = options.request.n;
    request->best_of = options.request.best_of;
    request->logprobs = options.request.logprobs;
    request->echo = options.request.echo;
    request->draft_length = options.rounds.draft_length;
    request->adaptive &= strcmp(key, "draft_length") != 0;
    request->ignore_eos = options.request.ignore_eos;
}

static void take_accept(struct request *request, const json_t *value)
{
    const int is_name = json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value);
    const int accept = is_name ? rule_find(json_string_value(value), json_string_length(value)) : -1;

    if (accept < 0)
        request_fail(request, "accept is %.40s, expected one of " RULE_NAMES, is_name ? json_string_value(value) : "no name");
    else
        request->sampling.accept = accept;
}

/* Two prompts in one line are refused elsewhere, so the second is not looked at. */
static enum status take_messages(struct request *request, const struct request_terms *terms, const json_t *value)
{
    char reason[REQUEST_CHAT_REASON];

    if (request->tokens != NULL)
        return STATUS_OK;
    TRY(request_chat_take(request, terms, value, reason, sizeof reason));
    if (*reason != '\0')
        request_fail(request, "%s", reason);
    return STATUS_OK;
}

static enum status take_field(struct request *request, const struct request_terms *terms, const char *key, json_t *value)
{
    char reason[160];

    if (strcmp(key, "id") == 0) {
        request->id = json_text_write(value, JSON_ENCODE_ANY | JSON_COMPACT);
        return request->id != NULL ? STATUS_OK : request_no_memory();
    }
    if (json_is_null(value) && request_keys_knows(key))
        return STATUS_OK; /* as many clients write what they do not set */
    if (request_stop_knows(key) || request_bias_knows(key)) {
        if (request_stop_knows(key))
            TRY(request_stop_take(request, terms, key, value, reason, sizeof reason));
        else
            TRY(request_bias_take(request, terms, key, value, reason, sizeof reason));
        if (*reason != '\0')
            request_fail(request, "%s", reason);
        return STATUS_OK;
    }
    if (strcmp(key, "prompt_tokens") == 0)
        return take_tokens(request, terms, value);
    if (strcmp(key, "messages") == 0)
        return take_messages(request, terms, value);
    if (strcmp(key, "prompt") == 0 && json_is_string(value))
        return request_encode(request, terms, json_string_value(value), json_string_length(value));
    if (strcmp(key, "accept") == 0)
        take_accept(request, value);
    else if (strcmp(key, "prompt") != 0)
        take_number(request, terms, key, value);
    else
        request_fail(request, "prompt is %s, expected a text; a list of token ids is prompt_tokens", kind_of(value));
    return STATUS_OK;
}

static enum status take_object(struct request *request, const struct request_terms *terms, json_t *object);

/* A line of OpenAI's batch input, as the line of this form that it means. */
static enum status take_openai(struct request *request, const struct request_terms *terms, json_t *line, int number)
{
    char reason[200];
    json_t *own;
    enum status status;

    request->openai = 1;
    TRY(request_openai_convert(line, &own, &request->model, reason, sizeof reason));
    if (*reason != '\0') {
        request_fail(request, "line %d: %s", number, reason);
        status = json_object_get(own, "id") != NULL ? take_field(request, terms, "id", json_object_get(own, "id")) : STATUS_OK;
    } else {
        status = take_object(request, terms, own);
    }
    json_decref(own);
    return status;
}

static const struct {
    const char *key, *expected;
} prompts[] = {{"prompt", "a text"}, {"prompt_tokens", "a list of token ids"}, {"messages", "a list of messages"}};

static int count_prompts(const json_t *object)
{
    int count = 0;

    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++) {
        const json_t *value = json_object_get(object, prompts[i].key);

        count += value != NULL && !json_is_null(value);
    }
    return count;
}

static void fail_prompts(struct request *request, const json_t *object)
{
    const int count = count_prompts(object);

    for (size_t i = 0; count == 0 && i < sizeof prompts / sizeof *prompts; i++)
        if (json_object_get(object, prompts[i].key) != NULL)
            request_fail(request, "%s is null, expected %s", prompts[i].key, prompts[i].expected);
    request_fail(request, "expected exactly one of \"prompt\", \"prompt_tokens\" and \"messages\", got %d", count);
}

static enum status take_object(struct request *request, const struct request_terms *terms, json_t *object)
{
    const json_t *prompt = json_object_get(object, "prompt");
    const char *key;
    json_t *value;

    if (!json_is_object(object)) {
        request_fail(request, "not a JSON object");
        return STATUS_OK;
    }
    json_object_foreach (object, key, value) /* keys first: a misspelt "prompt" is reported as an unknown key, and not as a missing prompt */
        TRY(take_field(request, terms, key, value));
    if (count_prompts(object) != 1)
        fail_prompts(request, object);
    TRY(request_echo_complete(request, terms, json_string_value(prompt), json_string_length(prompt)));
    TRY(request_stop_complete(request, terms->options));
    return request_end_chat(request, terms);
}

/* In a file of ten thousand lines the wrong one is found by its number. */
static enum status place_error(struct request *request, int number)
{
    char *words = NULL;

    if (strncmp(request->error, "line ", 5) == 0)
        return STATUS_OK;
    if (asprintf(&words, "line %d: %s%s", number, request->openai ? "body: " : "", request->error) < 0)
        return request_no_memory();
    free(request->error);
    request->error = words;
    return STATUS_OK;
}

/* A line's form shows in its own keys; a line that shows none is taken for the form of the line before. */
static enum status take_line(struct request *request, const struct request_terms *terms, json_t *line, int number)
{
    if (request_openai_knows(line))
        return take_openai(request, terms, line, number);
    request->openai &= count_prompts(line) == 0;
    return take_object(request, terms, line);
}

enum status request_add_line(struct request_list *list, const struct request_terms *terms, const char *line, size_t length, int number)
{
    static const struct json_text_limits limits = {.depth = REQUEST_DEPTH, .values = REQUEST_VALUES, .wide = 1};
    char fault[JSON_TEXT_FAULT];
    struct request *request;
    json_t *object = NULL;
    enum status status = STATUS_OK;
    size_t bad;

    progress_made("reading the prompts");
    TRY(request_add(list, terms, &request));
    request->openai = list->count > 1 && request[-1].openai; /* what cannot be read is taken for a line like the one before it */
    request->digest = digest_bytes(line, length, DIGEST_EMPTY);
    request->line = number;
    bad = length > LINE_BYTES ? length : utf8_valid(line, length);
    if (length > LINE_BYTES)
        request_fail(request, "line %d has %zu bytes, at most %d are read", number, length, LINE_BYTES);
    else if (length >= 2 && (memcmp(line, "\xFF\xFE", 2) == 0 || memcmp(line, "\xFE\xFF", 2) == 0))
        request_fail(request, "line %d is UTF-16, expected UTF-8", number);
    else if (bad < length)
        request_fail(request, "line %d is not valid UTF-8 (byte %zu)", number, bad);
    else if (line[strspn(line, " \t")] != '{')
        request_fail(request, "line %d begins with no {, expected a JSON object on each line%s", number,
                     line[strspn(line, " \t")] == '[' ? ", not one list of them: jq -c '.[]' FILE makes lines of it" : "");
    else if ((status = json_text_read(line, length, JSON_ALLOW_NUL, &limits, &object, fault)) == STATUS_OK)
        status = take_line(request, terms, object, number);
    else if (status == STATUS_DATA) {
        request_fail(request, "line %d is %s", number, fault);
        status = STATUS_OK;
    }
    json_decref(object);
    if (status == STATUS_OK)
        status = request_check(request, terms);
    return status == STATUS_OK && request->error != NULL ? place_error(request, number) : status;
}
