/* Was enough drafted for a check to have seen anything? Rounds that a drafter left without an answer are the target's own, and pass whatever the code
 * does. Plain counts; pure. */
#ifndef TANDEM_VERIFIER_CHECK_CHECK_SHARE_H
#define TANDEM_VERIFIER_CHECK_CHECK_SHARE_H

#include <stdint.h>

#define CHECK_SHARE_LEAST 0.5    /* of the rounds of each pass had a proposal: less is no accident of a busy machine */
#define CHECK_DRAFTED_LEAST 0.1  /* of all rounds had a draft: with fewer, next to nothing was checked */

struct check_share {
    int64_t asked;    /* rounds that wanted drafts, over all passes */
    int64_t answered; /* and had a proposal, though it may say that there is nothing to copy */
    int64_t drafted;  /* and had a draft in it */
    int passes;       /* that asked */
    double least;     /* share of the pass that had the smallest */
};

/* One pass over prompts, or the requests of one text. */
void check_share_add(struct check_share *share, int64_t asked, int64_t answered, int64_t drafted);
/* Did every pass have enough proposals, and all passes together enough drafts? A pass that lacks proposals is not made up for by another. */
int check_share_suffices(const struct check_share *share);
/* How far off a law must be on drafted samples to be found, when a deviation of `found` is found in all samples, of which `drafted` were drafted
 * and the others are the target's own. */
double check_share_found(double found, int64_t drafted, int64_t samples);

#endif
