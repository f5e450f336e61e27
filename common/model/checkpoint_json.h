/* The JSON that comes with a checkpoint (config.json, the index of shards, the header of a safetensors file), read as untrusted
 * text: strict UTF-8, no duplicate keys, bounded in bytes, depth and number of values before a parser sees it. The readers of
 * fields log one line that names the file, the key, what was found and what was expected. Outputs are untouched on failure. */
#ifndef TANDEM_COMMON_MODEL_CHECKPOINT_JSON_H
#define TANDEM_COMMON_MODEL_CHECKPOINT_JSON_H

#include "common/base/status.h"
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHECKPOINT_JSON_DEPTH = 8,
    CHECKPOINT_JSON_VALUES = 2 << 20, /* twice what 65,536 tensors of 8 dimensions need */
    CHECKPOINT_JSON_TEXT = 96,        /* bytes of a value as it is shown in a line */
};

/* An object, and the file that it is blamed on. */
struct checkpoint_json {
    const char *file;
    json_t *object;
};

enum checkpoint_json_need { CHECKPOINT_JSON_OPTIONAL, CHECKPOINT_JSON_NEEDED };

/* Parses text that must be one object; json_decref frees it. STATUS_DATA. */
enum status checkpoint_json_parse(const char *file, const char *text, size_t size, json_t **object);
/* Reads the whole of a file of at most `most` bytes. STATUS_NOINPUT, STATUS_DATA. */
enum status checkpoint_json_read(const char *file, size_t most, json_t **object);

/* A field that is absent or null is an error when needed, and otherwise leaves *value as it was. Ranges are closed. */
enum status checkpoint_json_integer(const struct checkpoint_json *json, const char *key, enum checkpoint_json_need need, int least,
                                    int most, int *value);
enum status checkpoint_json_real(const struct checkpoint_json *json, const char *key, enum checkpoint_json_need need, double least,
                                 double most, double *value);
enum status checkpoint_json_flag(const struct checkpoint_json *json, const char *key, int *value);
/* The value of a key, NULL when it is absent or null. */
json_t *checkpoint_json_get(const struct checkpoint_json *json, const char *key);
/* Logs what the key holds and what was expected; returns STATUS_DATA. */
enum status checkpoint_json_refuse(const struct checkpoint_json *json, const char *key, const char *expected);
/* Whether the text is 1 to `most` bytes without control characters, which would break a line of the log. */
int checkpoint_json_plain(const char *text, size_t most);

#endif
