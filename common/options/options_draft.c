#include "common/options/options_draft.h"

#include "common/base/log.h"
#include "common/base/spelling.h"
#include "common/base/try.h"
#include "common/options/options_table.h"
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct key {
    enum options_draft_way way;
    const char *name;
    size_t at; /* offset in struct options_draft */
    int step;  /* it is one of step, 2 step .. most; 0: not given */
    int most;
    const char *expected;
};

static const struct key keys[] = {
    {DRAFT_LOOKUP, "min", offsetof(struct options_draft, min), 1, OPTIONS_DRAFT_LONGEST, "a whole number from 1 to 16"},
    {DRAFT_LOOKUP, "max", offsetof(struct options_draft, max), 1, OPTIONS_DRAFT_LONGEST, "a whole number from 1 to 16"},
    {DRAFT_SELF, "bits", offsetof(struct options_draft, bits), 4, 8, "4 or 8"},
    {DRAFT_SELF, "layers", offsetof(struct options_draft, layers), 1, 4096, "a whole number from 1 to 4096"},
};
enum { KEYS = sizeof keys / sizeof *keys };

/* What each way is called, and what it is where no key says otherwise. */
static const char *const way_name[] = {[DRAFT_LOOKUP] = "lookup", [DRAFT_SELF] = "self"};
static const struct options_draft usual[] = {[DRAFT_LOOKUP] = {.way = DRAFT_LOOKUP, .min = 1, .max = 4}, [DRAFT_SELF] = {.way = DRAFT_SELF}};

static enum options_draft_way way_of(const char *text, size_t length)
{
    for (int way = DRAFT_LOOKUP; way <= DRAFT_SELF; way++)
        if (strlen(way_name[way]) == length && strncmp(text, way_name[way], length) == 0)
            return (enum options_draft_way)way;
    return DRAFT_MODEL;
}

static enum status refuse_key(enum options_draft_way way, const char *name)
{
    int nearest = 0, least = INT_MAX;

    for (int i = 0; i < KEYS; i++)
        if (keys[i].way == way && spelling_distance(keys[i].name, name) < least) {
            least = spelling_distance(keys[i].name, name);
            nearest = i;
        }
    log_error("--draft %s has no key '%s'; did you mean '%s'?", way_name[way], name, keys[nearest].name);
    return STATUS_USAGE;
}

/* One "key=number". */
static enum status take_key(struct options_draft *draft, const char *pair)
{
    const char *equals = strchr(pair, '='), *value = equals != NULL ? equals + 1 : "";
    size_t length = equals != NULL ? (size_t)(equals - pair) : strlen(pair);
    char name[32], *end;
    long number = strtol(value, &end, 10);

    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), pair);
    for (int i = 0; i < KEYS; i++) {
        if (keys[i].way != draft->way || strcmp(keys[i].name, name) != 0)
            continue;
        if (*value < '0' || *value > '9' || *end != '\0' || number < 1 || number > keys[i].most || number % keys[i].step != 0) {
            log_error("--draft %s: %s is '%s', expected %s", way_name[draft->way], name, value, keys[i].expected);
            return STATUS_USAGE;
        }
        *(int *)(void *)((char *)draft + keys[i].at) = (int)number;
        return STATUS_OK;
    }
    return refuse_key(draft->way, name);
}

static enum status take_keys(struct options_draft *draft, const char *text)
{
    char *pairs = strdup(text), *rest = pairs, *pair;
    enum status status = STATUS_OK;

    if (pairs == NULL) {
        log_error("no memory for --draft");
        return STATUS_INTERNAL;
    }
    while (status == STATUS_OK && (pair = strsep(&rest, ",")) != NULL)
        status = take_key(draft, pair);
    free(pairs);
    return status;
}

enum status options_draft_read(const char *text, struct options_draft *out)
{
    size_t name = text != NULL ? strcspn(text, ":") : 0;
    enum options_draft_way way = text != NULL ? way_of(text, name) : DRAFT_MODEL;
    struct options_draft draft = usual[way];

    if (way != DRAFT_MODEL && text[name] == ':')
        TRY(take_keys(&draft, text + name + 1));
    if (draft.min > draft.max) {
        log_error("--draft lookup: min is %d and max is %d, expected min <= max", draft.min, draft.max);
        return STATUS_USAGE;
    }
    if (way == DRAFT_SELF && draft.layers == 0 && draft.bits == 0) {
        log_error("--draft self needs bits=4 or bits=8, to which the target's weights are rounded, or layers=N, its first N layers, or both");
        return STATUS_USAGE;
    }
    *out = draft;
    return STATUS_OK;
}

void options_draft_write(const struct options_draft *draft, char *text)
{
    int used = draft->way != DRAFT_MODEL ? snprintf(text, OPTIONS_DRAFT_TEXT, "%s", way_name[draft->way]) : 0;

    text[used] = '\0';
    for (int i = 0, some = 0; i < KEYS; i++) {
        int value = *(const int *)(const void *)((const char *)draft + keys[i].at);

        if (draft->way != DRAFT_MODEL && keys[i].way == draft->way && value != 0)
            used += snprintf(text + used, (size_t)(OPTIONS_DRAFT_TEXT - used), "%c%s=%d", some++ ? ',' : ':', keys[i].name, value);
    }
}
