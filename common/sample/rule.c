#include "common/sample/rule.h"

#include <string.h>

static const struct rule greedy = {.name = "greedy", .lossless = 1, .draw = RULE_DRAWS_ARGMAX};

/* [accept] */
static const struct rule rules[] = {
    [ACCEPT_REJECTION] = {.name = "rejection", .lossless = 1, .needs_q = 1, .depends_on_drafts = 1, .draw = RULE_DRAWS_Q},
    [ACCEPT_COUPLED] = {.name = "coupled", .lossless = 1, .draw = RULE_DRAWS_NOISE},
};
_Static_assert(sizeof rules / sizeof rules[0] == ACCEPT_MODES, "a row for each rule");

const struct rule *rule_row(int accept)
{
    return accept >= 0 && accept < ACCEPT_MODES ? &rules[accept] : NULL;
}

const struct rule *rule_of(const struct sampling *sampling)
{
    const struct rule *own = rule_row(sampling->accept);

    return own != NULL && sampling->temperature == 0.0 ? &greedy : own;
}

const char *rule_name(int accept)
{
    const struct rule *rule = rule_row(accept);

    return rule != NULL ? rule->name : NULL;
}

int rule_find(const char *name, size_t length)
{
    for (int i = 0; i < ACCEPT_MODES; i++)
        if (strlen(rules[i].name) == length && memcmp(rules[i].name, name, length) == 0)
            return i;
    return -1;
}
