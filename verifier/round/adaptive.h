/* Adaptive chooses how many tokens to draft, as a chain or as a tree, or none, from what was measured in this run (the model is at the head of
 * adaptive.c). It owns the measured speeds and acceptance rates. Invariant: the choice depends only on times and on verdicts of decided positions,
 * never on a draft or a p at a position that is not decided, where the coin is still to be used. So the output's distribution is the target's
 * whatever is chosen. Under rejection sampling another draft length gives another text, though, so only a fixed one repeats a text. Only the lead's
 * thread may call. Never reads a clock, sends, waits or allocates: times come in as numbers. */
#ifndef TANDEM_VERIFIER_ROUND_ADAPTIVE_H
#define TANDEM_VERIFIER_ROUND_ADAPTIVE_H

#include "verifier/round/adaptive_tokens.h"
#include "verifier/round/adaptive_wait.h"
#include "verifier/round/adaptive_work.h"

enum { ADAPTIVE_START = 4, ADAPTIVE_RESTS = 5 };

/* What a drafter measured before the job: microseconds of a draft step of one row and of `rows` rows. */
struct adaptive_draft_step {
    int rows; /* 0: not told */
    double one_us, all_us;
};

/* Rounds with drafts: the time they took, and the time that their tokens would have taken without drafts. */
struct adaptive_account {
    double us, plain_us, tokens;
    int rounds;
};

struct adaptive {
    struct adaptive_work work;
    struct adaptive_draft_step draft_step;
    struct adaptive_wait wait;
    struct adaptive_tokens tokens;
    struct adaptive_account drafted; /* all rounds with drafts of the run */
    struct adaptive_account spell;   /* rounds with drafts since drafting last began; decayed sums */
    int longest;                     /* of the last round with drafts */
    int drafts;                 /* 1: rounds draft, except in a look */
    int size;                   /* of drafts: the last choice, */
    int is_changed;             /* which was another one than the one before */
    int probe_rounds;           /* rounds left of the probe */
    int trial_rounds;           /* rounds left of the trial of another size, */
    int trial_size;             /* which is this one */
    int since_trial;            /* rounds with drafts since the last trial */
    int trial_rest;             /* rounds with drafts between the last trial and the next */
    int best;                   /* the size that was the best when that was counted */
    int look_rounds;            /* rounds left of the look at rounds without drafts */
    double settled_us;          /* time in rounds without drafts before the first of them */
    double looked[ADAPTIVE_LOOK];   /* measured over expected time of each */
    int since_look;             /* rounds with drafts since the last look */
    int look_rest;              /* rounds with drafts between the last look and the next */
    double alone_us;            /* time in rounds without drafts since the last round with drafts */
    double rest_us;             /* how much of that there is to be before the next probe */
    double probe_us;            /* what the last probe is taken to have cost */
    int rests;                  /* probes in a row after which drafting stopped again */
    int shares_cores;           /* this host has more threads than cores, so that drafters slow verifiers at all times */
    int recalled;               /* earlier jobs drafted, so that the first probe tells no more than any other */
};

/* What rounds with drafts showed, left by one job to the next of its kind; what probes cost is a share of the time of all of them. */
struct adaptive_past {
    struct adaptive_tokens tokens;
    struct adaptive_wait wait;
    struct adaptive_ratio ratio;
    double rest_us, alone_us; /* of the rest between two probes, and how much of it is over; 0: drafting went on */
    int rests;
};

/* What was seen of drafts of one shape. */
struct adaptive_seen {
    struct adaptive_tokens tokens;
    struct adaptive_wait wait;
    struct adaptive_account spell;
};

/* A round as the lead measured it. */
struct adaptive_round {
    int sequences;
    int rows;       /* of its step */
    int longest;    /* most drafts of any sequence */
    int tokens;     /* committed */
    int asked;      /* drafts were asked for, where none came: it is a round with drafts then, too */
    int caught_up;  /* a drafter had tokens to read before it drafted, so the wait is not a usual one */
    double work_us;   /* of the round without the wait */
    double wait_us;   /* for drafts */
    double answer_us; /* what a drafter usually takes to answer where it has not drafted ahead; 0: not known */
};

/* Records what a drafter measured; of several the slowest counts. */
void adaptive_add_draft_step(struct adaptive *adaptive, struct adaptive_draft_step step);
/* Before the first round: as jobs before left it. What they saw of drafts counts for less than what this job sees. */
void adaptive_recall(struct adaptive *adaptive, const struct adaptive_past *past);
/* Puts what is known now in the place of what earlier jobs left, as far as there is anything. */
void adaptive_leave(const struct adaptive *adaptive, struct adaptive_past *past);
void adaptive_add_round(struct adaptive *adaptive, const struct adaptive_round *round);
/* Records that `accepted` of a proposal's `drafted` tokens were accepted: of a chain the first ones. */
void adaptive_add_verdict(struct adaptive *adaptive, int drafted, int accepted);
/* The draft length for the next round of `sequences` sequences; 0: do not draft. */
int adaptive_choose(struct adaptive *adaptive, int sequences);
/* Goes on with drafts of another shape, of which that was seen; what was seen of the one before is left. */
void adaptive_swap(struct adaptive *adaptive, const struct adaptive_seen *seen, struct adaptive_seen *left);
/* The same as adaptive_rate, of the size of drafts of which that is the highest. */
double adaptive_best_rate(const struct adaptive *adaptive, int sequences);
/* Expected tokens per microsecond of a round of `sequences` sequences; 0: not known. */
double adaptive_rate(const struct adaptive *adaptive, int sequences, int draft_length);
/* What one more draft of one of `sequences` sequences costs, in tokens that the job decodes in that time: its row of a step as large as the last one
 * with drafts, and its share of the wait for one more of each, [0, 0.9]; 0: not known. */
double adaptive_price(const struct adaptive *adaptive, int sequences);
/* Did drafting cost more time than it saved, over all rounds with drafts? Gives tokens per second with drafts, and those expected without. 0 where
 * there were too few rounds or the difference is small. */
int adaptive_drafts_cost(const struct adaptive *adaptive, double *with, double *without);
/* What a draft length costs and gives, as far as it is known. */
struct adaptive_terms {
    int length;     /* K */
    int rows, alone; /* of its step, and of one without drafts */
    double v;       /* time of the former over the latter */
    double c;       /* the wait for drafts, each, over the latter */
    double alpha; /* expected share of tested drafts that are accepted: with it equation 1 gives the expected tokens. Of a tree: that of the chain of
                     as many drafts that gives as many tokens */
    int waited;     /* was c measured? Else it is a guess, */
    int judged;     /* and was alpha? */
    double speedup; /* expected tokens per time over those without drafts */
};

/* Of `sequences` sequences with so many drafts each; length 0: of the length that is expected to be the fastest. 0: steps have not been timed. */
int adaptive_explain(const struct adaptive *adaptive, int sequences, int length, struct adaptive_terms *terms);
/* Expected tokens of a round where every draft is accepted with probability alpha: equation 1. */
double adaptive_expected_tokens(double alpha, int draft_length);

/* The heuristic instead of all that (--stop-drafting heuristic): how long a sequence's first proposal is, and the one that follows a verdict.
 * drafted: 0 leaves it as it was, for then nothing is known. */
enum { ADAPTIVE_FIRST = 5 };
int adaptive_next(int length, int drafted, int accepted);

#endif
