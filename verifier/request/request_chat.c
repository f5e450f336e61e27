#include "verifier/request/request_chat.h"

#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include "verifier/request/request_stop.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Messages as the template wants them. */
struct reading {
    struct chat_message *message; /* [count] */
    size_t count;
    struct byte_buffer joined; /* contents that came in parts; it has room for all of them from the start */
    char *reason;
    size_t size;
};

static enum status no_memory(void)
{
    log_error("no memory for the requests");
    return STATUS_INTERNAL;
}

static const char *const role_name[CHAT_ROLES] = {[CHAT_SYSTEM] = "system", [CHAT_USER] = "user", [CHAT_ASSISTANT] = "assistant"};

static void take_role(struct reading *reading, size_t at, const json_t *value)
{
    for (int role = 0; role < CHAT_ROLES; role++)
        if (json_text_is(value, role_name[role])) {
            reading->message[at].role = (enum chat_role)role;
            return;
        }
    if (json_text_is(value, "developer")) { /* OpenAI's newer word */
        reading->message[at].role = CHAT_SYSTEM;
        return;
    }
    snprintf(reading->reason, reading->size, "messages[%zu].role is not \"system\", \"user\" or \"assistant\"", at);
}

/* The text of one part, or NULL. */
static const json_t *text_of(const json_t *part)
{
    const json_t *text = json_object_get(part, "text");

    return json_text_is(json_object_get(part, "type"), "text") && json_is_string(text) ? text : NULL;
}

/* Parts stand on lines of their own, as in vLLM and llama.cpp. */
static enum status join(struct reading *reading, size_t at, const json_t *parts)
{
    size_t start = reading->joined.count, room = 1;

    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *text = text_of(json_array_get(parts, i));

        if (text == NULL) {
            snprintf(reading->reason, reading->size, "messages[%zu].content[%zu] is not of the form {\"type\": \"text\", \"text\": TEXT}", at, i);
            return STATUS_OK;
        }
        room += json_string_length(text) + 1;
    }
    TRY(byte_buffer_reserve(&reading->joined, start + room));
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *text = text_of(json_array_get(parts, i));

        if (i > 0)
            TRY(byte_buffer_append(&reading->joined, "\n", 1));
        TRY(byte_buffer_append(&reading->joined, json_string_value(text), json_string_length(text)));
    }
    reading->message[at].length = reading->joined.count - start;
    return STATUS_OK;
}

static enum status take_content(struct reading *reading, size_t at, const json_t *value)
{
    if (json_is_array(value) && json_array_size(value) > 0)
        return join(reading, at, value); /* its text is set once all parts are joined, for the buffer may move until then */
    if (!json_is_string(value)) {
        snprintf(reading->reason, reading->size, "messages[%zu].content is not a text or a list of texts", at);
        return STATUS_OK;
    }
    reading->message[at].content = json_string_value(value);
    reading->message[at].length = json_string_length(value);
    return STATUS_OK;
}

/* Other keys that a message may have; no template here uses them. */
static int is_of_no_effect(const char *key, const json_t *value)
{
    return json_is_null(value) || strcmp(key, "name") == 0;
}

static enum status take_message(struct reading *reading, size_t at, json_t *message)
{
    const char *key;
    json_t *value;

    if (!json_is_object(message)) {
        snprintf(reading->reason, reading->size, "messages[%zu] is not an object with role and content", at);
        return STATUS_OK;
    }
    take_role(reading, at, json_object_get(message, "role"));
    if (*reading->reason == '\0')
        TRY(take_content(reading, at, json_object_get(message, "content")));
    json_object_foreach (message, key, value)
        if (*reading->reason == '\0' && strcmp(key, "role") != 0 && strcmp(key, "content") != 0 && !is_of_no_effect(key, value))
            snprintf(reading->reason, reading->size, "messages[%zu].%.64s is not supported", at, key);
    return STATUS_OK;
}

static enum status take_all(struct reading *reading, const json_t *list)
{
    size_t from = 0;

    if (!json_is_array(list))
        snprintf(reading->reason, reading->size, "messages is not a list");
    reading->message = calloc(json_array_size(list) + 1, sizeof *reading->message);
    if (reading->message == NULL)
        return no_memory();
    for (; reading->count < json_array_size(list) && *reading->reason == '\0'; reading->count++)
        TRY(take_message(reading, reading->count, json_array_get(list, reading->count)));
    for (size_t i = 0; i < reading->count; i++)
        if (reading->message[i].content == NULL) {
            reading->message[i].content = reading->joined.data != NULL ? reading->joined.data + from : "";
            from += reading->message[i].length;
        }
    return STATUS_OK;
}

static enum status render(struct request *request, const struct request_terms *terms, const struct reading *reading)
{
    struct chat_template none;
    const struct chat_template *template = terms->chat;
    struct chat_prompt prompt = {0};
    enum status status;

    if (template == NULL) {
        chat_template_init(&none, CHAT_AUTO);
        template = &none;
    }
    status = chat_template_render(template, reading->message, reading->count, &prompt, reading->reason, reading->size);
    if (status == STATUS_OK) {
        status = chat_template_encode(template, terms->tokenizer, &prompt, &request->tokens, &request->prompt_count, NULL);
        if (status == STATUS_DATA)
            snprintf(reading->reason, reading->size, "the messages cannot be cut into tokens");
    }
    chat_template_discard(&prompt);
    return status == STATUS_DATA ? STATUS_OK : status;
}

/* The same messages give another prompt under another template, so the request's digest covers the prompt's tokens. */
static enum status take_rendered(struct request *request, const struct request_terms *terms, const struct reading *reading)
{
    request->chat = 1;
    TRY(render(request, terms, reading));
    if (request->tokens != NULL)
        request->digest = digest_tokens(request->digest, request->tokens, request->prompt_count);
    return STATUS_OK;
}

enum status request_chat_take_text(struct request *request, const struct request_terms *terms, const char *text, size_t length, char *reason,
                                   size_t size)
{
    struct chat_message message = {.role = CHAT_USER, .content = text, .length = length};
    const struct reading reading = {.message = &message, .count = 1, .reason = reason, .size = size};

    *reason = '\0';
    return take_rendered(request, terms, &reading);
}

enum status request_chat_take(struct request *request, const struct request_terms *terms, const json_t *value, char *reason, size_t size)
{
    struct reading reading = {.reason = reason, .size = size};
    enum status status;

    *reason = '\0';
    request->chat = 1;
    status = take_all(&reading, value);
    if (status == STATUS_OK && *reason == '\0')
        status = take_rendered(request, terms, &reading);
    byte_buffer_release(&reading.joined);
    free(reading.message);
    return status;
}

enum status request_chat_end(struct request *request, const struct request_terms *terms)
{
    const char *text = chat_template_end(terms->chat);

    TRY(chat_template_end_token(terms->chat, terms->tokenizer, &request->turn_end));
    request->has_turn_end = request->turn_end >= 0 && request->turn_end < terms->vocab; /* otherwise the model cannot generate it as one token */
    return request->turn_end >= 0 || *text == '\0' ? STATUS_OK : request_stop_add(request, text);
}
