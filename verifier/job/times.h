/* What jobs of this user timed of the target's steps, by what these times depend on (model, machine, ranks), in one small file: so that the next job
 * of the kind knows what its own warm-up had no time for. It owns nothing; the file may be lost, shared or wrong at any time, and then the job
 * measures anew. The lead calls, once when it begins and once when it ends. Local. */
#ifndef TANDEM_VERIFIER_JOB_TIMES_H
#define TANDEM_VERIFIER_JOB_TIMES_H

#include "verifier/round/adaptive.h"

enum { TIMES_MOST = 64, TIMES_OF = 1024 };

/* The times of jobs `of` this kind; zeros where the file at `path` has none, or is not one. */
void times_read(const char *path, const char *of, struct adaptive_times *times);
/* Puts them before those of other kinds, of which the newest TIMES_MOST are kept. The file is replaced as a whole; where that fails it stays as it
 * was. Whichever of two jobs ends last is kept. */
void times_write(const char *path, const char *of, const struct adaptive_times *times);

#endif
