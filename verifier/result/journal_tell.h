/* How far an output has come, told to somebody who ended its job. It reads files alone, takes no lock and changes nothing: the ranks may be about to
 * end. Owns nothing; local. */
#ifndef TANDEM_VERIFIER_RESULT_JOURNAL_TELL_H
#define TANDEM_VERIFIER_RESULT_JOURNAL_TELL_H

#include "common/options/options.h"
#include <stdio.h>

/* One line: what of --output is there and how to go on, or that nothing is kept. */
void journal_tell(const struct options *options, FILE *to);

#endif
