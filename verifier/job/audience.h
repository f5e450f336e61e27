/* The audience is the lead's watch (verifier/round/lead.h): it passes results to the output, what a person sees to the screen, and events to one more
 * watch if there is one. It owns none of these, and the completions of requests that ask for several until all of one are there. The lead's thread
 * alone calls; local; never sends to other ranks. */
#ifndef TANDEM_VERIFIER_JOB_AUDIENCE_H
#define TANDEM_VERIFIER_JOB_AUDIENCE_H

#include "verifier/job/show.h"
#include "verifier/result/gathering.h"
#include "verifier/result/output.h"
#include "verifier/round/lead.h"

struct audience {
    struct lead_watch watch;
    struct output *output;           /* borrowed */
    struct show *show;               /* borrowed */
    const struct lead_watch *beside; /* borrowed: before each round and at each end, first; or NULL */
    struct gathering gathering;
};

void audience_init(struct audience *audience, struct output *output, struct show *show, const struct lead_watch *beside);
/* Forgets what was gathered of requests that did not come to a result. */
void audience_release(struct audience *audience);

#endif
