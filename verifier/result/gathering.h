/* A gathering holds the completions of requests that ask for several, each as it ended, until the last one of its request has: only then is there a
 * result. It owns copies, for the slot of a completion that has ended is given to another one. Invariant: completions that are handed out are all of
 * one request, in the order of its result: by their numbers, or where the best are chosen the best first. What was not complete when a job ends is
 * forgotten. The lead's thread alone calls; local. Allocates when a completion ends. */
#ifndef TANDEM_VERIFIER_RESULT_GATHERING_H
#define TANDEM_VERIFIER_RESULT_GATHERING_H

#include "verifier/round/sequence.h"

struct gathered;

struct gathering {
    struct gathered *first; /* of the requests of which some completions have ended */
};

/* Mean log p of the completion's tokens, by which the best are chosen; 0 where it has none. */
double gathering_rank(const struct sequence *sequence);
/* Takes a completion that has ended. *all: NULL while others of its request have not, then all of them [request_completions], until gathering_drop.
 * One that is alone is handed back as it is. STATUS_INTERNAL without memory, logged. */
enum status gathering_add(struct gathering *gathering, const struct sequence *sequence, const struct sequence **all);
/* Forgets the completions of this request. */
void gathering_drop(struct gathering *gathering, const struct request *request);
void gathering_release(struct gathering *gathering);

#endif
