/* Verdicts that are drawn, for --synthetic-acceptance: each draft stands with one and the same probability, whatever the target says of it, so that
 * rounds have the lengths of a pair with that alpha, independent and identical as the theory has them. NOT LOSSLESS: what comes out follows no
 * model's distribution. Pure. */
#ifndef TANDEM_VERIFIER_ACCEPT_ACCEPT_SYNTHETIC_H
#define TANDEM_VERIFIER_ACCEPT_ACCEPT_SYNTHETIC_H

#include "verifier/accept/accept.h"

/* As accept_decide; the token after those that stand is the target's own, as in a round without drafts. Coins are keyed as all others,
 * by a purpose of their own. */
struct verdict accept_synthetic_decide(double rate, const struct target_row *targets, int drafted, const struct rng_key *key);

#endif
