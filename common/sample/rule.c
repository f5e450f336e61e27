#include "common/sample/rule.h"

#include <string.h>

static const struct rule greedy = {.name = "greedy", .lossless = 1, .matches = 1, .overlaps = 1, .draw = RULE_DRAWS_ARGMAX};

/* [accept] */
static const struct rule rules[] = {
    [ACCEPT_REJECTION] = {.name = "rejection",
                          .what = "a draft is accepted with probability min(1, p / q), else the token comes from what p has more than q",
                          .source = "Leviathan et al. 2023, Algorithm 1",
                          .lossless = 1,
                          .needs_q = 1,
                          .depends_on_drafts = 1,
                          .overlaps = 1,
                          .usual = 1,
                          .draw = RULE_DRAWS_Q},
    [ACCEPT_COUPLED] = {.name = "coupled",
                        .what = "both models take the most probable token with the same noise; a draft is accepted if the tokens are equal",
                        .source = "Daliri et al. 2024",
                        .lossless = 1,
                        .matches = 1,
                        .overlaps = 1,
                        .usual = 1,
                        .draw = RULE_DRAWS_NOISE},
    [ACCEPT_WALK] = {.name = "walk",
                     .what = "the draft's most probable token is accepted if it is the one that the target draws by itself",
                     .source = "sample and match, as llama.cpp and SGLang have it",
                     .lossless = 1,
                     .matches = 1,
                     .overlaps = 1,
                     .draw = RULE_DRAWS_ARGMAX},
    [ACCEPT_BLOCK] = {.name = "block",
                      .what = "the drafts of a proposal are judged together: never fewer are accepted on average than by rejection",
                      .source = "Sun et al. 2024, block verification",
                      .lossless = 1,
                      .needs_q = 1,
                      .depends_on_drafts = 1,
                      .looks_on = 1,
                      .draw = RULE_DRAWS_Q},
    [ACCEPT_CLASSIC] = {.name = "classic",
                        .what = "rejection sampling with M = max p / q: a draft is accepted with probability p / (M q), to compare with",
                        .source = "Leviathan et al. 2023, appendix A.2",
                        .lossless = 1,
                        .needs_q = 1,
                        .depends_on_drafts = 1,
                        .draw = RULE_DRAWS_Q},
    [ACCEPT_LENIENCE] = {.name = "lenience",
                         .what = "as rejection, of --lenience L times q: no token comes more than 1 / L times as often as p has it; at temperature 0 "
                                 "a draft may be L times as probable as the best token",
                         .source = "Leviathan et al. 2023, appendix A.5",
                         .needs_q = 1,
                         .depends_on_drafts = 1,
                         .cold = 1,
                         .draw = RULE_DRAWS_Q},
    [ACCEPT_THRESHOLD] =
        {.name = "threshold",
         .what = "the draft's most probable token is accepted if its p is above --threshold P, and at temperature 0 if it is the target's "
                 "best, too",
         .source = "as blockwise parallel decoding, Stern et al. 2018",
         .depends_on_drafts = 1,
         .cold = 1,
         .draw = RULE_DRAWS_ARGMAX},
};
_Static_assert(sizeof rules / sizeof rules[0] == ACCEPT_MODES, "a row for each rule");

const struct rule *rule_row(int accept)
{
    return accept >= 0 && accept < ACCEPT_MODES ? &rules[accept] : NULL;
}

const struct rule *rule_of(const struct sampling *sampling)
{
    const struct rule *own = rule_row(sampling->accept);

    return own != NULL && sampling->temperature == 0.0 && !own->cold ? &greedy : own;
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
