#include "common/base/options.h"

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/options_table.h"
#include <errno.h>
#include <ini.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct options options_default = {
    .drafters = -1,
    .verifiers = -1,
    .max_tokens = 128,
    .draft_length = -1,
    .support = 256,
    .max_sequences = -1,
    .draft_deadline_ms = 1000,
    .watchdog_s = 60,
};

static void *field(struct options *options, const struct option_entry *entry)
{
    return (char *)options + entry->at;
}

static enum status refuse(const char *where, const struct option_entry *entry, const char *text, const char *expected)
{
    log_error("%s%s is '%s', expected %s", where, entry->name, text, expected);
    return STATUS_USAGE;
}

static enum status set_number(struct options *options, const struct option_entry *entry, const char *text, const char *where)
{
    char *end, expected[96];
    double value = strtod(text, &end);

    snprintf(expected, sizeof expected, "a %snumber from %.10g to %.10g", entry->kind == OPTION_INT ? "whole " : "", entry->low, entry->high);
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
static enum status set_choice(struct options *options, const struct option_entry *entry, const char *text, const char *where)
{
    size_t length = strlen(text);
    int index = 0;

    for (const char *at = entry->choices; at != NULL; index++) {
        const char *bar = strchr(at, '|');
        size_t width = bar != NULL ? (size_t)(bar - at) : strlen(at);

        if (width == length && strncmp(at, text, length) == 0) {
            *(int *)field(options, entry) = index;
            return STATUS_OK;
        }
        at = bar != NULL ? bar + 1 : NULL;
    }
    return refuse(where, entry, text, entry->choices);
}

static enum status add_text(struct options *options, const struct option_entry *entry, const char *text, const char *where)
{
    if (*text == '\0')
        return refuse(where, entry, text, "a text that is not empty");
    if (options->stops == OPTIONS_MAX_STOPS) {
        log_error("%s%s is given more than %d times", where, entry->name, OPTIONS_MAX_STOPS);
        return STATUS_USAGE;
    }
    options->stop[options->stops++] = text;
    return STATUS_OK;
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
    case OPTION_CHOICE:
        return set_choice(options, entry, text, where);
    case OPTION_PRINT:
        options->print = (int)entry->at;
        return STATUS_OK;
    }
    return STATUS_INTERNAL;
}

struct reading {
    struct options *options;
    const char *path;
    FILE *file;
    int line; /* the one that was read last, from 1 */
    enum status status;
};

/* inih tells the handler no line numbers, cuts a line that is longer than its buffer in two, and takes an indented line for more of the
 * value above. So lines are read here: counted, whole, and without their indentation. */
static char *read_line(char *line, int size, void *user)
{
    struct reading *reading = user;
    size_t length, indent;

    if (reading->status != STATUS_OK || fgets(line, size, reading->file) == NULL)
        return NULL;
    reading->line++;
    length = strlen(line);
    if ((length == 0 || line[length - 1] != '\n') && !feof(reading->file)) {
        log_error("%s:%d: the line is too long, expected at most %d bytes of text", reading->path, reading->line, size - 2);
        reading->status = STATUS_USAGE;
        return NULL;
    }
    indent = strspn(line, " \t");
    memmove(line, line + indent, length - indent + 1);
    return line;
}

static enum status take_pair(const struct reading *reading, const char *name, const char *value)
{
    const struct option_entry *entry = option_find(name);
    char where[512];

    snprintf(where, sizeof where, "%s:%d: ", reading->path, reading->line);
    if (entry == NULL || entry->group == OPTION_HIDDEN) {
        log_error("%sunknown key '%s'; did you mean '%s'?", where, name, option_nearest(name));
        return STATUS_USAGE;
    }
    if (entry->kind == OPTION_PRINT || strcmp(entry->name, "config") == 0) {
        log_error("%s'%s' has no place in a config file", where, name);
        return STATUS_USAGE;
    }
    if (entry->kind != OPTION_TEXT && entry->kind != OPTION_TEXTS)
        return option_set(reading->options, entry, value, where);
    char *kept = strdup(value); /* texts live as long as the process */
    if (kept == NULL) {
        log_error("%sno memory for a text of %zu bytes", where, strlen(value));
        return STATUS_INTERNAL;
    }
    enum status status = option_set(reading->options, entry, kept, where);
    if (status != STATUS_OK)
        free(kept);
    return status;
}

/* 1, or 0 to end with an error, which has been logged. Sections group the keys for the reader and mean nothing. */
static int take_line(void *user, const char *section, const char *name, const char *value)
{
    struct reading *reading = user;

    (void)section;
    if (reading->status == STATUS_OK)
        reading->status = take_pair(reading, name, value);
    return reading->status == STATUS_OK;
}

static enum status read_config(struct options *options, const char *path)
{
    struct reading reading = {.options = options, .path = path, .file = fopen(path, "r")};
    int bad_line, unread;

    if (reading.file == NULL) {
        log_error("--config %s: %s", path, strerror(errno));
        return STATUS_NOINPUT;
    }
    errno = 0;
    bad_line = ini_parse_stream(read_line, &reading, take_line, &reading);
    unread = ferror(reading.file) ? errno : 0;
    fclose(reading.file);
    if (unread != 0) {
        log_error("--config %s: %s", path, strerror(unread));
        return STATUS_NOINPUT;
    }
    if (reading.status == STATUS_OK && bad_line != 0) {
        log_error("%s:%d: expected [section], key = value, or a comment", path, bad_line);
        return STATUS_USAGE;
    }
    return reading.status;
}

/* One argument of the command line, --name, --name=value or --name value; *at moves past what was used. */
static enum status take_argument(struct options *options, int argc, char **argv, int *at)
{
    char name[64];
    const char *text = argv[*at], *equals;
    const struct option_entry *entry;

    if (strncmp(text, "--", 2) != 0 || text[2] == '\0') {
        log_error("unexpected argument '%s', expected an option that begins with --", text);
        return STATUS_USAGE;
    }
    equals = strchr(text, '=');
    snprintf(name, sizeof name, "%.*s", equals != NULL ? (int)(equals - text - 2) : (int)strlen(text) - 2, text + 2);
    entry = option_find(name);
    if (entry == NULL) {
        log_error("unknown option '--%s'; did you mean '--%s'?", name, option_nearest(name));
        return STATUS_USAGE;
    }
    *at += 1;
    if (entry->value == NULL)
        return option_set(options, entry, equals != NULL ? equals + 1 : "true", "--");
    if (equals != NULL)
        return option_set(options, entry, equals + 1, "--");
    if (*at >= argc) {
        log_error("--%s needs a value: %s", entry->name, entry->value);
        return STATUS_USAGE;
    }
    return option_set(options, entry, argv[(*at)++], "--");
}

static enum status check_together(const struct options *options)
{
    char reason[160];

    if (options->prompt != NULL && options->prompts != NULL) {
        log_error("--prompt and --prompts exclude each other");
        return STATUS_USAGE;
    }
    if (options->draft != NULL && options->target == NULL) {
        log_error("--draft needs --target");
        return STATUS_USAGE;
    }
    if (sampling_check(&options->sampling, reason, sizeof reason) != STATUS_OK) {
        log_error("--%s", reason);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

enum status options_parse(int argc, char **argv, struct options *out)
{
    struct options options = options_default;

    options.sampling = sampling_default;
    for (int at = 1; at < argc; at++) {
        if (strncmp(argv[at], "--config=", 9) == 0)
            TRY(read_config(&options, argv[at] + 9));
        else if (strcmp(argv[at], "--config") == 0 && at + 1 < argc)
            TRY(read_config(&options, argv[at + 1]));
    }
    for (int at = 1; at < argc;)
        TRY(take_argument(&options, argc, argv, &at));
    if (options.prompt == NULL && options.prompts == NULL)
        options.compare = 1; /* the embedded prompts, shown */
    if (options.max_sequences < 0)
        options.max_sequences = options.prompts != NULL && !options.compare ? 4 : 1;
    if (options.print == OPTIONS_PRINT_NOTHING)
        TRY(check_together(&options));
    *out = options;
    return STATUS_OK;
}

int options_set_number(struct options *options, const char *name, double value, char *reason, size_t reason_size)
{
    const struct option_entry *entry = strchr(name, '-') == NULL ? option_find(name) : NULL;

    if (entry == NULL || !entry->per_request)
        return 0;
    double low = entry->kind == OPTION_U64 ? 0 : entry->low, high = entry->kind == OPTION_U64 ? 0x1p53 : entry->high;
    if (!(value >= low && value <= high)) { /* 2^53: beyond it a number of JSON is not exact */
        snprintf(reason, reason_size, "%s is %.10g, expected a number from %.10g to %.10g", name, value, low, high);
        return -1;
    }
    if (entry->kind != OPTION_DOUBLE && value != floor(value)) {
        snprintf(reason, reason_size, "%s is %.10g, expected a whole number", name, value);
        return -1;
    }
    if (entry->kind == OPTION_DOUBLE)
        *(double *)field(options, entry) = value;
    else if (entry->kind == OPTION_U64)
        *(uint64_t *)field(options, entry) = (uint64_t)value;
    else
        *(int *)field(options, entry) = (int)value;
    return 1;
}
