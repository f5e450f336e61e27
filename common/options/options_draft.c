#include "common/options/options_draft.h"

#include "common/base/log.h"
#include "common/base/spelling.h"
#include "common/base/try.h"
#include "common/options/options_table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct options_draft_kind *options_draft_kind(const struct options_draft *draft)
{
    return &options_draft_kinds[draft->kind];
}

int options_draft_layers(const struct options_draft *draft, int all)
{
    int first = draft->layers > 0 && draft->layers < all ? draft->layers : all;

    return first - layer_set_count(&draft->skip, first);
}

int options_draft_runs_model(const struct options_draft *draft)
{
    return options_draft_kind(draft)->own_model || options_draft_kind(draft)->target_model;
}

void options_draft_names(char *text)
{
    int used = 0;

    for (int i = DRAFT_MODEL + 1; i < DRAFTER_KINDS; i++)
        used += snprintf(text + used, (size_t)(OPTIONS_DRAFT_TEXT - used), "%s%s", used == 0 ? "" : "|", options_draft_kinds[i].name);
}

/* The kind that is called so; a model where none is. */
static const struct options_draft_kind *find_kind(const char *text, size_t length)
{
    for (int i = DRAFT_MODEL + 1; i < DRAFTER_KINDS; i++)
        if (strlen(options_draft_kinds[i].name) == length && strncmp(text, options_draft_kinds[i].name, length) == 0)
            return &options_draft_kinds[i];
    return &options_draft_kinds[DRAFT_MODEL];
}

static int keys_of(const struct options_draft_kind *kind)
{
    int count = 0;

    while (count < OPTIONS_DRAFT_KEYS && kind->key[count].name != NULL)
        count++;
    return count;
}

static enum status refuse_key(const struct options_draft_kind *kind, const char *name)
{
    char choices[OPTIONS_DRAFT_TEXT] = "", expected[OPTIONS_DRAFT_TEXT] = "", advice[SPELLING_ADVICE];
    int count = keys_of(kind);

    for (int i = 0, at = 0, told = 0; i < count; i++) {
        at += snprintf(choices + at, sizeof choices - (size_t)at, "%s%s", i == 0 ? "" : "|", kind->key[i].name);
        told += snprintf(expected + told, sizeof expected - (size_t)told, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", kind->key[i].name);
    }
    spelling_advise(choices, name, advice);
    if (count == 0)
        log_error("--draft %s has no key '%s', nor any other", kind->name, name);
    else
        log_error("--draft %s has no key '%s', expected %s%s%s", kind->name, name, expected, advice,
                  *name >= '0' && *name <= '9' ? "; numbers of a list have + between" : "");
    return STATUS_USAGE;
}

/* 1, or 0: the value is none of this key's. */
static int read_value(struct options_draft *draft, const struct options_draft_key *key, const char *value)
{
    void *at = (char *)draft + key->at;
    char *end;
    long number = strtol(value, &end, 10);

    if (key->most == 0)
        return layer_set_read(value, at);
    if (*value < '0' || *value > '9' || *end != '\0' || number < 1 || number > key->most || number % key->step != 0)
        return 0;
    *(int *)at = (int)number;
    return 1;
}

/* One "key=value". taken: a bit for each key that had one */
static enum status take_key(struct options_draft *draft, const char *pair, unsigned *taken)
{
    const struct options_draft_kind *kind = options_draft_kind(draft);
    const char *equals = strchr(pair, '='), *value = equals != NULL ? equals + 1 : "";
    size_t length = equals != NULL ? (size_t)(equals - pair) : strlen(pair);
    char name[32];

    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), pair);
    for (int i = 0; i < keys_of(kind); i++) {
        const struct options_draft_key *key = &kind->key[i];

        if (strcmp(key->name, name) != 0)
            continue;
        if (!read_value(draft, key, value)) {
            log_error("--draft %s: %s is '%s', expected %s", kind->name, name, value, key->expected);
            return STATUS_USAGE;
        }
        if ((*taken & 1u << i) != 0) {
            log_error("--draft %s: %s is given twice, expected once", kind->name, name);
            return STATUS_USAGE;
        }
        *taken |= 1u << i;
        return STATUS_OK;
    }
    return refuse_key(kind, name);
}

static enum status take_keys(struct options_draft *draft, const char *text)
{
    char *pairs = strdup(text), *rest = pairs, *pair;
    enum status status = STATUS_OK;
    unsigned taken = 0;

    if (pairs == NULL) {
        log_error("no memory for --draft");
        return STATUS_INTERNAL;
    }
    while (status == STATUS_OK && (pair = strsep(&rest, ",")) != NULL)
        status = take_key(draft, pair, &taken);
    free(pairs);
    return status;
}

enum status options_draft_read(const char *text, struct options_draft *out)
{
    size_t name = text != NULL ? strcspn(text, ":") : 0;
    const struct options_draft_kind *kind = text != NULL ? find_kind(text, name) : &options_draft_kinds[DRAFT_MODEL];
    struct options_draft draft = kind->usual;

    if (kind->made_by != NULL)
        draft.file = text[name] == ':' ? text + name + 1 : NULL;
    else if (draft.kind != DRAFT_MODEL && text[name] == ':')
        TRY(take_keys(&draft, text + name + 1));
    if (kind->check != NULL)
        TRY(kind->check(&draft));
    *out = draft;
    return STATUS_OK;
}

/* "" where the key has none.  text: [LAYER_SET_TEXT] */
static void write_value(const struct options_draft *draft, const struct options_draft_key *key, char *text)
{
    const void *at = (const char *)draft + key->at;

    if (key->most == 0)
        layer_set_write(at, text);
    else
        snprintf(text, LAYER_SET_TEXT, *(const int *)at != 0 ? "%d" : "", *(const int *)at);
}

void options_draft_write(const struct options_draft *draft, char *text)
{
    const struct options_draft_kind *kind = options_draft_kind(draft);
    int used = draft->kind != DRAFT_MODEL ? snprintf(text, OPTIONS_DRAFT_TEXT, "%s", kind->name) : 0;

    text[used] = '\0';
    if (draft->file != NULL)
        snprintf(text + used, (size_t)(OPTIONS_DRAFT_TEXT - used), ":%s",
                 strrchr(draft->file, '/') != NULL ? strrchr(draft->file, '/') + 1 : draft->file);
    for (int i = 0, some = 0; i < keys_of(kind); i++) {
        char value[LAYER_SET_TEXT];

        write_value(draft, &kind->key[i], value);
        if (value[0] != '\0')
            used += snprintf(text + used, (size_t)(OPTIONS_DRAFT_TEXT - used), "%c%s=%s", some++ ? ',' : ':', kind->key[i].name, value);
    }
}
