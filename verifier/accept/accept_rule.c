#include "verifier/accept/accept_rule.h"

#include "common/sample/rule.h"

static const struct accept_rule greedy = {.evidence = EVIDENCE_BEST, .truncated = EVIDENCE_BEST, .decide = accept_match};

/* [accept] */
static const struct accept_rule rules[] = {
    [ACCEPT_REJECTION] = {.evidence = EVIDENCE_SUPPORT, .truncated = EVIDENCE_LIST, .decide = accept_rejection, .by_coin = 1},
    [ACCEPT_COUPLED] = {.evidence = EVIDENCE_GUMBEL_MAX, .truncated = EVIDENCE_LIST, .decide = accept_match},
    [ACCEPT_WALK] = {.evidence = EVIDENCE_GUMBEL_MAX, .truncated = EVIDENCE_LIST, .decide = accept_match},
    [ACCEPT_BLOCK] = {.evidence = EVIDENCE_SUPPORT, .truncated = EVIDENCE_LIST, .decide = accept_block},
    [ACCEPT_CLASSIC] = {.evidence = EVIDENCE_SUPPORT, .truncated = EVIDENCE_LIST, .decide = accept_classic},
    [ACCEPT_LENIENCE] = {.evidence = EVIDENCE_SUPPORT, .truncated = EVIDENCE_LIST, .cold = EVIDENCE_BEST_SUPPORT, .decide = accept_lenience},
    [ACCEPT_THRESHOLD] = {.evidence = EVIDENCE_SUPPORT, .truncated = EVIDENCE_LIST, .cold = EVIDENCE_BEST_SUPPORT, .decide = accept_threshold},
    [ACCEPT_TYPICAL] = {.evidence = EVIDENCE_ENTROPY_SUPPORT, .truncated = EVIDENCE_LIST, .decide = accept_typical},
    [ACCEPT_MULTISTEP] = {.evidence = EVIDENCE_SUPPORT, .truncated = EVIDENCE_LIST, .decide = accept_siblings},
    [ACCEPT_WITHOUT_REPLACEMENT] = {.evidence = EVIDENCE_SUPPORT, .truncated = EVIDENCE_LIST, .decide = accept_siblings},
    [ACCEPT_K_SEQUENTIAL] = {.evidence = EVIDENCE_SUPPORT, .truncated = EVIDENCE_LIST, .decide = accept_k_sequential},
    [ACCEPT_TRAVERSAL] = {.evidence = EVIDENCE_SUPPORT, .truncated = EVIDENCE_LIST, .decide = accept_traversal},
};
_Static_assert(sizeof rules / sizeof rules[0] == ACCEPT_MODES, "a row for each rule");

const struct accept_rule *accept_rule(const struct sampling *sampling)
{
    return sampling->temperature == 0.0 && !rule_of(sampling)->cold ? &greedy : &rules[sampling->accept];
}
