/* The lead's loop: admits requests into slots, reads their prompts in parts beside the rounds of those that run, collects proposals, verifies
 * all that run in one step, commits, and tells the drafters and its watch. It owns the truth: queue and committed tokens. */
#ifndef TANDEM_VERIFIER_ROUND_LEAD_H
#define TANDEM_VERIFIER_ROUND_LEAD_H

#include "verifier/round/figures.h"
#include "verifier/round/adaptive.h"
#include "verifier/round/peers.h"
#include "verifier/round/reading.h"
#include "verifier/round/verify.h"

/* Who is told, and asked, as it happens: where results go, what a person sees, what a check counts. A member that is NULL: nobody wants to know. */
struct lead_watch {
    void *state;
    int (*has_result)(void *state, int at); /* is the result of request `at` there since an earlier job? */
    void (*skip)(void *state, const struct request *request);       /* so it was not run */
    void (*begin)(void *state, const struct sequence *sequence);    /* its prompt is about to be read */
    void (*read)(void *state, int tokens);                          /* so many tokens of prompts were read */
    void (*turn)(void *state, const struct figures *figures);       /* before each round, with what there is so far */
    void (*proposal)(void *state, const struct sequence *sequence); /* that is about to be verified */
    void (*round)(void *state, const struct sequence *sequence, const struct outcome *outcome, int kept); /* its outcome, cut to `kept` tokens */
    /* A completion has ended; sequence NULL: the request is wrong, as its error says, and was not run. */
    enum status (*end)(void *state, const struct request *request, const struct sequence *sequence);
    enum status (*sync)(void *state); /* after each round */
};

/* The requests that are to be completed, in order. */
struct lead_queue {
    const struct request_list *requests; /* borrowed */
    int next;                            /* the request that comes next */
};

/* The sequences that are decoded at once, and the round that they are in. */
struct lead_slots {
    int count;
    struct sequence *sequence; /* [count] */
    struct sequence **ready;   /* [count] those that take part in the round: their prompts are read */
    struct outcome *outcome;   /* [count] of each in ready */
    int *kept;                 /* [count] tokens that are committed of each outcome */
    int actives;               /* sequences that have a request */
    int readies;               /* sequences in ready */
};

/* How the job is told to end early. */
struct lead_drain {
    double seconds;    /* --drain-seconds */
    int64_t until_ns;  /* until when running requests may go on; 0: nobody has told the job to drain */
    int64_t looked_ns; /* when that was last looked for */
    int64_t rested_ns; /* when followers were last told that the lead waits */
};

/* How long drafts are, where the lead may choose. */
struct lead_pacing {
    struct adaptive adaptive;
    int length;         /* what it chose last */
    int64_t decided_ns; /* when the last round had its tokens; 0: something else came between */
    int64_t shown_ns;   /* from there to the next round: commits, what people see, and a look at all else */
};

/* How far the round is between two turns. */
enum lead_stage {
    LEAD_BETWEEN,           /* none has begun */
    LEAD_WAITS_FOR_READERS, /* nobody is ready: all sequences wait for drafters that read their prompts */
    LEAD_WAITS_FOR_DRAFTS   /* those that are ready wait for their proposals */
};

struct lead_round {
    enum lead_stage stage;
    int64_t began;    /* for the trace */
    int64_t began_ns; /* when proposals were first waited for */
};

struct lead {
    struct team *team;           /* borrowed */
    struct verify *verify;       /* borrowed */
    struct peers *peers;         /* borrowed; without drafters it is solo mode */
    struct peers *resting;       /* borrowed; drafters that are not asked in this run, but heard and told that the lead is there; may be NULL */
    const struct tokenizer *tokenizer; /* borrowed */
    const struct lead_watch *watch;    /* borrowed; NULL before lead_open: nobody */
    int prefill_chunk;           /* --prefill-chunk */
    int hash_logits;
    struct arena arena;
    struct lead_queue queue;
    struct lead_slots slots;
    struct lead_drain drain;
    struct lead_pacing drafting;
    struct lead_round round;
    int is_over; /* the last turn found nothing left to do, or the job is to end */
    struct reading reading;
    int64_t told; /* tokens of prompts that the watch was told of */
    struct figures figures;
};

/* The borrowed parts are set by the caller. */
enum status lead_open(struct lead *lead);
void lead_close(struct lead *lead);
/* One round in two halves, for callers that have something to do between them: filling free slots (lead->slots.actives is then how many
 * sequences there are; 0: all is done), and reading, proposals, verifying and committing. While nothing is ready to run, a round reads alone. Collective
 * over the group. */
enum status lead_admit(struct lead *lead);
enum status lead_round(struct lead *lead);
/* One turn of the run, which never waits, so that several leads may live in one process, each with its own team (a group of one) and peers: fills free
 * slots and begins a round, or goes on with the one that waits, as far as that goes. now: clock_ns, of this moment. wake: 0, take the next turn at once
 * unless lead->is_over; else take it at that time or when a message came (lead_wait does so). A turn counts no time into figures.wall_ns, and
 * warms nothing up: that is lead_run's. Collective over the group. */
enum status lead_turn(struct lead *lead, int64_t now, int64_t *wake);
/* Waits for a message until `wake`, which a turn gave, or for a moment less; 0: not at all. Point to point. */
enum status lead_wait(struct lead *lead, int64_t wake);
/* Completes all requests. STATUS_DRAINED when the job was told to drain before that; the results that are there are good. Collective over
 * the group. */
enum status lead_run(struct lead *lead);
/* Running completions end with their next token. For a watch's turn. */
void lead_cut(struct lead *lead);
/* To be called some times a second while nothing runs and the job waits for somebody: drafters and followers learn that the lead is there, and
 * lead->drain.until_ns says whether the job was told to drain. Collective over the group. */
enum status lead_rest(struct lead *lead);

#endif
