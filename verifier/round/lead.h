/* The lead's loop: admits requests into slots, reads their prompts beside the rounds of running sequences, collects proposals, verifies all ready
 * sequences in one step, commits, tells the drafters and calls the watch. It owns the slots, that is the sequences with their committed tokens, and
 * the place in the queue. Invariant between turns: every committed token was drawn from the target, whatever drafters did. The lead rank alone calls,
 * in one thread; collective over the group where so said. Never writes results or screen itself: the watch does. Rounds allocate nothing; admitting a
 * request does. */
#ifndef TANDEM_VERIFIER_ROUND_LEAD_H
#define TANDEM_VERIFIER_ROUND_LEAD_H

#include "verifier/round/adaptive_shape.h"
#include "verifier/round/figures.h"
#include "verifier/round/peers.h"
#include "verifier/round/reading.h"
#include "verifier/round/verify.h"

/* The lead's callbacks: writing results, showing progress, checking. A member that is NULL is not called. */
struct lead_watch {
    void *state;
    int (*has_result)(void *state, int at);                         /* has an earlier job written the result of request `at`? */
    void (*begin)(void *state, const struct sequence *sequence);    /* its prompt is about to be read */
    void (*read)(void *state, int tokens);                          /* so many more prompt tokens were read */
    void (*turn)(void *state, const struct figures *figures);       /* before each round, with the figures so far */
    void (*proposal)(void *state, const struct sequence *sequence); /* the sequence's proposal is about to be verified */
    void (*round)(void *state, const struct sequence *sequence, const struct outcome *outcome, int kept); /* the first `kept` tokens were committed */
    /* A completion has ended. sequence is NULL where the request is invalid (request->error) and was not run. */
    enum status (*end)(void *state, const struct request *request, const struct sequence *sequence);
    enum status (*sync)(void *state); /* after each round */
};

/* The requests that are to be completed, in order. */
struct lead_queue {
    const struct request_list *requests; /* borrowed */
    int next;                            /* the request that comes next, and */
    int choice;                          /* which of its completions */
    int64_t further;                     /* completions that were opened beside the first of their request: tickets are so far ahead of numbers */
};

/* The sequences that are decoded at once, and those in the current round. */
struct lead_slots {
    int count;
    struct sequence *sequence; /* [count] */
    struct sequence **ready;   /* [count] sequences that take part in the round: their prompts are read */
    struct outcome *outcome;   /* [count] of each in ready */
    int *kept;                 /* [count] tokens that are committed of each outcome */
    int actives;               /* slots that have a request */
    int readies;               /* sequences in ready */
};

/* How the job is told to end early. */
struct lead_drain {
    double seconds;    /* --drain-seconds */
    int64_t until_ns;  /* running requests are cut at this time; 0: the job was not told to drain */
    int64_t looked_ns; /* when the lead last looked whether it was told */
    int64_t rested_ns; /* when followers were last told that the lead is idle (lead_rest) */
};

/* The draft length of requests that leave it to the lead. */
struct lead_pacing {
    struct adaptive adaptive;
    struct adaptive_shape shape;          /* in a job of --tree auto */
    const struct adaptive_times *earlier; /* borrowed: what earlier jobs timed; NULL: nobody knows */
    int64_t load_ns;                      /* that loading took, of which measuring may take a share */
    const struct adaptive_past *past;     /* borrowed: what they saw of drafts; NULL: nothing is to be known */
    int least;          /* where somebody looks at drafts, so many are made where none would pay, too */
    int length;         /* last choice */
    int by_verdicts;    /* lengths are chosen by adaptive_next, for each sequence by itself */
    int by_price;       /* drafters stop where another draft costs more than it brings */
    int64_t decided_ns; /* when the last round was decided; 0: the next round does not follow it directly */
    int64_t shown_ns;   /* from there to the next round's start: commits, results, screen, messages */
};

/* Where the current round stands between two turns. */
enum lead_stage {
    LEAD_BETWEEN,           /* no round has begun */
    LEAD_WAITS_FOR_READERS, /* no sequence is ready: all wait for drafters that read their prompts */
    LEAD_WAITS_FOR_DRAFTS   /* the ready sequences wait for their proposals */
};

struct lead_round {
    enum lead_stage stage;
    int64_t began;    /* start of the round, for the trace */
    int64_t began_ns; /* when collecting proposals began */
    int proposals;    /* sequences that had one of the first kind, */
    int hits;         /* and those of them where it was drafted before it was asked for; both for the trace */
};

struct lead {
    struct team *team;           /* borrowed */
    struct verify *verify;       /* borrowed */
    struct peers *peers;         /* borrowed; with no drafters in it, decoding is plain */
    struct peers *resting;       /* borrowed; drafters not used in this run, which still get Heartbeats and may ask to drain; may be NULL */
    const struct tokenizer *tokenizer; /* borrowed */
    const struct lead_watch *watch;    /* borrowed; NULL before lead_open: no callbacks */
    int prefill_chunk;           /* --prefill-chunk */
    int fills;                   /* with no drafters: above 0 steps have the rows of drafts all the same, with q of so many ids (sequence_fill) */
    int hash_logits;
    struct arena arena;
    struct lead_queue queue;
    struct lead_slots slots;
    struct lead_drain drain;
    struct lead_pacing drafting;
    struct lead_round round;
    int is_over; /* the last turn found nothing left to do, or the drain's time was over */
    struct reading reading;
    int64_t told; /* prompt tokens that the watch was told of */
    struct figures figures;
};

/* The caller has set the borrowed members and slots.count. */
enum status lead_open(struct lead *lead);
void lead_close(struct lead *lead);
/* One round in two halves, for callers that do something in between. lead_admit fills free slots (lead->slots.actives is then the number of
 * sequences; 0: all is done); lead_round reads prompts, collects proposals, verifies and commits. While no sequence is ready, a round only reads.
 * Collective over the group. */
enum status lead_admit(struct lead *lead);
enum status lead_round(struct lead *lead);
/* One turn of the run, which never blocks on a drafter, so that several leads may live in one process, each with its own team (a group of one) and
 * peers: fills free slots and begins a round, or continues the round that waits. now: clock_ns of this moment. wake: 0, take the next turn at once
 * unless lead->is_over; else take it at that time or when a message has come (lead_wait does this). A turn does not count figures.wall_ns and does
 * not warm up: lead_run does. Collective over the group. */
enum status lead_turn(struct lead *lead, int64_t now, int64_t *wake);
/* Waits for a message until `wake`, as a turn gave it, or somewhat less; 0: returns at once. Point to point. */
enum status lead_wait(struct lead *lead, int64_t wake);
/* Completes all requests. STATUS_DRAINED when the job was told to drain before all were done; the results written until then are valid. Collective
 * over the group. */
enum status lead_run(struct lead *lead);
/* Lets running completions end with their next token. For a watch's `turn`. */
void lead_cut(struct lead *lead);
/* To be called several times a second while nothing runs and the job waits for input: sends Heartbeats to drafters and followers, and sets
 * lead->drain.until_ns when the job was told to drain. Collective over the group. */
enum status lead_rest(struct lead *lead);

#endif
