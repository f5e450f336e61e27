/* A round as it was decided, for people: each draft, how probable drafter and target found it, and what became of it. Pure; owns nothing. */
#ifndef TANDEM_VERIFIER_ACCEPT_EXPLAINED_H
#define TANDEM_VERIFIER_ACCEPT_EXPLAINED_H

#include "verifier/accept/accept.h"

enum explained_fate {
    EXPLAINED_ACCEPTED,
    EXPLAINED_REJECTED, /* it was tested, and does not stand */
    EXPLAINED_PASSED,   /* it follows none that stands, or comes behind the one that does */
};

struct explained_node {
    int32_t token;
    int parent, depth; /* -1: it follows the newest committed token; drafts in front of it */
    double q, p;       /* -1: the decision knows of none, as it compares tokens, or asks for no q */
    int32_t own;       /* the target's own token there, where tokens are compared; -1: they are not */
    double coin;       /* it is accepted if this is below p / q; -1: the rule has no such coin, or did not look at it */
    enum explained_fate fate;
    unsigned source; /* the kinds of drafters that proposed it, a bit each; 0: there is one kind alone */
};

struct explained {
    const char *rule; /* its name */
    int count;
    struct explained_node node[MESSAGE_MAX_DRAFT];
    enum draw_kind draw; /* of the last token */
    struct residual residual;
    int32_t token;
    const char *const *kind; /* borrowed: what the kinds of drafters are called, where a source is not 0 */
};

/* targets, proposal, key: as accept_decide had them, and the verdict that it gave; its last token may still have to be drawn. */
void explained_fill(struct explained *explained, const struct sampling *sampling, const struct target_row *targets, const struct proposal *proposal,
                    const struct verdict *verdict, const struct rng_key *key);

#endif
