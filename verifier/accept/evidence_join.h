/* What the lead makes of the shards' evidence of one row, for each kind: for the table of evidence.c alone. Pure. */
#ifndef TANDEM_VERIFIER_ACCEPT_EVIDENCE_JOIN_H
#define TANDEM_VERIFIER_ACCEPT_EVIDENCE_JOIN_H

#include "verifier/accept/evidence.h"

/* What shards tell of one row, and where it goes: as evidence_join. */
struct evidence_joining {
    const struct sampling *sampling;
    const struct rng_key *key;
    const void *const *from; /* [ranks] */
    int ranks, support_count, vocab;
    struct scored_token *best; /* [room], and p */
    double *p;
    float *logit; /* [support_count] */
};

/* As evidence_join. */
typedef int evidence_join_by(const struct evidence_joining *joining, struct target_row *target);

evidence_join_by evidence_join_winner, evidence_join_list, evidence_join_support, evidence_join_best_support, evidence_join_entropy_support;

/* Bytes of what it reads, the mass and the logits behind it: a multiple of 8. */
size_t evidence_join_support_bytes(int support_count);

#endif
