/* Pace chooses how many tokens to draft, and whether to draft at all, from what was measured in this run. A round of K drafts and S sequences works
 * for v(S (K + 1)) and waits w + K d for its drafts; it gives S E(K) tokens, where E(K) = 1 + a_1 + a_1 a_2 + ... and a_i is the share of the i-th
 * drafts of a proposal that stood where the ones before them did (with one alpha for all: Leviathan et al. 2023, equation 1). The K of the highest
 * rate is used; without drafts there is no wait, and the drafter is left alone.
 *
 * v is a table, not a line: by how many rows the time of a step doubles depends on kernel and cache. A warm-up fills it, so that a job in which no
 * draft can pay asks for none; each round mends it. Rounds with and without drafts are slower or faster than the table by factors of their own: a
 * drafter takes caches, memory and often a core from the verifiers, so what rounds with drafts take says little of what there would be without.
 * Therefore that is looked at: three rounds without drafts, now and then, and always before drafts are given up.
 *
 * The law of the text does not depend on K, whatever K is chosen from of this: verdicts of positions that are decided, whose coins are never used
 * again, and times, which follow from how many rows and tokens there were. Nothing here may depend on what was drafted, or on p, at a position that is
 * not decided yet: that coin decides there later. But another K is another, equally lawful, text under rejection sampling, so there only a fixed K
 * gives the same text twice. Pure: times come in as numbers. */
#ifndef TANDEM_VERIFIER_ROUND_PACE_H
#define TANDEM_VERIFIER_ROUND_PACE_H

enum { PACE_MOST = 12, PACE_START = 4, PACE_KNOTS = 40, PACE_LOOK = 3 };

/* A line y = fixed + slope x by least squares over the recent past: decayed sums. */
struct pace_line {
    double weight, x, y, xx, xy;
    double slope; /* of the last fit */
    int fitted;
};

/* Rounds with drafts: what they took, and what their tokens would have taken without. */
struct pace_account {
    double us, plain_us, tokens;
    int rounds;
};

/* How slow rounds of a kind are now, of what the table says. */
struct pace_speed {
    double scale;
    int rounds; /* that said so */
};

struct pace {
    double shape[PACE_KNOTS];   /* work of a round by its rows (the table's knots are in pace.c), before a scale; 0: not known */
    int known[PACE_KNOTS];      /* rounds that said so, */
    int last[PACE_KNOTS];       /* and the last of them */
    struct pace_speed speed[2]; /* of rounds without drafts, and with */
    int rounds;
    struct pace_line wait;      /* microseconds by drafted tokens */
    double judged[PACE_MOST], stood[PACE_MOST]; /* by place in a proposal; decayed counts */
    struct pace_account drafted; /* all rounds with drafts */
    struct pace_account spell;   /* those since drafting last began; decayed */
    int drafts;                 /* drafting, but for looks */
    int probe_rounds;           /* that a probe still has */
    int look_rounds;            /* that a look at rounds without drafts still has */
    double looked[PACE_LOOK];   /* what they took, of what was expected */
    int since_look;             /* rounds with drafts since the last look, */
    int look_rest;              /* and how many there are until the next */
    double alone_us;            /* time without drafts since the last round with them */
    double rest_us;             /* of it before the next probe */
    int rests;                  /* probes that changed nothing, one after the other */
};

/* A round as the lead saw it. */
struct pace_round {
    int sequences;
    int rows;       /* of its step */
    int longest;    /* most drafts of a sequence */
    int tokens;     /* committed */
    int caught_up;  /* a drafter had to read before it drafted: its wait is not the usual one */
    double work_us; /* of the round but for the wait */
    double wait_us; /* for drafts */
};

/* Rows that a warm-up times, i = 0, 1, ...: 1, 2, 3, 4, 6, 8, 12, ... */
int pace_warm_up_rows(int i);
/* A step of `rows` rows took `us`, before the first round. */
void pace_add_step(struct pace *pace, int rows, double us);
/* Are there any such steps? */
int pace_is_warm(const struct pace *pace);
void pace_add_round(struct pace *pace, const struct pace_round *round);
/* Of a proposal of `drafted` tokens the first `accepted` stood. */
void pace_add_verdict(struct pace *pace, int drafted, int accepted);
/* The draft length for the next round of `sequences` sequences. 0: nothing is asked of drafters. */
int pace_choose(struct pace *pace, int sequences);
/* Expected tokens per microsecond of a round of `sequences` sequences; 0: not known. */
double pace_rate(const struct pace *pace, int sequences, int draft_length);
/* Did drafts that were asked for cost time, over all rounds with them? Gives tokens by second with them, and what they were without, as expected.
 * 0 where too few rounds say so, or the difference is small. */
int pace_drafts_cost(const struct pace *pace, double *with, double *without);
/* Expected tokens of a round where each draft stands with the same probability: equation 1. */
double pace_expected_tokens(double alpha, int draft_length);

#endif
