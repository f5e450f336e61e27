/* How far a pass is whose text nobody sees: one that --compare makes to measure. On a terminal the line stands there after a second, is redrawn in
 * place and taken away at the end; elsewhere one comes every five seconds. Of what takes less nothing is said. */
#ifndef TANDEM_VERIFIER_JOB_MEASURING_H
#define TANDEM_VERIFIER_JOB_MEASURING_H

#include "verifier/round/lead.h"
#include <stdio.h>

struct measuring {
    FILE *to; /* NULL: nowhere */
    int bar;  /* it is a terminal, and what else is written to it clears a line that stands there (log_clear_lines) */
    int clears_errors; /* which come to the same terminal */
    const char *what;  /* "solo" */
    int64_t read, reads;   /* tokens of prompts: that were read, that are to be read */
    int64_t tokens, most;  /* generated, and as many as there may be */
    int64_t said_ns;
    int stands;
    struct lead_watch watch; /* for job_pass */
};

/* `to`, `bar` and `clears_errors` are set up by the caller before. */
void measuring_begin(struct measuring *measuring, const char *what, const struct request_list *requests);
/* Takes the line away. */
void measuring_end(struct measuring *measuring);

#endif
