/* The drafter's loop: takes the lead's messages, keeps its mirrors, drafts in one batch for all sequences that want tokens, and sends proposals. It
 * owns the mirrors; channel, world and draft are borrowed. Invariant between turns: no wanted draft is left undone, except for a long text, which is
 * read in parts while Heartbeats tell the lead so. This rank's main thread alone calls; point to point with the lead, never collective. It decides
 * nothing: the lead drops a proposal that is late or wrong. Allocates at open alone. */
#ifndef TANDEM_DRAFTER_DRAFTER_H
#define TANDEM_DRAFTER_DRAFTER_H

#include "common/wire/channel.h"
#include "drafter/run_ahead.h"

struct drafter_terms {
    struct channel *channel; /* borrowed */
    struct world *world;     /* borrowed; NULL where lead and drafter share a process */
    struct draft *draft;     /* borrowed */
    int lead;                /* the lead's name on the channel */
    uint64_t run;
    int vocab;
    int context;
    int slots;
    double patience_s; /* seconds that the lead may be silent before this rank ends the job; 0: no limit */
    const double *draft_temperature; /* where a draft is drawn from q, q is at this temperature; NULL: at the request's */
    int run_ahead;     /* where the kind can: while the lead verifies, draft for the texts that are most likely to come of it */
    int kind;          /* which of the kinds of drafters it is of, whose coins are its own */
    int branches;      /* that many texts at most for each draft; 0: as many as time allows */
    int unhurried;     /* a message waits until they are drafted, so that it does not depend on time whether they are: for `tandem check --break` */
    int silent; /* for tests: takes all messages, answers none */
};

struct drafter {
    struct drafter_terms terms;
    struct message_space *space;
    struct arena arena;
    struct mirror *mirror;         /* [slots] */
    struct mirror **batch;         /* [slots] */
    struct draft_output **each;    /* [slots] */
    struct run_ahead ahead;
    int ended; /* a Shutdown came */
    int64_t refused, unfitting, proposals;
    int64_t heard;    /* valid messages of the lead */
    int64_t told_ns;  /* when the lead was last sent anything */
    int64_t reused;   /* tokens not read but copied from another sequence's cache */
};

enum status drafter_open(struct drafter *drafter, const struct drafter_terms *terms);
void drafter_close(struct drafter *drafter);

/* Takes every message that has come, then drafts and sends once, and reads a part of a long text if there is one. Waits for a message until
 * deadline_ns when there is no text to read. Point to point. */
enum status drafter_turn(struct drafter *drafter, int64_t deadline_ns);
/* Takes turns until the lead sends a Shutdown; STATUS_WATCHDOG when it was silent for too long. Point to point. */
enum status drafter_run(struct drafter *drafter);
/* Sends the lead a Failure, and waits a moment (200 ms at most) for it to leave. Point to point. */
void drafter_fail(struct drafter *drafter, enum status status);

#endif
