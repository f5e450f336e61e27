#include "common/model/checkpoint_json.h"

#include "common/base/log.h"
#include "common/base/plain_file.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status checkpoint_json_parse(const char *file, const char *text, size_t size, json_t **object)
{
    static const struct json_text_limits limits = {.depth = CHECKPOINT_JSON_DEPTH, .values = CHECKPOINT_JSON_VALUES};
    char fault[JSON_TEXT_FAULT];
    enum status status;
    json_t *root;

    status = json_text_read(text, size, 0, &limits, &root, fault);
    if (status == STATUS_DATA)
        log_error("%s: %s", file, fault);
    TRY(status);
    if (!json_is_object(root)) {
        log_error("%s: the JSON is not an object", file);
        json_decref(root);
        return STATUS_DATA;
    }
    *object = root;
    return STATUS_OK;
}

enum status checkpoint_json_read(const char *file, size_t most, json_t **object)
{
    enum status status = STATUS_OK;
    size_t size = 0, room = 4096;
    char *text = NULL;
    FILE *stream = plain_file_read(file);

    if (stream == NULL) {
        log_error("%s: %s", file, plain_file_fault());
        return STATUS_NOINPUT;
    }
    do { /* one byte over the limit is asked for, so that a longer file is seen */
        char *grown = realloc(text, room = room * 2 < most + 1 ? room * 2 : most + 1);

        if (grown == NULL) {
            log_error("%s: no memory for %zu bytes of it", file, room);
            status = STATUS_INTERNAL;
            goto close_stream;
        }
        text = grown;
        size += fread(text + size, 1, room - size, stream);
    } while (size == room && size <= most);
    if (ferror(stream)) {
        log_error("%s: cannot be read", file);
        status = STATUS_NOINPUT;
    } else if (size > most) {
        log_error("%s: longer than %zu bytes", file, most);
        status = STATUS_DATA;
    } else {
        status = checkpoint_json_parse(file, text, size, object);
    }
close_stream:
    fclose(stream);
    free(text);
    return status;
}

json_t *checkpoint_json_get(const struct checkpoint_json *json, const char *key)
{
    json_t *value = json_object_get(json->object, key);

    return json_is_null(value) ? NULL : value;
}

enum status checkpoint_json_refuse(const struct checkpoint_json *json, const char *key, const char *expected)
{
    json_t *value = json_object_get(json->object, key);
    char *text;

    if (value == NULL) {
        log_error("%s: key \"%s\" is missing, expected %s", json->file, key, expected);
        return STATUS_DATA;
    }
    text = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT);
    log_error("%s: key \"%s\" is %.*s%s, expected %s", json->file, key, CHECKPOINT_JSON_TEXT, text != NULL ? text : "unreadable",
              text != NULL && strlen(text) > CHECKPOINT_JSON_TEXT ? "..." : "", expected);
    free(text);
    return STATUS_DATA;
}

static enum status absent(const struct checkpoint_json *json, const char *key, enum checkpoint_json_need need, const char *expected)
{
    return need == CHECKPOINT_JSON_NEEDED ? checkpoint_json_refuse(json, key, expected) : STATUS_OK;
}

enum status checkpoint_json_integer(const struct checkpoint_json *json, const char *key, enum checkpoint_json_need need, int least,
                                    int most, int *value)
{
    json_t *found = checkpoint_json_get(json, key);
    char expected[64];

    snprintf(expected, sizeof expected, "an integer from %d to %d", least, most);
    if (found == NULL)
        return absent(json, key, need, expected);
    if (!json_is_integer(found) || json_integer_value(found) < least || json_integer_value(found) > most)
        return checkpoint_json_refuse(json, key, expected);
    *value = (int)json_integer_value(found);
    return STATUS_OK;
}

enum status checkpoint_json_real(const struct checkpoint_json *json, const char *key, enum checkpoint_json_need need, double least,
                                 double most, double *value)
{
    json_t *found = checkpoint_json_get(json, key);
    char expected[64];

    snprintf(expected, sizeof expected, "a number from %g to %g", least, most);
    if (found == NULL)
        return absent(json, key, need, expected);
    if (!json_is_number(found) || !(json_number_value(found) >= least) || !(json_number_value(found) <= most))
        return checkpoint_json_refuse(json, key, expected);
    *value = json_number_value(found);
    return STATUS_OK;
}

enum status checkpoint_json_flag(const struct checkpoint_json *json, const char *key, int *value)
{
    json_t *found = checkpoint_json_get(json, key);

    if (found == NULL)
        return STATUS_OK;
    if (!json_is_boolean(found))
        return checkpoint_json_refuse(json, key, "true or false");
    *value = json_is_true(found);
    return STATUS_OK;
}

int checkpoint_json_plain(const char *text, size_t most)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return 0;
    return length >= 1 && length <= most;
}
