#include "common/sample/rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct rule greedy = {.name = "greedy", .lossless = 1, .matches = 1, .overlaps = 1, .trees = 1, .merges = 1, .draw = RULE_DRAWS_ARGMAX};

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
                        .trees = 1,
                        .merges = 1,
                        .usual = 1,
                        .draw = RULE_DRAWS_NOISE},
    [ACCEPT_WALK] = {.name = "walk",
                     .also = "exact",
                     .what = "or `exact`: the draft's most probable token is accepted if it is the one that the target draws by itself",
                     .source = "sample and match, as llama.cpp and SGLang have it",
                     .lossless = 1,
                     .matches = 1,
                     .overlaps = 1,
                     .trees = 1,
                     .merges = 1,
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
                         .draw = RULE_DRAWS_Q,
                         .number = offsetof(struct sampling, lenience)},
    [ACCEPT_THRESHOLD] =
        {.name = "threshold",
         .what = "the draft's most probable token is accepted if its p is above --threshold P, and at temperature 0 if it is the target's "
                 "best, too",
         .source = "as blockwise parallel decoding, Stern et al. 2018",
         .depends_on_drafts = 1,
         .cold = 1,
         .draw = RULE_DRAWS_ARGMAX,
         .number = offsetof(struct sampling, threshold)},
    [ACCEPT_TYPICAL] = {.name = "typical",
                        .what = "the draft's most probable token is accepted if its p is above --typical-epsilon E or above --typical-delta D times "
                                "exp(-entropy of p), whichever is less",
                        .source = "Cai et al. 2024, Medusa",
                        .depends_on_drafts = 1,
                        .draw = RULE_DRAWS_ARGMAX,
                        .number = offsetof(struct sampling, typical_epsilon)},
    [ACCEPT_MULTISTEP] =
        {.name = "multistep",
         .what = "as rejection on a chain; in a tree (--tree top-k) several drafts that follow one text are drawn from q, or (--merge) each by a "
                 "drafter with a q of its own, and tested one after the other, each against what the one before it has left of p",
         .source = "Miao et al. 2024, SpecInfer",
         .lossless = 1,
         .needs_q = 1,
         .depends_on_drafts = 1,
         .trees = 1,
         .merges = 1,
         .siblings = RULE_SIBLINGS_AGAIN,
         .draw = RULE_DRAWS_Q},
    [ACCEPT_WITHOUT_REPLACEMENT] = {.name = "without-replacement",
                                    .what = "as multistep, but none of the drafts that follow one text is drawn twice",
                                    .source = "Jeon et al. 2024, RSD; Chen et al. 2024, Sequoia",
                                    .lossless = 1,
                                    .needs_q = 1,
                                    .depends_on_drafts = 1,
                                    .trees = 1,
                                    .siblings = RULE_SIBLINGS_WITHOUT,
                                    .draw = RULE_DRAWS_Q},
    [ACCEPT_K_SEQUENTIAL] = {.name = "k-sequential",
                             .what =
                                 "as multistep, but each of the k drafts that follow one text is tested against all of p, with k or a little less "
                                 "times its q",
                             .source = "Sun et al. 2023, SpecTr",
                             .lossless = 1,
                             .needs_q = 1,
                             .depends_on_drafts = 1,
                             .trees = 1,
                             .siblings = RULE_SIBLINGS_AGAIN,
                             .draw = RULE_DRAWS_Q},
    [ACCEPT_TRAVERSAL] = {.name = "traversal",
                          .what =
                              "as block on a chain; a tree is judged from its leaves: a path stands or falls as a whole, before what is beside it",
                          .source = "Weng et al. 2025, traversal verification",
                          .lossless = 1,
                          .needs_q = 1,
                          .depends_on_drafts = 1,
                          .trees = 1,
                          .siblings = RULE_SIBLINGS_WITHOUT,
                          .looks_on = 1,
                          .draw = RULE_DRAWS_Q},
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

int rule_takes_shape(const struct rule *rule, enum tree_kind shape)
{
    if (shape == TREE_CHAIN || !rule->trees)
        return shape == TREE_CHAIN;
    return rule->siblings == RULE_SIBLINGS_ANY ? shape != TREE_IID : shape == TREE_TOP_K || shape == TREE_IID;
}

uint32_t rule_tree_coin(const struct sampling *sampling, int depth, int node)
{
    if (!rule_of(sampling)->looks_on || node == depth)
        return rule_coin(sampling, depth);
    return (uint32_t)sampling->drafter * RULE_COINS + (uint32_t)((depth + 1) * (SAMPLING_MAX_DRAFT + 1) + node);
}

const char *rule_name(int accept)
{
    const struct rule *rule = rule_row(accept);

    return rule != NULL ? rule->name : NULL;
}

static int is_name(const char *of, const char *name, size_t length)
{
    return strlen(of) == length && memcmp(of, name, length) == 0;
}

int rule_find(const char *name, size_t length)
{
    for (int i = 0; i < ACCEPT_MODES; i++)
        if (is_name(rules[i].name, name, length) || (rules[i].also != NULL && is_name(rules[i].also, name, length)))
            return i;
    return -1;
}

void rule_set(const struct rule_asked *asked, struct sampling *sampling)
{
    const struct rule *rule = rule_row(asked->accept);

    sampling->accept = asked->accept;
    if (asked->number >= 0 && rule != NULL && rule->number > 0)
        memcpy((char *)sampling + rule->number, &asked->number, sizeof asked->number);
}

int rule_read(const char *text, size_t length, struct rule_asked *asked)
{
    const char *equals = memchr(text, '=', length);
    struct rule_asked found = {.accept = rule_find(text, equals != NULL ? (size_t)(equals - text) : length), .number = -1};
    struct sampling sampling = sampling_default;
    char number[RULE_TEXT], *end, reason[256];

    if (found.accept < 0)
        return 0;
    if (equals != NULL) {
        if (rules[found.accept].number == 0 || text + length - equals > RULE_TEXT)
            return 0;
        snprintf(number, sizeof number, "%.*s", (int)(text + length - equals - 1), equals + 1);
        found.number = strtod(number, &end);
        if (number[strspn(number, "0123456789.e-")] != '\0' || end == number || *end != '\0' || !(found.number >= 0))
            return 0;
    }
    rule_set(&found, &sampling);
    if (sampling_check(&sampling, reason, sizeof reason) != STATUS_OK)
        return 0;
    *asked = found;
    return 1;
}

void rule_write(const struct rule_asked *asked, char *text)
{
    if (asked->number >= 0)
        snprintf(text, RULE_TEXT, "%s=%.10g", rule_name(asked->accept), asked->number);
    else
        snprintf(text, RULE_TEXT, "%s", rule_name(asked->accept));
}
