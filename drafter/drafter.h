/* The drafter's loop: takes the lead's messages, keeps its mirrors, drafts for all that want tokens in one batch, sends proposals. A long text is read in
 * parts, while nobody else wants tokens; the lead hears now and then that it is being read. It decides nothing: a proposal that is late or wrong is dropped by the lead. */
#ifndef TANDEM_DRAFTER_DRAFTER_H
#define TANDEM_DRAFTER_DRAFTER_H

#include "common/wire/channel.h"
#include "drafter/draft.h"

struct drafter_terms {
    struct channel *channel; /* borrowed */
    struct world *world;     /* borrowed; NULL when there are no ranks, only a loop */
    struct draft *draft;     /* borrowed */
    int lead;                /* peer name of the lead on the channel */
    uint64_t run;
    int vocab;
    int context;
    int slots;
    double patience_s; /* how long the lead may be silent before this rank ends the job; 0: for ever */
    int run_ahead; /* where the kind can: while the lead verifies, draft for the text that is most likely to come of it */
    int silent; /* for tests: take everything, answer nothing */
};

struct drafter {
    struct drafter_terms terms;
    struct message_space *space;
    struct arena arena;
    struct mirror *mirror;         /* [slots] */
    struct mirror **batch;         /* [slots] */
    struct draft_output *output;   /* [slots] */
    struct draft_output *ahead;    /* [slots], by slot: what is drafted ahead */
    struct draft_output **each;    /* [slots] of those */
    int ended;                     /* a Shutdown came */
    enum status stopped; /* how taking a message went while it drafted ahead */
    int64_t refused, unfitting, proposals;
    int64_t heard;    /* messages of the lead */
    int64_t told_ns;  /* when the lead was sent anything */
    int64_t reused;   /* tokens whose places were copied from another sequence's */
};

enum status drafter_open(struct drafter *drafter, const struct drafter_terms *terms);
void drafter_close(struct drafter *drafter);

/* Takes every message that has come, then drafts and sends once, or reads a part of a long text. Waits until deadline_ns when there is nothing to do. */
enum status drafter_turn(struct drafter *drafter, int64_t deadline_ns);
/* Turns until the lead says that it is over, or STATUS_WATCHDOG: it was silent for too long. Point to point. */
enum status drafter_run(struct drafter *drafter);
/* Tells the lead that this rank cannot go on, and gives the message a moment to leave. Point to point. */
void drafter_fail(struct drafter *drafter, enum status status);

#endif
