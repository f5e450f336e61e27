/* What may come of a draft, and how often it did: some of its tokens are accepted, and one of the guesses there follows. Owns counts alone, which
 * fade, so that they follow the text. Pure: no clock, no messages, no allocation; the drafter's thread alone calls. What is chosen depends on
 * verdicts of earlier drafts, never on a draft's own values. */
#ifndef TANDEM_DRAFTER_OUTCOMES_H
#define TANDEM_DRAFTER_OUTCOMES_H

#include "drafter/mirror.h"

struct outcomes {
    double tested[MESSAGE_MAX_DRAFT], accepted[MESSAGE_MAX_DRAFT];
    double corrected[MESSAGE_MAX_DRAFT][MIRROR_GUESSES + 1]; /* by the guess that came after a rejection at this place; the last: none of them */
    double bonus[MIRROR_GUESSES + 1];                        /* by the guess that came when all were accepted */
};

struct outcome_choice {
    int after, guess;
};

/* The first `accepted` of `drafted` tokens were accepted, and the guess of that number followed; MIRROR_GUESSES: none of them; -1: it is not known.
 */
void outcomes_add(struct outcomes *outcomes, int drafted, int accepted, int guess);
/* The probability of that, by what was counted. */
double outcomes_share(const struct outcomes *outcomes, int drafted, int after, int guess);
/* The `most` most probable outcomes of at least this share, most probable first; a guess never comes before a better one at its place. Returns how
 * many. guesses: [drafted + 1] how many there are at each place  to: [most] */
int outcomes_choose(const struct outcomes *outcomes, int drafted, const int *guesses, int most, double least, struct outcome_choice *to);

#endif
