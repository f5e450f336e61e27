/* How the verifier decides by each acceptance rule: one row per rule, beside its row in common/sample/rule.h, which both roles use. A new rule is a
 * row in either table, its function in a file of its own, and its test; no other file compares rules. Pure. */
#ifndef TANDEM_VERIFIER_ACCEPT_ACCEPT_RULE_H
#define TANDEM_VERIFIER_ACCEPT_ACCEPT_RULE_H

#include "verifier/accept/accept.h"
#include "verifier/accept/evidence.h"

/* As accept_decide. */
typedef struct verdict accept_by(const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal, int drafted,
                                 const struct rng_key *key);

struct accept_rule {
    enum evidence_kind evidence;  /* what a shard reports of a row */
    enum evidence_kind truncated; /* the same with top-k, top-p or min-p */
    enum evidence_kind cold;      /* the same at temperature 0, where the rule is not greedy there */
    accept_by *decide;
    int by_coin; /* a draft is accepted if the coin of its position is below p / q, and nothing else is looked at */
};

/* The row for this sampling, which sampling_check has accepted; greedy's at temperature 0, but for rules that are others there. */
const struct accept_rule *accept_rule(const struct sampling *sampling);

accept_by accept_rejection, accept_block, accept_classic, accept_match, accept_lenience, accept_threshold, accept_typical, accept_siblings,
    accept_k_sequential, accept_traversal;

/* Tests the siblings that follow one token, from the first on. Returns the one that is accepted, else -1, and what is left of p. */
typedef int accept_test_siblings(const void *how, const struct target_row *target, const struct proposal *proposal, int first,
                                 const struct rng_key *key, struct residual *residual);

/* Decides about a tree from its root: which sibling stands, then which of those that follow it, until none does.  how: passed on to the test
 * key: of the first position, as accept_decide has it */
struct verdict accept_descend(accept_test_siblings *test, const void *how, const struct target_row *targets, const struct proposal *proposal,
                              int drafted, const struct rng_key *key);
/* The sibling after this one, -1: it is the last. */
int accept_next_sibling(const struct proposal *proposal, int node);

#endif
