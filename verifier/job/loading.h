/* How far the target is read, for who waits for it: one rank says it, of its own share. On a terminal the line stands there after a second and is
 * redrawn in place, elsewhere a new one comes every five seconds; of what is read sooner nothing is said. */
#ifndef TANDEM_VERIFIER_JOB_LOADING_H
#define TANDEM_VERIFIER_JOB_LOADING_H

#include "common/model/model.h"
#include <stdio.h>

struct loading {
    FILE *to; /* NULL: nowhere */
    int bar;  /* it is a terminal, and what else is written to it clears a line that stands there (log_clear_lines) */
    int64_t started_ns, said_ns;
    int stands;
    struct model_reading reading; /* the last */
};

void loading_begin(struct loading *loading, FILE *to, int bar);
/* For model_options.tell. state: struct loading */
void loading_tell(void *state, const struct model_reading *reading);
/* All is read, or something has failed: takes the line away. With --verbose one says what was read, and how fast. */
void loading_end(struct loading *loading);

#endif
