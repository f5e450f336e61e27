/* Verdicts by chance, for --synthetic-acceptance: every draft is accepted with the same probability, independently of the target, so that rounds have
 * the lengths that the theory gives for that alpha. NOT LOSSLESS: the text follows no model's distribution. Pure. */
#ifndef TANDEM_VERIFIER_ACCEPT_ACCEPT_SYNTHETIC_H
#define TANDEM_VERIFIER_ACCEPT_ACCEPT_SYNTHETIC_H

#include "verifier/accept/accept.h"

/* As accept_decide; the token after the accepted drafts is the target's own, as in a round without drafts. Its coins have an rng_purpose of their
 * own. */
struct verdict accept_synthetic_decide(double rate, const struct sampling *sampling, const struct target_row *targets, int drafted,
                                       const struct rng_key *key);

#endif
