#include "verifier/request/request_openai.h"

#include "common/base/log.h"
#include "common/file/json_text.h"
#include "common/sample/row.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void say(char *reason, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(char *reason, size_t size, const char *format, ...)
{
    va_list arguments;

    if (*reason != '\0')
        return; /* the first reason is the one to tell */
    va_start(arguments, format);
    vsnprintf(reason, size, format, arguments);
    va_end(arguments);
}

int request_openai_knows(const json_t *line)
{
    return json_object_get(line, "custom_id") != NULL || json_object_get(line, "body") != NULL;
}

/* Keys of a body that are accepted and ignored: they change nothing here. */
static int is_of_no_effect(const char *key)
{
    static const char *const keys[] = {"model", "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return 1;
    return 0;
}

/* Keys that are not supported, each with the one value that is accepted because it asks for nothing. */
static const struct {
    const char *key;
    double only; /* true is 1, false is 0; NAN: null alone */
} not_done[] = {{"stream", 0},        {"suffix", NAN},          {"stream_options", NAN}, {"tools", NAN},
                {"tool_choice", NAN}, {"response_format", NAN}, {"functions", NAN}};

static double number_of(const json_t *value)
{
    return json_is_boolean(value) ? json_is_true(value) : json_is_number(value) ? json_number_value(value) : -2;
}

/* The response_format of an answer that has none. */
static int is_plain_text(const char *key, const json_t *value)
{
    return strcmp(key, "response_format") == 0 && json_object_size(value) == 1 && json_text_is(json_object_get(value, "type"), "text");
}

/* 1 where the key is one of them; `reason` where its value asks for something. */
static int take_not_done(const char *key, const json_t *value, char *reason, size_t size)
{
    for (size_t i = 0; i < sizeof not_done / sizeof *not_done; i++) {
        if (strcmp(key, not_done[i].key) != 0)
            continue;
        if (number_of(value) != not_done[i].only && !is_plain_text(key, value))
            say(reason, size, "body.%s is not supported%s", key,
                not_done[i].only == 1   ? ", expected 1"
                : not_done[i].only == 0 ? ", expected false"
                                        : "");
        return 1;
    }
    return 0;
}

/* A prompt is a text or a list of token ids, or a list of one such; a list of n prompts would ask for n choices in one result, and is refused. */
static int take_prompt(json_t *own, json_t *value, char *reason, size_t size)
{
    if (json_is_array(value) && json_array_size(value) == 1 && !json_is_integer(json_array_get(value, 0)))
        value = json_array_get(value, 0);
    if (json_is_string(value))
        return json_object_set(own, "prompt", value);
    if (json_is_array(value) && (json_array_size(value) == 0 || json_is_integer(json_array_get(value, 0))))
        return json_object_set(own, "prompt_tokens", value);
    say(reason, size, "body.prompt is not one text or one list of token ids");
    return 0;
}

/* max_completion_tokens is the newer name of a chat's max_tokens. */
static int take_limit(json_t *own, json_t *value, char *reason, size_t size)
{
    if (json_object_get(own, "max_tokens") != NULL)
        say(reason, size, "body has both max_tokens and max_completion_tokens");
    return json_object_set(own, "max_tokens", value);
}

/* A chat's two keys, logprobs and top_logprobs, are one of ours. */
static int take_chat_logprobs(json_t *own, const json_t *body, char *reason, size_t size)
{
    const json_t *asked = json_object_get(body, "logprobs"), *top = json_object_get(body, "top_logprobs");
    int has_top = top != NULL && !json_is_null(top);

    if (asked != NULL && !json_is_null(asked) && !json_is_boolean(asked))
        say(reason, size, "body.logprobs is not true or false, as a chat has it");
    else if (has_top && !json_is_true(asked))
        say(reason, size, "body.top_logprobs wants body.logprobs to be true");
    else if (has_top && !(json_is_integer(top) && json_integer_value(top) >= 0 && json_integer_value(top) <= ROW_MAX_LOGPROBS))
        say(reason, size, "body.top_logprobs is not a whole number from 0 to %d", ROW_MAX_LOGPROBS);
    else if (json_is_true(asked))
        return json_object_set_new(own, "logprobs", json_integer(has_top ? json_integer_value(top) : 0));
    return 0;
}

static int is_chat(const json_t *line)
{
    return json_text_is(json_object_get(line, "url"), "/v1/chat/completions");
}

/* A request that is a text is not a chat, and the other way round. */
static int is_of_the_other(const char *key, int chat)
{
    static const char *const of_texts[] = {"prompt", "suffix", "echo", "best_of"};
    static const char *const of_chats[] = {"messages", "max_completion_tokens", "top_logprobs"};

    for (size_t i = 0; i < sizeof of_texts / sizeof *of_texts; i++)
        if (chat && strcmp(key, of_texts[i]) == 0)
            return 1;
    for (size_t i = 0; i < sizeof of_chats / sizeof *of_chats; i++)
        if (!chat && strcmp(key, of_chats[i]) == 0)
            return 1;
    return 0;
}

static int take_body(json_t *own, json_t *body, int chat, char *reason, size_t size)
{
    int failed = chat ? take_chat_logprobs(own, body, reason, size) : 0;
    const char *key;
    json_t *value;

    json_object_foreach (body, key, value) {
        if (json_is_null(value) || is_of_no_effect(key))
            continue;
        if (strcmp(key, "id") == 0 || strcmp(key, "prompt_tokens") == 0 || is_of_the_other(key, chat))
            say(reason, size, "unknown key body.%s", key);
        else if (take_not_done(key, value, reason, size) || (chat && (strcmp(key, "logprobs") == 0 || strcmp(key, "top_logprobs") == 0)))
            continue;
        else if (strcmp(key, "max_completion_tokens") == 0 || (strcmp(key, "max_tokens") == 0 && json_object_get(own, "max_tokens") != NULL))
            failed |= take_limit(own, value, reason, size);
        else if (strcmp(key, "prompt") == 0)
            failed |= take_prompt(own, value, reason, size);
        else if (strcmp(key, "stop") == 0 && json_is_string(value))
            failed |= json_object_set_new(own, "stop", json_pack("[O]", value));
        else
            failed |= json_object_set(own, key, value);
    }
    return failed;
}

static void check_envelope(const json_t *line, char *reason, size_t size)
{
    if (!json_is_string(json_object_get(line, "custom_id")))
        say(reason, size, "custom_id is not a text");
    if (!json_text_is(json_object_get(line, "method"), "POST"))
        say(reason, size, "method is not \"POST\"");
    if (!json_text_is(json_object_get(line, "url"), "/v1/completions") && !is_chat(line))
        say(reason, size, "url is not /v1/completions or /v1/chat/completions");
    if (!json_is_object(json_object_get(line, "body")))
        say(reason, size, "body is not an object");
}

enum status request_openai_convert(json_t *line, json_t **own, char **model, char *reason, size_t size)
{
    json_t *id = json_object_get(line, "custom_id"), *name = json_object_get(json_object_get(line, "body"), "model");
    int failed;

    *reason = '\0';
    *model = json_is_string(name) ? strdup(json_string_value(name)) : NULL;
    *own = json_object();
    failed = *own == NULL || (*model == NULL && json_is_string(name)) || (id != NULL && json_object_set(*own, "id", id) != 0);
    check_envelope(line, reason, size);
    if (*reason == '\0' && !failed)
        failed |= take_body(*own, json_object_get(line, "body"), is_chat(line), reason, size);
    if (*reason == '\0' && is_chat(line) && json_object_get(*own, "messages") == NULL)
        say(reason, size, "body.messages is missing");
    if (*reason == '\0' && !is_chat(line) && json_object_get(*own, "prompt") == NULL && json_object_get(*own, "prompt_tokens") == NULL)
        say(reason, size, "body.prompt is missing");
    if (!failed)
        return STATUS_OK;
    json_decref(*own);
    *own = NULL;
    log_error("no memory for the requests");
    return STATUS_INTERNAL;
}
