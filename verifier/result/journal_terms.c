#include "verifier/result/journal_terms.h"

#include "common/base/digest.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include "common/model/model.h"
#include "common/options/options_idle.h"
#include "common/options/options_table.h"
#include "common/sample/rule.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 8, VALUES = 1 << 16 };

int journal_terms_need_drafts(const struct request_list *requests)
{
    for (int i = 0; i < requests->count; i++) {
        const struct request *request = &requests->request[i];

        if (request->error == NULL && rule_of(&request->sampling)->depends_on_drafts)
            return 1;
    }
    return 0;
}

static json_t *hex(uint64_t value)
{
    return json_sprintf("%016llx", (unsigned long long)value);
}

static uint64_t digest_of(const struct request_list *requests)
{
    uint64_t digest = DIGEST_EMPTY;

    for (int i = 0; i < requests->count; i++)
        digest = digest_bytes(&requests->request[i].digest, sizeof(uint64_t), digest);
    return digest;
}

static int is_at_least(const struct options *options, const struct option_entry *entry, int least)
{
    const void *at = (const char *)options + entry->at;

    return entry->kind == OPTION_DOUBLE ? *(const double *)at >= least : *(const int *)at >= least;
}

/* Does any request decide by that rule? A line may, that says so itself. */
static int is_decided_by(const struct request_list *requests, const struct rule *rule)
{
    for (int i = 0; i < requests->count; i++)
        if (requests->request[i].error == NULL && rule_of(&requests->request[i].sampling) == rule)
            return 1;
    return 0;
}

/* Do results depend on it in any job, drafts or none? */
static int counts(const struct options *options, const struct option_entry *entry)
{
    switch (entry->affects_results) {
    case RESULTS_FROM_0:
        return is_at_least(options, entry, 0);
    case RESULTS_FROM_1:
        return is_at_least(options, entry, 1);
    case RESULTS_FROM_2:
        return is_at_least(options, entry, 2);
    case RESULTS_UNSAID: /* when in doubt the terms differ, so that results of another job are never taken */
    case RESULTS_ALWAYS:
        return 1;
    case RESULTS_NEVER:
    case RESULTS_DRAFTED:
    case RESULTS_BY_CONTENT:
        break;
    }
    return 0;
}

static json_t *texts_of(const struct option_texts *texts)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < texts->count; i++)
        failed |= json_array_append_new(array, json_text_string(texts->text[i]));
    return json_text_whole(array, failed);
}

static json_t *ids_of(const struct option_ids *ids)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < ids->count; i++)
        failed |= json_array_append_new(array, json_integer(ids->id[i]));
    return json_text_whole(array, failed);
}

static json_t *bias_of(const struct bias *bias)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < bias->tokens; i++)
        failed |= json_array_append_new(array, json_pack("[i, f]", (int)bias->token[i], bias->value[i]));
    return json_text_whole(array, failed);
}

static json_t *value_of(const struct options *options, const struct option_entry *entry)
{
    const void *at = (const char *)options + entry->at;
    const char *text;

    switch (entry->kind) {
    case OPTION_FLAG:
    case OPTION_INT:
    case OPTION_CHOICE:
        return json_integer(*(const int *)at);
    case OPTION_U64:
        return json_sprintf("%llu", (unsigned long long)*(const uint64_t *)at);
    case OPTION_DOUBLE:
        return json_real(*(const double *)at);
    case OPTION_TEXTS:
        return texts_of(at);
    case OPTION_IDS:
        return ids_of(at);
    case OPTION_BIAS:
        return bias_of(at);
    case OPTION_TEXT:
    case OPTION_PRINT:
        break;
    }
    text = entry->kind == OPTION_TEXT ? *(const char *const *)at : NULL;
    return text != NULL ? json_text_string(text) : json_null();
}

char *journal_terms_write(const struct journal_terms *terms)
{
    int drafts = journal_terms_need_drafts(terms->requests);
    json_t *object = json_object();
    int failed = 0;
    char *text;

    failed |= json_object_set_new(object, "program", json_string(options_version()));
    failed |= json_object_set_new(object, "target", hex(terms->target));
    failed |= json_object_set_new(object, "context", json_integer(terms->context));
    if (terms->width > 0)
        failed |= json_object_set_new(object, "verifiers", json_integer(terms->width));
    for (int i = 0; i < option_count; i++)
        if (options_rule_of(&option_table[i]) == NULL && counts(terms->options, &option_table[i]))
            failed |= json_object_set_new(object, option_table[i].name, value_of(terms->options, &option_table[i]));
    failed |= json_object_set_new(object, "prompts", json_integer(terms->requests->count));
    failed |= json_object_set_new(object, "input", hex(digest_of(terms->requests)));
    for (int i = 0; i < option_count; i++) {
        const struct rule *rule = options_rule_of(&option_table[i]);

        if (rule != NULL && is_decided_by(terms->requests, rule)) /* the number of another says nothing; behind the input, from which it may follow */
            failed |= json_object_set_new(object, option_table[i].name, value_of(terms->options, &option_table[i]));
    }
    if (drafts) { /* last, so that where drafts matter in one job only, the difference that is reported is the option that made them matter */
        failed |= json_object_set_new(object, "draft", hex(terms->draft));
        for (int i = 0; i < option_count; i++)
            if (option_table[i].affects_results == RESULTS_DRAFTED)
                failed |= json_object_set_new(object, option_table[i].name, value_of(terms->options, &option_table[i]));
    }
    object = json_text_whole(object, failed);
    text = json_text_write(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(object);
    return text;
}

/* The value as a user would write it: a choice by its name; a number below its range was not given. NULL: not given. Terms without a cache
 * mean one in float32. */
static char *words_of(const char *key, const json_t *value)
{
    const struct option_entry *entry = option_find(key);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : 0;
    const char *choice = entry != NULL && entry->kind == OPTION_CHOICE && json_is_integer(value) ? entry->choices : NULL;

    if (value == NULL && strcmp(key, "cache") == 0)
        return strdup("f32");
    if (value == NULL || (entry != NULL && json_is_number(value) && json_number_value(value) < entry->low))
        return NULL;
    for (; choice != NULL && number > 0; number--)
        choice = (choice = strchr(choice, '|')) != NULL ? choice + 1 : NULL;
    return choice != NULL ? strndup(choice, strcspn(choice, "|")) : json_text_write(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));
}

static void describe(const char *key, const json_t *there, const json_t *here, char *reason, size_t size)
{
    char *a, *b;

    if (strcmp(key, "target") == 0 || strcmp(key, "draft") == 0) {
        snprintf(reason, size, "their %s was another one", strcmp(key, "draft") == 0 ? key : "target model");
        return;
    }
    if (strcmp(key, "input") == 0) {
        snprintf(reason, size, "their prompts were others");
        return;
    }
    a = words_of(key, there);
    b = words_of(key, here);
    snprintf(reason, size, "%s is %.80s there and %.80s here", key, a != NULL ? a : "not given", b != NULL ? b : "not given");
    free(a);
    free(b);
}

/* The first key of `from` that differs in the other. */
static const char *find_difference(json_t *from, json_t *other)
{
    const char *key;
    json_t *value;

    json_object_foreach (from, key, value)
        if (!json_equal(value, json_object_get(other, key)))
            return key;
    return NULL;
}

/* Further keys that both have, and that differ. What one of them has not follows from the first. */
static void name_others(json_t *here, json_t *there, const char *first, char *reason, size_t size)
{
    int named = 0, prompts = strcmp(first, "prompts") == 0; /* by whose number they are others anyway */
    size_t used = strlen(reason);
    const char *key;
    json_t *value, *other;

    json_object_foreach (here, key, value) {
        other = json_object_get(there, key);
        if (other == NULL || json_equal(value, other) || strcmp(key, first) == 0 || (prompts && strcmp(key, "input") == 0) || used >= size)
            continue;
        used +=
            (size_t)snprintf(reason + used, size - used, "%s %s", named++ > 0 ? "," : "; others, too:", strcmp(key, "input") == 0 ? "prompts" : key);
    }
}

enum status journal_terms_compare(const char *found, size_t length, const char *mine, char *reason, size_t size)
{
    static const struct json_text_limits limits = {.depth = DEPTH, .values = VALUES};
    char fault[JSON_TEXT_FAULT];
    json_t *there = NULL, *here = NULL;
    enum status status;
    const char *key;

    status = json_text_read(found, length, 0, &limits, &there, fault);
    if (status == STATUS_OK)
        status = json_text_read(mine, strlen(mine), 0, &limits, &here, fault);
    if (status == STATUS_DATA || (status == STATUS_OK && !json_is_object(there))) {
        snprintf(reason, size, "what they depend on cannot be read");
        status = STATUS_DATA;
    }
    TRY_TO(status, release);
    key = find_difference(here, there);
    key = key != NULL ? key : find_difference(there, here);
    if (key != NULL) {
        describe(key, json_object_get(there, key), json_object_get(here, key), reason, size);
        name_others(here, there, key, reason, size);
        status = STATUS_DATA;
    }
release:
    json_decref(there);
    json_decref(here);
    return status;
}
