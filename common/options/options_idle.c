#include "common/options/options_idle.h"

#include "common/options/options_merge.h"
#include "common/sample/distribution.h"
#include "common/sample/rule.h"
#include <stdio.h>
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
    case OPTION_IDS:
        return sizeof(struct option_ids);
    case OPTION_BIAS:
        return sizeof(struct bias);
    default:
        return 0;
    }
}

int options_is_default(const struct options *options, const struct option_entry *entry)
{
    struct options none = options_default;

    if (options->rounds.shape.kind == TREE_OWN && strcmp(entry->name, "draft-length") == 0)
        return 1; /* such a tree fills it in */
    none.request.sampling = sampling_default;
    return memcmp((const char *)options + entry->at, (const char *)&none + entry->at, size_of(entry->kind)) == 0;
}

void options_add_name(struct options_names *names, const char *name)
{
    size_t used = strlen(names->text);

    snprintf(names->text + used, sizeof names->text - used, "%s--%s", used > 0 ? ", " : "", name);
    names->count++;
}

int options_is_named(const char *name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(name, *names) == 0)
            return 1;
    return 0;
}

const struct rule *options_rule_of(const struct option_entry *entry)
{
    int rule = rule_find(entry->name, strcspn(entry->name, "-"));

    return rule < 0 ? NULL : rule_row(rule);
}

static const char no_drafts[] = "nothing is drafted";

/* The same beside --perplexity, of options that no other job leaves out. */
static const char *why_idle_in_scoring(const struct option_entry *entry)
{
    static const char *const of_drafters[] = {"draft", "drafters", NULL};
    static const char *const of_completions[] = {"max-tokens", "min-tokens", "stop", "stop-token-id", "ignore-eos", NULL};

    if (options_is_named(entry->name, of_drafters))
        return no_drafts;
    return options_is_named(entry->name, of_completions) ? "a text is scored, and nothing is completed" : NULL;
}

/* And in a check. */
static const char *why_idle_in_check(const struct option_entry *entry)
{
    static const char *const of_completions[] = {"output", "stats", NULL};

    return options_is_named(entry->name, of_completions) ? "what a check finds is written by --json FILE" : NULL;
}

/* Why it changes nothing; NULL: it does. */
static const char *why_idle(const struct options *options, const struct option_entry *entry, int *lines_may)
{
    static const char *const of_kinds[] = {"draft-vocabulary", "draft-temperature", "support", NULL};
    static const char *const of_drafts[] = {"merge", "run-ahead", "cascade", "branches", NULL}; /* beside those that say so in the table */
    const struct sampling *sampling = &options->request.sampling;
    const struct rule *own = rule_of(sampling), *of = options_rule_of(entry);

    *lines_may = 0;
    if (own == NULL)
        return NULL;
    if (!options_drafts(options))
        return of != NULL || entry->affects_results == RESULTS_DRAFTED || options_is_named(entry->name, of_drafts) ? no_drafts : NULL;
    if (options_is_named(entry->name, of_kinds) && options_kinds_that_draw(options) == 0)
        return "what drafts has no distribution to draw from";
    if (strcmp(entry->name, "branches") == 0 && options->rounds.run_ahead == RUN_AHEAD_OFF)
        return "--run-ahead is off";
    *lines_may = 1;
    if (strcmp(entry->name, "branches") == 0 && options->rounds.shape.kind != TREE_CHAIN && options->rounds.shape.kind != TREE_AUTO &&
        options->rounds.draft_length != 1)
        return "no drafter runs ahead of a tree";
    if (options->rounds.draft_length == 0 && strcmp(entry->name, "draft-length") != 0 &&
        (entry->affects_results == RESULTS_DRAFTED || options_is_named(entry->name, of_drafts)))
        return "--draft-length is 0";
    if (strcmp(entry->name, "merge") == 0 && own->needs_q && options->rounds.draft_length == 1)
        return "--draft-length 1 has room for a draft of one kind";
    if (of != NULL && of != rule_row(sampling->accept))
        return "--accept is another rule";
    if (of != NULL && of != own)
        return "at temperature 0 that rule is greedy";
    if (strcmp(entry->name, "draft-temperature") == 0 && own->draw != RULE_DRAWS_Q)
        return "drafts are not drawn from q";
    if (strcmp(entry->name, "cascade") == 0 && own->depends_on_drafts)
        return "this rule does not compare tokens";
    if (strcmp(entry->name, "support") == 0 &&
        (own->draw == RULE_DRAWS_ARGMAX || (own->draw == RULE_DRAWS_NOISE && !distribution_truncates(sampling))))
        return "drafts are not drawn from q";
    return NULL;
}

int options_find_idle(const struct options *options, struct options_idle *idle)
{
    int count = 0;

    for (int i = 0; options->report.sweep == NULL && i < option_count && count < OPTIONS_IDLE_MOST; i++) {
        const struct option_entry *entry = &option_table[i];
        int lines_may = 0;
        const char *why = NULL;

        if (options->given[i] && options->checks.size != CHECK_OFF)
            why = why_idle_in_check(entry);
        else if (options->given[i] && entry->group == OPTION_SPECULATION)
            why = why_idle(options, entry, &lines_may);
        else if (options->given[i] && options->input.perplexity != NULL)
            why = why_idle_in_scoring(entry);
        if (why != NULL)
            idle[count++] = (struct options_idle){entry->name, why, lines_may};
    }
    return count;
}
