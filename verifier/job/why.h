/* Why drafts pay or do not, in a sentence with the numbers that this run has measured. Pure. */
#ifndef TANDEM_VERIFIER_JOB_WHY_H
#define TANDEM_VERIFIER_JOB_WHY_H

#include "verifier/round/adaptive.h"
#include <stddef.h>

enum { WHY_TEXT = 400 };

/* Without a full stop. measured: the speedup that there was, 0 where nobody knows; text: [WHY_TEXT] */
void why_write(const struct adaptive_terms *terms, double measured, char *text);
/* Is it a speedup that nobody would use drafts for? */
int why_is_asked(double speedup);

#endif
