/* Deciding wrongly on purpose, for `tandem check --break` (common/base/breakage.h): each entry of the table is a rule that is not lossless.
 * Pure, as accept.h is. */
#ifndef TANDEM_VERIFIER_ACCEPT_ACCEPT_BROKEN_H
#define TANDEM_VERIFIER_ACCEPT_ACCEPT_BROKEN_H

#include "common/base/breakage.h"
#include "verifier/accept/accept.h"

/* accept_decide with this fault; without one for faults that do not concern deciding. */
struct verdict accept_broken_decide(enum breakage breakage, const struct sampling *sampling, const struct target_row *targets,
                                    const struct proposal *proposal, int drafted, const struct rng_key *key);

#endif
