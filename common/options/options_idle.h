/* Options that were given and change nothing beside the others: whoever gave them is told, as he may think that he measures them. Pure. */
#ifndef TANDEM_COMMON_OPTIONS_OPTIONS_IDLE_H
#define TANDEM_COMMON_OPTIONS_OPTIONS_IDLE_H

#include "common/options/options_table.h"
#include "common/sample/rule.h"

enum { OPTIONS_IDLE_MOST = 32 };

struct options_idle {
    const char *name; /* of the option, without its dashes */
    const char *why;  /* the same text for all that are idle for the same reason */
    int lines_may;    /* a line of prompts may ask for what makes it count */
};

/* Names of options for a line of words, "--a, --b". Begins empty: {0}. */
struct options_names {
    char text[512];
    int count;
};
void options_add_name(struct options_names *names, const char *name);
/* Is this name in a list that NULL ends? */
int options_is_named(const char *name, const char *const *names);
/* Has it the value that it has where nobody gives it? Some are filled in by others: --draft-deadline, --max-sequences. */
int options_is_default(const struct options *options, const struct option_entry *entry);
/* The rule whose number it is: its name begins with the rule's (--lenience, --typical-delta). NULL: it belongs to none. */
const struct rule *options_rule_of(const struct option_entry *entry);
/* Of the options about drafts, and beside --perplexity of those about completions, too, those that were given and change nothing in any request that
 * does not say otherwise itself, in the order of the table. A check and a sweep have requests of their own: of the first those that
 * are about results, and of the other none.
 * idle: [OPTIONS_IDLE_MOST]. Returns how many there are. */
int options_find_idle(const struct options *options, struct options_idle *idle);

#endif
