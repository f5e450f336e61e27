/* How far the target is read, for a person who waits for it. It owns the line of progress (progress_line.h) and what it says, and never reads
 * itself: the model reports to it. One rank says it, of its own share; local, one thread. */
#ifndef TANDEM_VERIFIER_JOB_LOADING_H
#define TANDEM_VERIFIER_JOB_LOADING_H

#include "common/model/model.h"
#include "verifier/job/progress_line.h"

struct loading {
    struct progress_line line;
    int64_t started_ns;
    struct model_reading reading; /* the last */
};

/* to: NULL, nowhere. bar: it is a terminal, and errors come to it, too. */
void loading_begin(struct loading *loading, FILE *to, int bar);
/* For model_options.tell. state: struct loading */
void loading_tell(void *state, const struct model_reading *reading);
/* All is read, or something has failed: takes the line away. With --verbose one says what was read, and how fast. */
void loading_end(struct loading *loading);

#endif
