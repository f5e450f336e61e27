/* How far a pass is whose text nobody sees: one that --compare makes to measure. It owns the line of progress (progress_line.h), which the end takes
 * away, and its counts; it sees the pass as the lead's watch, and never writes a result. The lead's thread alone calls; local. */
#ifndef TANDEM_VERIFIER_JOB_MEASURING_H
#define TANDEM_VERIFIER_JOB_MEASURING_H

#include "verifier/job/progress_line.h"
#include "verifier/round/lead.h"

struct measuring {
    struct progress_line line;
    const char *what;      /* "solo" */
    int64_t read, reads;   /* tokens of prompts: that were read, that are to be read */
    int64_t tokens, most;  /* generated, and as many as there may be */
    struct lead_watch watch; /* for job_pass */
};

/* The caller has set up where the line goes. what: a literal */
void measuring_begin(struct measuring *measuring, const char *what, const struct request_list *requests);
/* Takes the line away. */
void measuring_end(struct measuring *measuring);

#endif
