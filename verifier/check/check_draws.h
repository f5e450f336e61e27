/* The third check: the q that was sent is the q that was sampled. A drafter draws from integer weights with a number that is a function of (seed,
 * request, position), and of the text in front where the rule has it so, and sends the weights; so the lead can draw again, and must get the same
 * token. Plain counts; pure. */
#ifndef TANDEM_VERIFIER_CHECK_CHECK_DRAWS_H
#define TANDEM_VERIFIER_CHECK_CHECK_DRAWS_H

#include "common/wire/message.h"

struct check_draws {
    int64_t drawn;  /* drafts that were drawn again */
    int64_t certain; /* drafts with a point mass for a q: there was nothing to draw */
    int64_t wrong;  /* that came out otherwise */
    uint32_t request, position; /* of the first of these */
    int32_t sent, expected;     /* the token that was sent, and the one that the weights give */
};

/* Draws the drafts of a proposal again: only those that were drawn, not point masses. `length`: tokens that were committed before it.
 * source: of each draft the bit of the kind that drafted it, where several kinds' are joined; NULL: all are of the first */
void check_draws_add(struct check_draws *draws, const struct sampling *sampling, uint32_t request, int length, const struct proposal *proposal,
                     const uint8_t *source);

#endif
