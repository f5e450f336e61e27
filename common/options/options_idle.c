#include "common/options/options_idle.h"

#include "common/options/options_merge.h"
#include "common/sample/rule.h"
#include <string.h>

static size_t size_of(enum option_kind kind)
{
    switch (kind) {
    case OPTION_FLAG:
    case OPTION_INT:
    case OPTION_CHOICE:
        return sizeof(int);
    case OPTION_U64:
        return sizeof(uint64_t);
    case OPTION_DOUBLE:
        return sizeof(double);
    case OPTION_TEXT:
        return sizeof(char *);
    case OPTION_TEXTS:
        return sizeof(struct option_texts);
    default:
        return 0;
    }
}

int options_is_default(const struct options *options, const struct option_entry *entry)
{
    struct options none = options_default;

    none.request.sampling = sampling_default;
    return memcmp((const char *)options + entry->at, (const char *)&none + entry->at, size_of(entry->kind)) == 0;
}

static int is_named(const struct option_entry *entry, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(entry->name, *names) == 0)
            return 1;
    return 0;
}

/* --lenience, --typical-delta: it begins with the name of the rule that it belongs to. NULL: it belongs to none. */
static const struct rule *rule_of_option(const struct option_entry *entry)
{
    int rule = rule_find(entry->name, strcspn(entry->name, "-"));

    return rule < 0 ? NULL : rule_row(rule);
}

/* Why it changes nothing; NULL: it does. */
static const char *why_idle(const struct options *options, const struct option_entry *entry)
{
    static const char *const of_models[] = {"draft-vocabulary", "draft-temperature", "support", NULL};
    static const char *const of_branches[] = {"branches", NULL};
    static const char *const of_drafts[] = {"merge", "run-ahead", "cascade", "branches", NULL}; /* beside those that say so in the table */
    static const char *const of_q[] = {"draft-temperature", "support", NULL};
    const struct rule *own = rule_of(&options->request.sampling), *of = rule_of_option(entry);

    if (!options_drafts(options))
        return entry->affects_results == RESULTS_DRAFTED || is_named(entry, of_drafts) ? "nothing is drafted" : NULL;
    if (of != NULL && of != own)
        return "--accept is another rule, unless a line of the prompts asks for it";
    if (is_named(entry, of_models) && !options_kinds_run_models(options))
        return "what drafts is no model";
    if (is_named(entry, of_q) && own != NULL && own->draw != RULE_DRAWS_Q)
        return "drafts are not drawn from q here, unless a line of the prompts says otherwise";
    if (is_named(entry, of_branches) && options->rounds.run_ahead == RUN_AHEAD_OFF)
        return "--run-ahead is off";
    return NULL;
}

int options_find_idle(const struct options *options, struct options_idle *idle)
{
    int count = 0;

    for (int i = 0; i < option_count && count < OPTIONS_IDLE_MOST; i++) {
        const struct option_entry *entry = &option_table[i];
        const char *why = entry->group == OPTION_SPECULATION && !options_is_default(options, entry) ? why_idle(options, entry) : NULL;

        if (why != NULL)
            idle[count++] = (struct options_idle){entry->name, why};
    }
    return count;
}
