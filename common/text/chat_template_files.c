/* Where a model's files have their chat template and the names of its tokens. */
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/plain_file.h"
#include "common/base/try.h"
#include "common/file/file_map.h"
#include "common/file/gguf.h"
#include "common/file/json_text.h"
#include "common/text/chat_template.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH = 64, VALUES = 1 << 20 };

static enum status no_memory(void)
{
    log_error("no memory for a chat template");
    return STATUS_INTERNAL;
}

static enum status cannot_read(const char *path)
{
    log_error("%s: %s", path, plain_file_fault());
    return STATUS_NOINPUT;
}

static void fault(struct chat_template *template, const char *path, const char *what)
{
    if (template->family == CHAT_AUTO)
        snprintf(template->fault, sizeof template->fault, "the model has no chat template: %.120s is %.100s; --template NAME gives one", path, what);
}

static enum status read_open(FILE *file, const char *path, struct chat_template *template, char **text, size_t *size)
{
    struct stat about;

    if (fstat(fileno(file), &about) != 0)
        return cannot_read(path);
    if (!S_ISREG(about.st_mode) || about.st_size > CHAT_TEMPLATE_FILE_BYTES) {
        fault(template, path, "not a file of at most 16 MiB");
        return STATUS_OK;
    }
    *text = malloc((size_t)about.st_size + 1);
    if (*text == NULL)
        return no_memory();
    *size = fread(*text, 1, (size_t)about.st_size, file);
    (*text)[*size] = '\0';
    return ferror(file) ? cannot_read(path) : STATUS_OK;
}

/* All of FOLDER/NAME and a NUL; *text stays NULL where there is no such file, and where it is none to be read, which is a fault. */
static enum status read_text(const char *folder, const char *name, struct chat_template *template, char **text, size_t *size)
{
    char path[PATH_MAX];
    enum status status;
    FILE *file;

    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return STATUS_OK;
    file = plain_file_read(path);
    if (file == NULL)
        return errno == ENOENT || errno == ENOTDIR ? STATUS_OK : cannot_read(path);
    status = read_open(file, path, template, text, size);
    fclose(file);
    return status;
}

/* A token's text stands alone or in an object. */
static void take_token(const json_t *config, const char *key, char token[CHAT_TOKEN_BYTES])
{
    const json_t *value = json_object_get(config, key);
    const char *text = json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);

    if (text != NULL && strlen(text) < CHAT_TOKEN_BYTES)
        snprintf(token, CHAT_TOKEN_BYTES, "%s", text);
    else if (json_is_null(value))
        *token = '\0'; /* it says that there is none */
}

/* One program, or several by name. */
static const char *program_of(const json_t *config)
{
    const json_t *value = json_object_get(config, "chat_template");

    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *entry = json_array_get(value, i);
        const char *name = json_string_value(json_object_get(entry, "name"));

        if (name != NULL && strcmp(name, "default") == 0)
            return json_string_value(json_object_get(entry, "template"));
    }
    return json_string_value(value);
}

static enum status take_config(struct chat_template *template, const json_t *config, const char *jinja)
{
    const char *program = jinja != NULL ? jinja : program_of(config);

    if (program != NULL)
        TRY(chat_template_learn(template, program));
    if (template->family != CHAT_AUTO) {
        take_token(config, "bos_token", template->bos);
        take_token(config, "eos_token", template->eos);
    }
    return STATUS_OK;
}

static enum status open_folder(struct chat_template *template, const char *folder)
{
    static const struct json_text_limits limits = {.depth = DEPTH, .values = VALUES};
    char words[JSON_TEXT_FAULT], *jinja = NULL, *text = NULL;
    json_t *config = NULL;
    enum status status;
    size_t size = 0;

    TRY_TO(read_text(folder, "chat_template.jinja", template, &jinja, &size), release);
    TRY_TO(read_text(folder, "tokenizer_config.json", template, &text, &size), release);
    status = text != NULL ? json_text_read(text, size, 0, &limits, &config, words) : STATUS_OK;
    if (status == STATUS_DATA) {
        fault(template, "tokenizer_config.json", words);
        status = STATUS_OK;
    }
    if (status == STATUS_OK)
        status = take_config(template, config, jinja);
release:
    json_decref(config);
    free(jinja);
    free(text);
    return status;
}

/* The text of the token that the key names; none where it says so by -1 or the largest number, as the tokenizer reads it. */
static enum status take_id(const struct gguf *gguf, const char *key, char token[CHAT_TOKEN_BYTES])
{
    const struct gguf_value *list;
    const unsigned char *at;
    struct gguf_text text = {0};
    int64_t id = -1;

    if (gguf_find(gguf, key) == NULL)
        return STATUS_OK;
    TRY(gguf_list(gguf, "tokenizer.ggml.tokens", GGUF_TEXT, GGUF_NEEDED, &list));
    TRY(gguf_integer(gguf, key, GGUF_NEEDED, -1, UINT32_MAX, &id));
    if (id == UINT32_MAX)
        id = -1;
    if (id >= (int64_t)list->count)
        return gguf_refuse(gguf, key, "the id of a token");
    at = list->data;
    for (int64_t i = 0; i <= id; i++)
        text = gguf_next_text(&at);
    if (text.length < CHAT_TOKEN_BYTES)
        snprintf(token, CHAT_TOKEN_BYTES, "%.*s", (int)text.length, text.bytes);
    return STATUS_OK;
}

static enum status take_keys(struct chat_template *template, const struct gguf *gguf)
{
    struct gguf_text program = {0};
    enum status status;
    char *text;

    TRY(gguf_string(gguf, "tokenizer.chat_template", GGUF_OPTIONAL, &program));
    if (program.bytes != NULL) {
        text = strndup(program.bytes, program.length);
        if (text == NULL)
            return no_memory();
        status = chat_template_learn(template, text);
        free(text);
        TRY(status);
    }
    if (template->family == CHAT_AUTO)
        return STATUS_OK;
    TRY(take_id(gguf, "tokenizer.ggml.bos_token_id", template->bos));
    return take_id(gguf, "tokenizer.ggml.eos_token_id", template->eos);
}

static enum status open_gguf(struct chat_template *template, const char *path)
{
    struct file_map map;
    struct gguf gguf;
    enum status status;

    TRY(file_map_open(path, &map));
    status = gguf_read(path, map.bytes, map.size, &gguf);
    if (status == STATUS_OK) {
        status = take_keys(template, &gguf);
        gguf_release(&gguf);
    }
    file_map_close(&map);
    return status;
}

enum status chat_template_open(const char *model, enum chat_family family, struct chat_template *template)
{
    char path[PATH_MAX];
    enum status status;

    chat_template_init(template, family);
    status = paths_gguf(model, path, sizeof path) == 1 ? open_gguf(template, path) : open_folder(template, model);
    if (status != STATUS_OK)
        chat_template_release(template);
    return status;
}
