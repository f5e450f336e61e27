/* What jobs of this user timed of the target's steps, by what these times depend on (model, machine, ranks), and what they saw of rounds with drafts,
 * by what these depend on as well (rule, temperature), in one small file: so that the next job of the kind knows what its own warm-up had no time
 * for, and whether drafts pay. It owns nothing; the file may be lost, shared or wrong at any time, and then the job measures anew. The lead calls,
 * once when it begins and once when it ends. Local. */
#ifndef TANDEM_VERIFIER_JOB_TIMES_H
#define TANDEM_VERIFIER_JOB_TIMES_H

#include "verifier/round/adaptive.h"
#include <stdint.h>

enum { TIMES_MOST = 64, TIMES_OF = 1024, TIMES_BY_MOST = 8 /* twice a few terms: of a busy host, too */, TIMES_BY = 512 };

struct times {
    struct adaptive_times steps;
    struct adaptive_past drafts;
};

/* This part of the time since a job left its rest counts as rest: the machine may have become another one meanwhile, though nobody decoded. */
#define TIMES_MEANWHILE 0.125

/* The times of jobs `of` this kind, and the drafts of those among them that drafted `by` these terms; zeros where the file at `path` has none, or is
 * not one.  now_s: seconds since the epoch, of which drafts know how old they are */
void times_read(const char *path, const char *of, const char *by, int64_t now_s, struct times *times);
/* Puts them before those of other kinds, of which the newest TIMES_MOST are kept, each with its newest TIMES_BY_MOST terms; drafts of which nothing
 * is known are not put. The file is replaced as a whole; where that fails it stays as it was. Whichever of two jobs ends last is kept. */
void times_write(const char *path, const char *of, const char *by, int64_t now_s, const struct times *times);

#endif
