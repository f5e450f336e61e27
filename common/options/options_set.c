/* What a text or a number becomes in the struct: one setter for each kind of value that a row of the table can have. */
#include "common/options/options_table.h"

#include "common/base/log.h"
#include "common/base/spelling.h"
#include "common/base/try.h"
#include "common/sample/rule.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXPECTED = 256 };

static void *field(struct options *options, const struct option_entry *entry)
{
    return (char *)options + entry->at;
}

static enum status refuse(const char *where, const struct option_entry *entry, const char *text, const char *expected)
{
    log_error("%s%s is '%s', expected %s", where, entry->name, text, expected);
    return STATUS_USAGE;
}

/* "a whole number from 0 to 32" */
static void write_range(const struct option_entry *entry, long double low, long double high, char expected[OPTIONS_NUMBER_EXPECTED])
{
    if (entry->choices != NULL)
        snprintf(expected, OPTIONS_NUMBER_EXPECTED, "%s", entry->choices);
    else
        snprintf(expected, OPTIONS_NUMBER_EXPECTED,
                 entry->kind == OPTION_DOUBLE ? "a number from %.10Lg to %.10Lg" : "a whole number from %.0Lf to %.0Lf", low, high);
}

static enum status set_number(struct options *options, const struct option_entry *entry, const char *text, const char *where)
{
    char *end, expected[OPTIONS_NUMBER_EXPECTED];
    double value = strtod(text, &end);

    write_range(entry, entry->low, entry->high, expected);
    if (end == text || *end != '\0' || !(value >= entry->low && value <= entry->high))
        return refuse(where, entry, text, expected);
    if (entry->kind == OPTION_INT && value != floor(value))
        return refuse(where, entry, text, expected);
    if (entry->kind == OPTION_INT)
        *(int *)field(options, entry) = (int)value;
    else
        *(double *)field(options, entry) = value;
    return STATUS_OK;
}

static enum status set_u64(struct options *options, const struct option_entry *entry, const char *text, const char *where)
{
    char *end;

    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0)
        return refuse(where, entry, text, "a whole number from 0 to 18446744073709551615");
    *(uint64_t *)field(options, entry) = value;
    return STATUS_OK;
}

/* choices is "a|b|c"; the value is the index of text among them. */
/* -1: it is none of them. A rule may have another name than that of the list. */
static int find_choice(const struct option_entry *entry, const char *text)
{
    size_t length = strlen(text);
    int index = 0;

    if (strcmp(entry->name, "accept") == 0)
        return rule_find(text, length);
    for (const char *at = entry->choices; at != NULL; index++) {
        const char *bar = strchr(at, '|');
        size_t width = bar != NULL ? (size_t)(bar - at) : strlen(at);

        if (width == length && strncmp(at, text, length) == 0)
            return index;
        at = bar != NULL ? bar + 1 : NULL;
    }
    return -1;
}

static enum status set_choice(struct options *options, const struct option_entry *entry, const char *text, const char *where)
{
    char advice[SPELLING_ADVICE], expected[EXPECTED];
    int index = find_choice(entry, text);

    if (index >= 0) {
        *(int *)field(options, entry) = index;
        return STATUS_OK;
    }
    spelling_advise(entry->choices, text, advice);
    snprintf(expected, sizeof expected, "%s%s", entry->choices, advice);
    return refuse(where, entry, text, expected);
}

static enum status refuse_more(const char *where, const struct option_entry *entry, int most)
{
    log_error("%s%s is given more than %d times", where, entry->name, most);
    return STATUS_USAGE;
}

static enum status add_text(struct options *options, const struct option_entry *entry, const char *text, const char *where)
{
    struct option_texts *texts = field(options, entry);

    if (*text == '\0')
        return refuse(where, entry, text, "a text that is not empty");
    if (texts->count == (int)entry->high)
        return refuse_more(where, entry, (int)entry->high);
    texts->text[texts->count++] = text;
    return STATUS_OK;
}

/* A token id at the beginning of a text; what follows it in *end. The vocabulary is not known yet. */
static int read_id(const char *text, char **end, int32_t *id)
{
    errno = 0;
    long value = strtol(text, end, 10);
    *id = (int32_t)value;
    return *text >= '0' && *text <= '9' && errno == 0 && value <= INT32_MAX;
}

static enum status add_id(struct options *options, const struct option_entry *entry, const char *text, const char *where)
{
    struct option_ids *ids = field(options, entry);
    char *end;
    int32_t id;

    if (!read_id(text, &end, &id) || *end != '\0')
        return refuse(where, entry, text, "a token id");
    if (ids->count == OPTIONS_MAX_IDS)
        return refuse_more(where, entry, OPTIONS_MAX_IDS);
    ids->id[ids->count++] = id;
    return STATUS_OK;
}

static enum status add_bias(struct options *options, const struct option_entry *entry, const char *text, const char *where)
{
    struct bias *bias = field(options, entry);
    char *end, *value_end;
    int32_t id;
    double value;

    if (!read_id(text, &end, &id) || *end != ':')
        return refuse(where, entry, text, "ID:BIAS, a token id and a number");
    value = strtod(end + 1, &value_end);
    if (value_end == end + 1 || *value_end != '\0' || !(fabs(value) <= BIAS_LIMIT))
        return refuse(where, entry, text, "ID:BIAS with a number from -100 to 100");
    if (bias->tokens == BIAS_MAX_TOKENS)
        return refuse_more(where, entry, BIAS_MAX_TOKENS);
    return bias_add_token(bias, id, value) ? STATUS_OK : refuse(where, entry, text, "each token once");
}

static enum status set_flag(struct options *options, const struct option_entry *entry, const char *text, const char *where)
{
    int on = strcmp(text, "true") == 0 || strcmp(text, "yes") == 0 || strcmp(text, "1") == 0;
    int off = strcmp(text, "false") == 0 || strcmp(text, "no") == 0 || strcmp(text, "0") == 0;

    if (!on && !off)
        return refuse(where, entry, text, "true or false");
    *(int *)field(options, entry) = on;
    return STATUS_OK;
}

enum status option_set(struct options *options, const struct option_entry *entry, const char *text, const char *where)
{
    options->given[entry - option_table] = 1;
    switch (entry->kind) {
    case OPTION_FLAG:
        return set_flag(options, entry, text, where);
    case OPTION_INT:
    case OPTION_DOUBLE:
        return set_number(options, entry, text, where);
    case OPTION_U64:
        return set_u64(options, entry, text, where);
    case OPTION_TEXT:
        *(const char **)field(options, entry) = text;
        return STATUS_OK;
    case OPTION_TEXTS:
        return add_text(options, entry, text, where);
    case OPTION_IDS:
        return add_id(options, entry, text, where);
    case OPTION_BIAS:
        return add_bias(options, entry, text, where);
    case OPTION_CHOICE:
        return set_choice(options, entry, text, where);
    case OPTION_PRINT:
        options->print = (int)entry->at;
        return STATUS_OK;
    }
    return STATUS_INTERNAL;
}

static const struct option_entry *find_key(const char *name)
{
    const struct option_entry *entry = strchr(name, '-') == NULL ? option_find(name) : NULL;

    return entry != NULL && entry->per_request ? entry : NULL;
}

/* The largest whole number that is read from JSON is one of 64 bits with a sign. */
static long double highest_of(const struct option_entry *entry)
{
    return entry->kind == OPTION_U64 ? (long double)INT64_MAX : entry->high;
}

void options_number_expected(const char *name, char expected[OPTIONS_NUMBER_EXPECTED])
{
    const struct option_entry *entry = find_key(name);

    if (entry->kind == OPTION_FLAG)
        snprintf(expected, OPTIONS_NUMBER_EXPECTED, "true or false");
    else
        write_range(entry, entry->low, highest_of(entry), expected);
}

int options_set_number(struct options *options, const char *name, long double value, char *reason, size_t reason_size)
{
    const struct option_entry *entry = find_key(name);

    if (entry == NULL)
        return 0;
    const int is_whole = value == floorl(value) && fabsl(value) <= (long double)INT64_MAX;
    if (!(value >= entry->low && value <= highest_of(entry)) || (entry->kind != OPTION_DOUBLE && !is_whole)) {
        char expected[OPTIONS_NUMBER_EXPECTED];

        options_number_expected(name, expected);
        snprintf(reason, reason_size, is_whole ? "%s is %.0Lf, expected %s" : "%s is %.10Lg, expected %s", name, value, expected);
        return -1;
    }
    if (entry->kind == OPTION_DOUBLE)
        *(double *)field(options, entry) = (double)value;
    else if (entry->kind == OPTION_U64)
        *(uint64_t *)field(options, entry) = (uint64_t)value;
    else
        *(int *)field(options, entry) = (int)value;
    return 1;
}
