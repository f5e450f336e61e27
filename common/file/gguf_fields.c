/* What a key holds, taken by those who know what it must be. */
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/gguf.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 96 };

static const char *const type_names[GGUF_TYPES] = {"u8",   "i8",   "u16",  "i16", "u32", "i32", "f32",
                                                   "bool", "text", "list", "u64", "i64", "f64"};

int gguf_text_is(struct gguf_text text, const char *expected)
{
    return text.length == strlen(expected) && memcmp(text.bytes, expected, text.length) == 0;
}

const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key)
{
    size_t length = strlen(key);
    int first = 0, last = gguf->value_count;

    while (first < last) {
        int middle = first + (last - first) / 2;
        const struct gguf_text *found = &gguf->values[middle].key;
        int order = memcmp(key, found->bytes, length < found->length ? length : found->length);

        if (order == 0 && length == found->length)
            return &gguf->values[middle];
        if (order < 0 || (order == 0 && length < found->length))
            last = middle;
        else
            first = middle + 1;
    }
    return NULL;
}

struct gguf_text gguf_next_text(const unsigned char **at)
{
    uint64_t length;
    const char *bytes = (const char *)*at + sizeof length;

    memcpy(&length, *at, sizeof length);
    *at += sizeof length + (size_t)length;
    return (struct gguf_text){bytes, (size_t)length};
}

/* Integers of 64 bits that a signed one cannot hold count as the largest, which no range allows. */
static int integer_of(const struct gguf_value *value, int64_t *number)
{
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        uint64_t u64;
        int64_t i64;
    } bits = {.u64 = 0};
    static const size_t bytes[GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 0, 0, 0, 0, 8, 8, 0};

    if (value->is_list || bytes[value->type] == 0)
        return 0;
    memcpy(&bits, value->data, bytes[value->type]);
    switch (value->type) {
    case GGUF_I8:
        *number = bits.i8;
        break;
    case GGUF_I16:
        *number = bits.i16;
        break;
    case GGUF_I32:
        *number = bits.i32;
        break;
    case GGUF_U64:
        *number = bits.u64 > INT64_MAX ? INT64_MAX : (int64_t)bits.u64;
        break;
    default: /* the upper bytes of a shorter unsigned integer are 0 */
        *number = bits.i64;
        break;
    }
    return 1;
}

static int real_of(const struct gguf_value *value, double *number)
{
    float single;

    if (value->is_list || (value->type != GGUF_F32 && value->type != GGUF_F64))
        return 0;
    if (value->type == GGUF_F64) {
        memcpy(number, value->data, sizeof *number);
    } else {
        memcpy(&single, value->data, sizeof single);
        *number = (double)single;
    }
    return 1;
}

/* text: [SHOWN] */
static void show(const struct gguf_value *value, char *text)
{
    const unsigned char *at = value->data;
    struct gguf_text found;
    int64_t integer;
    double real;

    if (value->is_list) {
        snprintf(text, SHOWN, "a list of %llu of type %s", (unsigned long long)value->count, type_names[value->type]);
    } else if (integer_of(value, &integer)) {
        snprintf(text, SHOWN, "%lld", (long long)integer);
    } else if (real_of(value, &real)) {
        snprintf(text, SHOWN, "%g", real);
    } else if (value->type == GGUF_BOOL) {
        snprintf(text, SHOWN, "%s", *at == 0 ? "false" : *at == 1 ? "true" : "a bool that is neither 0 nor 1");
    } else {
        found = gguf_next_text(&at);
        snprintf(text, SHOWN, "\"%.*s\"", (int)(found.length < 64 ? found.length : 64), found.bytes);
        for (char *c = text; *c != '\0'; c++) /* characters that would break a line of the log */
            *c = *c < ' ' || *c > '~' ? '?' : *c;
    }
}

enum status gguf_refuse(const struct gguf *gguf, const char *key, const char *expected)
{
    const struct gguf_value *value = gguf_find(gguf, key);
    char text[SHOWN] = "missing";

    if (value != NULL)
        show(value, text);
    log_error("%s: key %s is %s, expected %s", gguf->name, key, text, expected);
    return STATUS_DATA;
}

enum status gguf_integer(const struct gguf *gguf, const char *key, enum gguf_need need, int64_t least, int64_t most, int64_t *value)
{
    const struct gguf_value *found = gguf_find(gguf, key);
    char expected[SHOWN];
    int64_t number;

    if (found == NULL && need == GGUF_OPTIONAL)
        return STATUS_OK;
    if (found != NULL && integer_of(found, &number) && number >= least && number <= most) {
        *value = number;
        return STATUS_OK;
    }
    snprintf(expected, sizeof expected, least == most ? "%lld" : "an integer from %lld to %lld", (long long)least, (long long)most);
    return gguf_refuse(gguf, key, expected);
}

enum status gguf_real(const struct gguf *gguf, const char *key, enum gguf_need need, double least, double most, double *value)
{
    const struct gguf_value *found = gguf_find(gguf, key);
    char expected[SHOWN];
    double number;

    if (found == NULL && need == GGUF_OPTIONAL)
        return STATUS_OK;
    if (found != NULL && real_of(found, &number) && number >= least && number <= most) { /* NaN is not */
        *value = number;
        return STATUS_OK;
    }
    snprintf(expected, sizeof expected, "a real number from %g to %g", least, most);
    return gguf_refuse(gguf, key, expected);
}

double gguf_number(const struct gguf *gguf, const char *key)
{
    const struct gguf_value *found = gguf_find(gguf, key);
    int64_t integer;
    double real;

    if (found == NULL || found->is_list)
        return 0;
    return integer_of(found, &integer) ? (double)integer : real_of(found, &real) ? real : 0;
}

enum status gguf_flag(const struct gguf *gguf, const char *key, int *value)
{
    const struct gguf_value *found = gguf_find(gguf, key);

    if (found == NULL)
        return STATUS_OK;
    if (found->is_list || found->type != GGUF_BOOL || *found->data > 1)
        return gguf_refuse(gguf, key, "true or false");
    *value = *found->data;
    return STATUS_OK;
}

enum status gguf_string(const struct gguf *gguf, const char *key, enum gguf_need need, struct gguf_text *value)
{
    const struct gguf_value *found = gguf_find(gguf, key);
    const unsigned char *at;

    if (found == NULL && need == GGUF_OPTIONAL)
        return STATUS_OK;
    if (found == NULL || found->is_list || found->type != GGUF_TEXT)
        return gguf_refuse(gguf, key, "a text");
    at = found->data;
    *value = gguf_next_text(&at);
    return STATUS_OK;
}

enum status gguf_list(const struct gguf *gguf, const char *key, enum gguf_type type, enum gguf_need need, const struct gguf_value **list)
{
    const struct gguf_value *found = gguf_find(gguf, key);
    char expected[SHOWN];

    if (found == NULL && need == GGUF_OPTIONAL)
        return STATUS_OK;
    if (found != NULL && found->is_list && found->type == type) {
        *list = found;
        return STATUS_OK;
    }
    snprintf(expected, sizeof expected, "a list of type %s", type_names[type]);
    return gguf_refuse(gguf, key, expected);
}
