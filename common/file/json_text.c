#include "common/file/json_text.h"

#include "common/base/arena.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* jansson's lexer does not look whether its buffer could grow, and reads past what it has. So while a text is read an allocation that
 * fails is answered from a reserve, the text ends there, and the tree is thrown away. What jansson still asks for is small, a buffer of
 * twice the text at most, and a table for an object of as many keys as the text has room for; if the reserve ends, so does the luck of
 * the table alone, whose failure jansson handles. The reserve costs addresses, not memory. */
enum { RESERVE_TIMES = 10, RESERVE_MORE = 1 << 18 };

static struct {
    struct arena reserve; /* empty unless a text is read */
    int failed;           /* since the last reading or writing began */
} memory;

static void *take(size_t size)
{
    void *taken = malloc(size);

    if (taken != NULL)
        return taken;
    memory.failed = 1;
    return arena_round(size) <= memory.reserve.size - memory.reserve.used ? arena_take(&memory.reserve, size) : NULL;
}

static void give_back(void *taken)
{
    const char *at = taken;

    if (memory.reserve.used == 0 || at < (char *)memory.reserve.base || at >= (char *)memory.reserve.base + memory.reserve.used)
        free(taken);
}

struct source {
    const char *text;
    size_t left;
};

/* The next bytes for jansson; none once memory has failed. */
static size_t feed(void *to, size_t room, void *argument)
{
    struct source *source = argument;
    size_t count = memory.failed ? 0 : source->left < room ? source->left : room;

    memcpy(to, source->text, count);
    source->text += count;
    source->left -= count;
    return count;
}

/* Where the string that begins there ends, or behind the text. */
static size_t end_of_string(const char *text, size_t size, size_t at)
{
    for (at++; at < size && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at;
}

/* Walks the text once, without recursion and without memory. Counts one value for each separator: enough to bound them. */
static enum status check_bounds(const char *text, size_t size, const struct json_text_limits *limits, char fault[JSON_TEXT_FAULT])
{
    int depth = 0;
    long values = 1;

    for (size_t i = 0; i < size && depth <= limits->depth && values <= limits->values; i++) {
        char c = text[i];

        if (c == '"') {
            i = end_of_string(text, size, i);
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth -= depth > 0;
        } else if (c == ',' || c == ':') {
            values++;
        }
    }
    if (depth <= limits->depth && values <= limits->values)
        return STATUS_OK;
    if (depth > limits->depth)
        snprintf(fault, JSON_TEXT_FAULT, "JSON nested deeper than %d", limits->depth);
    else
        snprintf(fault, JSON_TEXT_FAULT, "JSON of more than %ld values", limits->values);
    return STATUS_DATA;
}

/* *tree is NULL when the text is wrong. */
static enum status read_tree(const char *text, size_t size, size_t flags, json_t **tree, json_error_t *error)
{
    struct source source = {text, size};
    enum status status = STATUS_OK;

    TRY(arena_open(&memory.reserve, RESERVE_TIMES * size + RESERVE_MORE, "reading JSON"));
    json_set_alloc_funcs(take, give_back); /* give_back takes what malloc gave, so values from before are safe */
    memory.failed = 0;
    *tree = json_load_callback(feed, &source, flags | JSON_REJECT_DUPLICATES, error);
    if (memory.failed) {
        log_error("no memory for a JSON text of %zu bytes", size);
        json_decref(*tree);
        status = STATUS_INTERNAL;
    }
    arena_close(&memory.reserve);
    return status;
}

/* Is it a whole number that 64 bits with a sign do not hold? number: [size], as JSON has it, without zeros in front */
static int is_wide(const char *number, size_t size)
{
    static const char *const most[] = {"9223372036854775807", "9223372036854775808"};
    const int negative = *number == '-';
    const size_t digits = size - (size_t)negative, limit = strlen(most[0]);

    for (size_t i = (size_t)negative; i < size; i++)
        if (number[i] < '0' || number[i] > '9')
            return 0;
    return digits > limit || (digits == limit && memcmp(number + negative, most[negative], limit) > 0);
}

/* Where the number, the string or the other byte that begins there ends. */
static size_t end_of_part(const char *text, size_t size, size_t at)
{
    size_t end = at;

    while (end < size && text[end] != '\0' && strchr("+-.eE0123456789", text[end]) != NULL)
        end++;
    if (end == at)
        end = text[at] == '"' ? end_of_string(text, size, at) + 1 : at + 1;
    return end < size ? end : size;
}

/* The text with ".0" behind each of those numbers: with a point jansson reads one in double precision. Returns its size.  wide: [2 * size] */
static size_t widen(const char *text, size_t size, char *wide)
{
    size_t used = 0;

    for (size_t at = 0, end; at < size; at = end) {
        end = end_of_part(text, size, at);
        memcpy(wide + used, text + at, end - at);
        used += end - at;
        if (is_wide(text + at, end - at)) {
            memcpy(wide + used, ".0", 2);
            used += 2;
        }
    }
    return used;
}

/* *tree is NULL when the text is wrong otherwise, too. */
static enum status read_wide(const char *text, size_t size, size_t flags, json_t **tree)
{
    char *wide = malloc(2 * size);
    json_error_t error;
    enum status status;

    if (wide == NULL) {
        log_error("no memory for a JSON text of %zu bytes", size);
        return STATUS_INTERNAL;
    }
    status = read_tree(wide, widen(text, size, wide), flags, tree, &error);
    free(wide);
    return status;
}

enum status json_text_read(const char *text, size_t size, size_t flags, const struct json_text_limits *limits, json_t **root,
                           char fault[JSON_TEXT_FAULT])
{
    json_error_t error;
    json_t *tree;

    TRY(check_bounds(text, size, limits, fault));
    TRY(read_tree(text, size, flags, &tree, &error));
    if (tree == NULL && limits->wide && json_error_code(&error) == json_error_numeric_overflow)
        TRY(read_wide(text, size, flags, &tree));
    if (tree != NULL) {
        *root = tree;
        return STATUS_OK;
    }
    for (char *c = error.text; *c != '\0'; c++) /* jansson's message quotes the text, and may cut it within a character */
        if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f)
            *c = '?';
    if (json_error_code(&error) == json_error_numeric_overflow)
        snprintf(fault, JSON_TEXT_FAULT, "JSON with too large a number at byte %d, expected at most 9223372036854775807, or 1.8e308 with a point",
                 error.position);
    else
        snprintf(fault, JSON_TEXT_FAULT, "not valid JSON at byte %d: %s", error.position, error.text);
    return STATUS_DATA;
}

char *json_text_write(const json_t *value, size_t flags)
{
    char *text;

    json_set_alloc_funcs(take, give_back);
    memory.failed = 0;
    text = json_dumps(value, flags);
    if (!memory.failed)
        return text;
    free(text);
    return NULL;
}

json_t *json_text_whole(json_t *value, int failed)
{
    if (!failed)
        return value;
    json_decref(value);
    return NULL;
}

json_t *json_text_u64(uint64_t number)
{
    return number <= INT64_MAX ? json_integer((json_int_t)number) : json_sprintf("%llu", (unsigned long long)number);
}

json_t *json_text_string(const char *text)
{
    json_t *value = json_string(text);
    char *escaped = value == NULL ? malloc(4 * strlen(text) + 1) : NULL, *to = escaped;

    if (escaped == NULL)
        return value;
    for (const char *from = text; *from != '\0'; from++)
        if ((unsigned char)*from < 0x80)
            *to++ = *from;
        else
            to += sprintf(to, "\\x%02x", (unsigned)(unsigned char)*from);
    *to = '\0';
    value = json_string(escaped);
    free(escaped);
    return value;
}

int json_text_is(const json_t *value, const char *expected)
{
    return json_is_string(value) && json_string_length(value) == strlen(expected) &&
           memcmp(json_string_value(value), expected, strlen(expected)) == 0;
}
