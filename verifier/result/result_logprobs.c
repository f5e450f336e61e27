#include "verifier/result/result_logprobs.h"

#include "common/file/json_text.h"
#include "verifier/result/result_text.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 512 };
#define LEAST -9999.0 /* as OpenAI has it, for what JSON has no number for */

json_t *result_number(double logprob)
{
    return json_real(fmax(logprob, LEAST));
}

static json_t *number(float logprob)
{
    return result_number((double)logprob);
}

static json_t *number_at(const struct sequence *sequence, int place)
{
    const struct logprob *logprob = sequence_logprob(sequence, place);

    return logprob != NULL ? number(logprob->logprob) : json_null();
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

static json_t *token_logprobs(const struct sequence *sequence)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = result_first(sequence); i < sequence->length; i++)
        failed |= json_array_append_new(array, number_at(sequence, i));
    return json_text_whole(array, failed);
}

/* Two tokens of the same text are one key, with the larger of their log p. */
static json_t *tops_at(const struct sequence *sequence, int place)
{
    const struct logprob *logprob = sequence_logprob(sequence, place);
    json_t *object = logprob != NULL ? json_object() : json_null();
    char name[NAME];
    int failed = 0;

    for (int i = 0; logprob != NULL && i < logprob->count; i++) {
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

    for (int i = result_first(sequence); i < sequence->length; i++)
        failed |= json_array_append_new(array, tops_at(sequence, i));
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

/* Bytes of the prompt's text from `used` on that are this token's: none where a tokenizer has put it in, as a BOS, and the space that it put first is
 * none of it either. */
static size_t bytes_of_prompt(const struct sequence *sequence, int place, size_t used)
{
    const struct request *request = sequence->request;
    size_t length;
    const char *bytes = tokenizer_piece(sequence->completion.tokenizer, sequence->tokens[place], used == 0, 1, &length);

    return length <= request->prompt_length - used && memcmp(request->prompt + used, bytes, length) == 0 ? length : 0;
}

static json_t *token_names(const struct sequence *sequence)
{
    json_t *array = json_array();
    char name[NAME];
    int failed = 0;

    for (int i = result_first(sequence); i < sequence->length; i++) {
        name_of(sequence, sequence->tokens[i], name);
        failed |= json_array_append_new(array, json_string(name));
    }
    return json_text_whole(array, failed);
}

static json_t *text_offsets(const struct sequence *sequence)
{
    const struct request *request = sequence->request;
    json_t *array = json_array();
    int failed = 0, at = 0;
    size_t used = 0, length;

    for (int i = result_first(sequence); i < request->prompt_count; i++) {
        failed |= json_array_append_new(array, json_integer(at));
        length = bytes_of_prompt(sequence, i, used);
        at += characters(request->prompt + used, length);
        used += length;
    }
    at = characters(request->prompt, request->prompt_length);
    for (int i = request->prompt_count; i < sequence->length; i++) {
        const char *bytes = bytes_of(sequence, sequence->tokens[i], &length);

        failed |= json_array_append_new(array, json_integer(at));
        at += characters(bytes, length);
    }
    return json_text_whole(array, failed);
}

json_t *result_logprobs_of_text(const struct sequence *sequence)
{
    json_t *object;
    int failed;

    if (sequence->logprobs == NULL)
        return json_null();
    object = json_object();
    failed = json_object_set_new(object, "tokens", token_names(sequence));
    failed |= json_object_set_new(object, "token_logprobs", token_logprobs(sequence));
    failed |= json_object_set_new(object, "top_logprobs", sequence->request->logprobs > 0 ? top_logprobs(sequence) : json_null());
    failed |= json_object_set_new(object, "text_offset", text_offsets(sequence));
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
    for (int i = result_first(sequence); i < sequence->length; i++) {
        const struct logprob *logprob = sequence_logprob(sequence, i);
        json_t *entry = chat_token(sequence, sequence->tokens[i], logprob->logprob), *tops = json_array();

        for (int k = 0; k < logprob->count; k++)
            failed |= json_array_append_new(tops, chat_token(sequence, logprob->top[k].token, logprob->top[k].score));
        failed |= json_object_set_new(entry, "top_logprobs", tops);
        failed |= json_array_append_new(content, entry);
    }
    failed |= json_object_set_new(object, "content", content);
    failed |= json_object_set_new(object, "refusal", json_null());
    return json_text_whole(object, failed);
}
