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
    .max_sequences = 4,
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

    snprintf(expected, sizeof expected, "a %snumber from %g to %g", entry->kind == OPTION_INT ? "whole " : "", entry->low, entry->high);
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
    if (end == text || *end != '\0' || errno != 0 || strchr(text, '-') != NULL)
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
    enum status status;
};

static int take_line(void *user, const char *section, const char *name, const char *value, int line)
{
    struct reading *reading = user;
    const struct option_entry *entry = option_find(name);
    char where[512];

    (void)section; /* sections group the keys for the reader */
    if (reading->status != STATUS_OK)
        return 1;
    snprintf(where, sizeof where, "%s:%d: ", reading->path, line);
    if (entry == NULL || entry->group == OPTION_HIDDEN || entry->kind == OPTION_PRINT) {
        log_error("%sunknown key '%s'; did you mean '%s'?", where, name, option_nearest(name));
        reading->status = STATUS_USAGE;
        return 1;
    }
    char *kept = strdup(value); /* texts live as long as the process */
    reading->status = kept == NULL ? STATUS_INTERNAL : option_set(reading->options, entry, kept, where);
    return 1;
}

static enum status read_config(struct options *options, const char *path)
{
    struct reading reading = {.options = options, .path = path};
    FILE *file = fopen(path, "r");

    if (file == NULL) {
        log_error("--config %s: %s", path, strerror(errno));
        return STATUS_NOINPUT;
    }
    int bad_line = ini_parse_file(file, take_line, &reading);
    fclose(file);
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
    if (!(value >= entry->low && value <= entry->high) && entry->kind != OPTION_U64) {
        snprintf(reason, reason_size, "%s is %g, expected a number from %g to %g", name, value, entry->low, entry->high);
        return -1;
    }
    if (entry->kind != OPTION_DOUBLE && (value != floor(value) || value < 0)) {
        snprintf(reason, reason_size, "%s is %g, expected a whole number", name, value);
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
