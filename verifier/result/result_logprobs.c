#include "verifier/result/result_logprobs.h"

#include "common/file/json_text.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 512 };
#define LEAST -9999.0f /* as OpenAI has it, for what JSON has no number for */

static json_t *number(float logprob)
{
    return json_real((double)fmaxf(logprob, LEAST));
}

static const char *bytes_of(const struct sequence *sequence, int32_t token, size_t *length)
{
    return tokenizer_piece(sequence->completion.tokenizer, token, 0, 1, length);
}

/* The token as a text, or its bytes by name. name: [NAME] */
static void name_of(const struct sequence *sequence, int32_t token, char *name)
{
    size_t length, used;
    const char *bytes = bytes_of(sequence, token, &length);
    json_t *text = length < NAME ? json_stringn(bytes, length) : NULL;

    if (text != NULL && memchr(bytes, 0, length) == NULL) {
        snprintf(name, NAME, "%s", json_string_value(text));
    } else {
        used = (size_t)snprintf(name, NAME, "bytes:");
        for (size_t i = 0; i < length && used + 5 < NAME; i++)
            used += (size_t)snprintf(name + used, NAME - used, "\\x%02x", (unsigned char)bytes[i]);
    }
    json_decref(text);
}

static int32_t token_at(const struct sequence *sequence, int i)
{
    return sequence->tokens[sequence->request->prompt_count + i];
}

static json_t *token_logprobs(const struct sequence *sequence)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < sequence->completion.count; i++)
        failed |= json_array_append_new(array, number(sequence->logprobs[i].logprob));
    return json_text_whole(array, failed);
}

/* Two tokens of the same text are one key, with the larger of their log p. */
static json_t *tops_of(const struct sequence *sequence, const struct logprob *logprob)
{
    json_t *object = json_object();
    char name[NAME];
    int failed = 0;

    for (int i = 0; i < logprob->count; i++) {
        name_of(sequence, logprob->top[i].token, name);
        if (json_object_get(object, name) == NULL)
            failed |= json_object_set_new(object, name, number(logprob->top[i].score));
    }
    return json_text_whole(object, failed);
}

static json_t *top_logprobs(const struct sequence *sequence)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < sequence->completion.count; i++)
        failed |= json_array_append_new(array, tops_of(sequence, &sequence->logprobs[i]));
    return json_text_whole(array, failed);
}

json_t *result_logprobs(const struct sequence *sequence)
{
    json_t *object;
    int failed;

    if (sequence->logprobs == NULL)
        return json_null();
    object = json_object();
    failed = json_object_set_new(object, "token_logprobs", token_logprobs(sequence));
    if (sequence->request->logprobs > 0)
        failed |= json_object_set_new(object, "top_logprobs", top_logprobs(sequence));
    return json_text_whole(object, failed);
}

static int characters(const char *bytes, size_t length)
{
    int count = 0;

    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)bytes[i] & 0xc0) != 0x80;
    return count;
}

json_t *result_logprobs_of_text(const struct sequence *sequence)
{
    json_t *object, *tokens, *offsets;
    int failed = 0, at = 0;
    char name[NAME];

    if (sequence->logprobs == NULL)
        return json_null();
    object = json_object();
    tokens = json_array();
    offsets = json_array();
    for (int i = 0; i < sequence->completion.count; i++) {
        size_t length;
        const char *bytes = bytes_of(sequence, token_at(sequence, i), &length);

        name_of(sequence, token_at(sequence, i), name);
        failed |= json_array_append_new(tokens, json_string(name));
        failed |= json_array_append_new(offsets, json_integer(at));
        at += characters(bytes, length);
    }
    failed |= json_object_set_new(object, "tokens", tokens);
    failed |= json_object_set_new(object, "token_logprobs", token_logprobs(sequence));
    failed |= json_object_set_new(object, "top_logprobs", sequence->request->logprobs > 0 ? top_logprobs(sequence) : json_null());
    failed |= json_object_set_new(object, "text_offset", offsets);
    return json_text_whole(object, failed);
}

/* One token of a chat: with its bytes, of which several tokens may make one character. */
static json_t *chat_token(const struct sequence *sequence, int32_t token, float logprob)
{
    size_t length;
    const char *bytes = bytes_of(sequence, token, &length);
    json_t *object = json_object(), *list = json_array();
    char name[NAME];
    int failed = 0;

    name_of(sequence, token, name);
    for (size_t i = 0; i < length; i++)
        failed |= json_array_append_new(list, json_integer((unsigned char)bytes[i]));
    failed |= json_object_set_new(object, "token", json_string(name));
    failed |= json_object_set_new(object, "logprob", number(logprob));
    failed |= json_object_set_new(object, "bytes", list);
    return json_text_whole(object, failed);
}

json_t *result_logprobs_of_chat(const struct sequence *sequence)
{
    json_t *object, *content;
    int failed = 0;

    if (sequence->logprobs == NULL)
        return json_null();
    object = json_object();
    content = json_array();
    for (int i = 0; i < sequence->completion.count; i++) {
        const struct logprob *logprob = &sequence->logprobs[i];
        json_t *entry = chat_token(sequence, token_at(sequence, i), logprob->logprob), *tops = json_array();

        for (int k = 0; k < logprob->count; k++)
            failed |= json_array_append_new(tops, chat_token(sequence, logprob->top[k].token, logprob->top[k].score));
        failed |= json_object_set_new(entry, "top_logprobs", tops);
        failed |= json_array_append_new(content, entry);
    }
    failed |= json_object_set_new(object, "content", content);
    failed |= json_object_set_new(object, "refusal", json_null());
    return json_text_whole(object, failed);
}
