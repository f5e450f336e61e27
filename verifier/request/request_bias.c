#include "verifier/request/request_bias.h"

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

int request_bias_knows(const char *key)
{
    return strcmp(key, "logit_bias") == 0 || strcmp(key, "bad_words") == 0;
}

static int is_id(const json_t *value, int vocab)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) < vocab;
}

/* A key that is a token id as JSON would write the number. */
static int is_id_key(const char *key, int vocab, int32_t *id)
{
    size_t length = strlen(key);

    if (length == 0 || length > 9 || strspn(key, "0123456789") != length || (*key == '0' && length > 1))
        return 0;
    *id = (int32_t)strtol(key, NULL, 10);
    return *id < vocab;
}

static void take_biases(struct bias *bias, const json_t *object, int vocab, char *reason, size_t size)
{
    const char *key;
    json_t *value;
    int32_t id = 0;

    bias->tokens = 0;
    if (!json_is_object(object))
        snprintf(reason, size, "logit_bias is not an object of token ids and numbers");
    else if (json_object_size(object) > BIAS_MAX_TOKENS)
        snprintf(reason, size, "logit_bias has %zu tokens, expected at most %d", json_object_size(object), BIAS_MAX_TOKENS);
    if (*reason != '\0')
        return;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        if (!is_id_key(key, vocab, &id))
            snprintf(reason, size, "logit_bias has the key \"%.20s\", expected a token id from 0 to %d", key, vocab - 1);
        else if (!json_is_number(value))
            snprintf(reason, size, "logit_bias of token %d is not a number", id);
        else
            bias_add_token(bias, id, json_number_value(value));
    }
}

/* Adds a bad word as tokens. */
static void add_word(struct bias *bias, const int32_t *tokens, int count, char *reason, size_t size)
{
    if (count < 1 || count > BIAS_MAX_WORD) {
        snprintf(reason, size, "a sequence of bad_words has %d tokens, expected 1 to %d", count, BIAS_MAX_WORD);
        return;
    }
    for (int i = 0; i < bias->words; i++)
        if (bias->length[i] == count && memcmp(bias->word[i], tokens, (size_t)count * sizeof *tokens) == 0)
            return;
    if (bias->words == BIAS_MAX_WORDS) {
        snprintf(reason, size, "bad_words has more than %d token sequences (a text is two: with a space before it and without)", BIAS_MAX_WORDS);
        return;
    }
    memcpy(bias->word[bias->words], tokens, (size_t)count * sizeof *tokens);
    bias->length[bias->words++] = count;
}

/* The tokens of a text are others behind a space than at the beginning: both are meant, unless the text begins with one. */
static enum status add_text(struct bias *bias, const struct request_terms *terms, const char *text, size_t length, char *reason, size_t size)
{
    char *spaced = malloc(length + 1);
    enum status status = STATUS_OK;

    if (spaced == NULL)
        return no_memory();
    *spaced = ' ';
    memcpy(spaced + 1, text, length);
    for (int with = 0; with < (length > 0 && *text != ' ' ? 2 : 1) && status == STATUS_OK && *reason == '\0'; with++) {
        int32_t *tokens = NULL;
        int count = 0;
        size_t bad;

        status = tokenizer_encode(terms->tokenizer, with ? spaced : text, length + (size_t)with, TOKENIZER_PARSE_SPECIAL, &tokens, &count, &bad);
        if (status == STATUS_OK)
            add_word(bias, tokens, count, reason, size);
        free(tokens);
    }
    free(spaced);
    if (status == STATUS_DATA)
        snprintf(reason, size, "a text of bad_words is not valid UTF-8, or cannot be cut into tokens");
    return status == STATUS_DATA ? STATUS_OK : status;
}

static void add_ids(struct bias *bias, const json_t *array, int vocab, char *reason, size_t size)
{
    int32_t tokens[BIAS_MAX_WORD];
    size_t count = json_array_size(array);

    for (size_t i = 0; i < count && i < BIAS_MAX_WORD; i++) {
        const json_t *entry = json_array_get(array, i);

        if (!is_id(entry, vocab)) {
            snprintf(reason, size, "a sequence of bad_words has something else than a token id from 0 to %d", vocab - 1);
            return;
        }
        tokens[i] = (int32_t)json_integer_value(entry);
    }
    add_word(bias, tokens, count <= BIAS_MAX_WORD ? (int)count : BIAS_MAX_WORD + 1, reason, size);
}

static enum status take_words(struct bias *bias, const struct request_terms *terms, const json_t *array, char *reason, size_t size)
{
    bias->words = 0;
    if (!json_is_array(array))
        snprintf(reason, size, "bad_words is not a list of texts and lists of token ids");
    for (size_t i = 0; json_is_array(array) && i < json_array_size(array) && *reason == '\0'; i++) {
        const json_t *entry = json_array_get(array, i);

        if (json_is_array(entry))
            add_ids(bias, entry, terms->vocab, reason, size);
        else if (json_is_string(entry))
            TRY(add_text(bias, terms, json_string_value(entry), json_string_length(entry), reason, size));
        else
            snprintf(reason, size, "bad_words[%zu] is not a text or a list of token ids", i);
    }
    return STATUS_OK;
}

/* A bias of the request's own, which begins as the options' one. */
static enum status own(struct request *request)
{
    if (request->own_bias != NULL)
        return STATUS_OK;
    request->own_bias = calloc(1, sizeof *request->own_bias);
    if (request->own_bias == NULL)
        return no_memory();
    if (request->bias != NULL)
        *request->own_bias = *request->bias;
    request->bias = request->own_bias;
    return STATUS_OK;
}

enum status request_bias_take(struct request *request, const struct request_terms *terms, const char *key, const json_t *value, char *reason,
                              size_t size)
{
    *reason = '\0';
    TRY(own(request));
    if (strcmp(key, "logit_bias") == 0)
        take_biases(request->own_bias, value, terms->vocab, reason, size);
    else
        TRY(take_words(request->own_bias, terms, value, reason, size));
    if (*reason == '\0')
        bias_check(request->own_bias, terms->vocab, reason, size);
    return STATUS_OK;
}

/* The options' stop tokens are put into the block so that their ids are checked, and taken out again. */
static enum status fill(struct bias *bias, const struct request_terms *terms, char *reason, size_t size)
{
    const struct options *options = terms->options;

    *bias = options->request.bias;
    for (int i = 0; i < options->request.bad_word.count && *reason == '\0'; i++)
        TRY(add_text(bias, terms, options->request.bad_word.text[i], strlen(options->request.bad_word.text[i]), reason, size));
    memcpy(bias->ender, options->request.stop_token.id, (size_t)options->request.stop_token.count * sizeof *bias->ender);
    bias->enders = options->request.stop_token.count;
    if (*reason == '\0')
        bias_check(bias, terms->vocab, reason, size);
    bias->enders = 0;
    return STATUS_OK;
}

enum status request_prepare(struct request_list *list, const struct request_terms *terms)
{
    const struct options *options = terms->options;
    char reason[160] = "";

    if (list->is_prepared)
        return STATUS_OK;
    list->is_prepared = 1;
    if (options->request.bias.tokens == 0 && options->request.bad_word.count == 0 && options->request.stop_token.count == 0)
        return STATUS_OK;
    list->bias = calloc(1, sizeof *list->bias);
    if (list->bias == NULL)
        return no_memory();
    TRY(fill(list->bias, terms, reason, sizeof reason));
    if (*reason == '\0')
        return STATUS_OK;
    log_error("the command line: %s", reason);
    return STATUS_USAGE;
}
