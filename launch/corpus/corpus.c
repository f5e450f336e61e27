#include "launch/corpus/corpus.h"

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/try.h"
#include "common/file/file_map.h"
#include "common/file/json_text.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 1 << 16 /* bytes of a plain text that are cut into tokens at once, or up to the end of a line behind them */ };

struct reader {
    const char *path;
    const struct tokenizer *tokenizer;
    struct texts *texts;
};

static int find_newline(const char *text, size_t count, size_t from, size_t *at)
{
    const char *found = from < count ? memchr(text + from, '\n', count - from) : NULL;

    *at = found != NULL ? (size_t)(found - text) + 1 : count;
    return found != NULL;
}

/* The tokens of one text, cut in parts at ends of lines: few tokens reach over one. */
static enum status encode(const struct reader *reader, const char *text, size_t length, int32_t **tokens, size_t *count)
{
    *tokens = NULL;
    *count = 0;
    for (size_t begin = 0, end; begin < length; begin = end) {
        int32_t *part, *grown;
        int some;
        size_t bad;

        find_newline(text, length, begin + PART, &end);
        enum status status =
            tokenizer_encode(reader->tokenizer, text + begin, end - begin, begin == 0 ? TOKENIZER_ADD_SPECIAL : 0, &part, &some, &bad);

        if (status == STATUS_DATA && bad < end - begin)
            log_error("%s: byte %zu of a text is not UTF-8", reader->path, begin + bad + 1);
        TRY(status);
        grown = realloc(*tokens, (*count + (size_t)some + 1) * sizeof *grown);
        if (grown == NULL) {
            free(part);
            log_error("%s: no memory for its tokens", reader->path);
            return STATUS_INTERNAL;
        }
        memcpy(grown + *count, part, (size_t)some * sizeof *part);
        free(part);
        *tokens = grown;
        *count += (size_t)some;
    }
    return STATUS_OK;
}

static enum status add_text(const struct reader *reader, const char *text, size_t length)
{
    int32_t *tokens;
    size_t count;
    enum status status = encode(reader, text, length, &tokens, &count);

    if (status == STATUS_OK && count > 0)
        status = texts_add(reader->texts, tokens, count);
    free(tokens);
    return status;
}

static enum status add_string(const struct reader *reader, const json_t *text)
{
    return json_is_string(text) ? add_text(reader, json_string_value(text), json_string_length(text)) : STATUS_OK;
}

/* The prompt of an object and the text behind it, as one. */
static enum status add_both(const struct reader *reader, const json_t *prompt, const json_t *text)
{
    size_t before = json_string_length(prompt), behind = json_string_length(text);
    char *both = malloc(before + behind + 1);
    enum status status;

    if (both == NULL) {
        log_error("%s: no memory for a text", reader->path);
        return STATUS_INTERNAL;
    }
    memcpy(both, before > 0 ? json_string_value(prompt) : "", before);
    memcpy(both + before, behind > 0 ? json_string_value(text) : "", behind);
    status = add_text(reader, both, before + behind);
    free(both);
    return status;
}

/* What is in a line and is no text of it, whatever it looks like. */
static int is_no_text(const char *key)
{
    static const char *const keys[] = {"id", "custom_id", "metadata", "tools", "logprobs"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return 1;
    return 0;
}

/* Of an object its "prompt" and "text" as one text, or its "content"; and so all that is in it, as results of several completions, messages and the
 * requests and answers of others have texts. *found: one of these keys was there, with a text or, as answers that call tools have it, without. */
static enum status add_value(const struct reader *reader, json_t *value, int *found)
{
    const json_t *prompt = json_object_get(value, "prompt"), *text = json_object_get(value, "text"), *content = json_object_get(value, "content");
    enum status status = STATUS_OK;

    *found |= json_is_string(prompt) || json_is_string(text) || content != NULL || json_is_string(json_array_get(prompt, 0));
    if (json_is_string(prompt) || json_is_string(text))
        status = add_both(reader, prompt, text);
    for (size_t i = 0; i < json_array_size(prompt) && status == STATUS_OK; i++)
        status = add_string(reader, json_array_get(prompt, i));
    if (status == STATUS_OK)
        status = add_string(reader, content);
    for (void *at = json_object_iter(value); at != NULL && status == STATUS_OK; at = json_object_iter_next(value, at))
        if (!is_no_text(json_object_iter_key(at)))
            status = add_value(reader, json_object_iter_value(at), found);
    for (size_t i = 0; i < json_array_size(value) && status == STATUS_OK; i++)
        status = add_value(reader, json_array_get(value, i), found);
    return status;
}

/* A mapped file has no end but its length. */
static int is_blank(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (strchr(" \t\r\n", text[i]) == NULL || text[i] == '\0')
            return 0;
    return 1;
}

static enum status add_line(const struct reader *reader, const char *text, size_t length, long number)
{
    static const struct json_text_limits limits = {.depth = 32, .values = 1 << 24};
    enum status status;
    char fault[JSON_TEXT_FAULT];
    int found = 0;
    json_t *line;

    if (is_blank(text, length))
        return STATUS_OK;
    status = json_text_read(text, length, JSON_ALLOW_NUL, &limits, &line, fault);
    if (status == STATUS_DATA)
        log_error("%s:%ld: %s", reader->path, number, fault);
    TRY(status);
    status = add_value(reader, line, &found);
    if (status == STATUS_OK && !found && (json_object_get(line, "error") == NULL || json_is_null(json_object_get(line, "error")))) {
        log_error("%s:%ld: expected an object with a \"text\", a \"prompt\" or a \"content\" that is a text", reader->path, number);
        status = STATUS_DATA;
    }
    json_decref(line);
    return status;
}

static enum status add_lines(const struct reader *reader, const char *text, size_t length)
{
    long number = 1;

    for (size_t begin = 0, end; begin < length; begin = end, number++) {
        find_newline(text, length, begin, &end);
        TRY(add_line(reader, text + begin, end - begin, number));
    }
    return STATUS_OK;
}

enum status corpus_add(const char *path, const struct tokenizer *tokenizer, struct texts *texts)
{
    const struct reader reader = {.path = path, .tokenizer = tokenizer, .texts = texts};
    struct file_map file;
    enum status status;

    TRY(file_map_open(path, &file));
    status = paths_end_in(path, ".jsonl") ? add_lines(&reader, (const char *)file.bytes, file.size)
                                          : add_text(&reader, (const char *)file.bytes, file.size);
    file_map_close(&file);
    return status;
}
