#include "verifier/job/why.h"

#include <stdio.h>

#define WORTH_HAVING 1.02 /* what repeated measurements would call the same stays below it */
#define FAR_OFF 0.9       /* measured over expected, from where on the terms alone do not explain it */

void why_write(const struct adaptive_terms *terms, double measured, char *text)
{
    double round = terms->v + terms->length * terms->c;

    snprintf(text, WHY_TEXT,
             "with K = %d a step of %d rows takes %.2f of the time of one of %d (v), each draft with its wire %.2f (c%s), and of tested drafts "
             "%.0f %% are expected to be accepted (alpha%s): %.2f tokens in v + K c = %.2f are %.2fx%s",
             terms->length, terms->rows, terms->v, terms->alone, terms->c, terms->waited ? "" : ", guessed", 100 * terms->alpha,
             terms->judged ? "" : ", guessed", terms->speedup * round, round, terms->speedup,
             measured > 0 && measured < FAR_OFF * terms->speedup ? ", and the rest went into waits or to other programs on these cores" : "");
}

int why_is_asked(double speedup)
{
    return speedup < WORTH_HAVING;
}
