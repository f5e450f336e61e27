/* The adaptive draft length: how many tokens to draft, and whether to draft at all, from what was measured in this run. A round of K drafts and S sequences works
 * for v(S (K + 1)) and waits w + K d for its drafts; it gives S E(K) tokens, where E(K) = 1 + a_1 + a_1 a_2 + ... and a_i is the share of the i-th
 * drafts of a proposal that were accepted where those before them were (with one alpha for all: Leviathan et al. 2023, equation 1). The K of the highest
 * rate is used; without drafts there is no wait, and the drafter is left alone.
 *
 * v is a table, not a line: by how many rows the time of a step doubles depends on kernel and cache. A warm-up fills it, so that a job in which no
 * draft can pay asks for none; each round mends it. Rounds with and without drafts are slower or faster than the table by factors of their own: a
 * drafter takes caches, memory and often a core from the verifiers, so what rounds with drafts take says little of what there would be without.
 * Therefore that is looked at: three rounds without drafts, now and then, and always before drafts are given up.
 *
 * The distribution of the text does not depend on K, whatever K is chosen from of this: verdicts of positions that are decided, whose coins are never used
 * again, and times, which follow from how many rows and tokens there were. Nothing here may depend on what was drafted, or on p, at a position that is
 * not decided yet: that coin decides there later. But another K is another, equally lawful, text under rejection sampling, so there only a fixed K
 * gives the same text twice. Pure: times come in as numbers. */
#ifndef TANDEM_VERIFIER_ROUND_ADAPTIVE_H
#define TANDEM_VERIFIER_ROUND_ADAPTIVE_H

enum { ADAPTIVE_MOST = 12, ADAPTIVE_START = 4, ADAPTIVE_KNOTS = 40, ADAPTIVE_LOOK = 3 };

/* A line y = fixed + slope x by least squares over the recent past: decayed sums. */
struct adaptive_line {
    double weight, x, y, xx, xy;
    double slope; /* of the last fit */
    int fitted;
};

/* Rounds with drafts: what they took, and what their tokens would have taken without. */
struct adaptive_account {
    double us, plain_us, tokens;
    int rounds;
};

/* How slow rounds of a kind are now, of what the table says. */
struct adaptive_speed {
    double scale;
    int rounds; /* that said so */
};

struct adaptive {
    double shape[ADAPTIVE_KNOTS];   /* work of a round by its rows (the table's knots are in adaptive.c), before a scale; 0: not known */
    int known[ADAPTIVE_KNOTS];      /* rounds that said so, */
    int last[ADAPTIVE_KNOTS];       /* and the last of them */
    struct adaptive_speed speed[2]; /* of rounds without drafts, and with */
    int rounds;
    struct adaptive_line wait;      /* microseconds by drafted tokens */
    double tested[ADAPTIVE_MOST], accepted[ADAPTIVE_MOST]; /* by place in a proposal; decayed counts */
    struct adaptive_account drafted; /* all rounds with drafts */
    struct adaptive_account spell;   /* those since drafting last began; decayed */
    int drafts;                 /* drafting, but for looks */
    int probe_rounds;           /* that a probe still has */
    int look_rounds;            /* that a look at rounds without drafts still has */
    double looked[ADAPTIVE_LOOK];   /* what they took, of what was expected */
    int since_look;             /* rounds with drafts since the last look, */
    int look_rest;              /* and how many there are until the next */
    double alone_us;            /* time without drafts since the last round with them */
    double rest_us;             /* of it before the next probe */
    int rests;                  /* probes that changed nothing, one after the other */
};

/* A round as the lead saw it. */
struct adaptive_round {
    int sequences;
    int rows;       /* of its step */
    int longest;    /* most drafts of a sequence */
    int tokens;     /* committed */
    int caught_up;  /* a drafter had to read before it drafted: its wait is not the usual one */
    double work_us; /* of the round but for the wait */
    double wait_us; /* for drafts */
};

/* Rows that a warm-up times, i = 0, 1, ...: 1, 2, 3, 4, 6, 8, 12, ... */
int adaptive_warm_up_rows(int i);
/* A step of `rows` rows took `us`, before the first round. */
void adaptive_add_step(struct adaptive *adaptive, int rows, double us);
/* Are there any such steps? */
int adaptive_is_warm(const struct adaptive *adaptive);
void adaptive_add_round(struct adaptive *adaptive, const struct adaptive_round *round);
/* Of a proposal of `drafted` tokens the first `accepted` stood. */
void adaptive_add_verdict(struct adaptive *adaptive, int drafted, int accepted);
/* The draft length for the next round of `sequences` sequences. 0: nothing is asked of drafters. */
int adaptive_choose(struct adaptive *adaptive, int sequences);
/* Expected tokens per microsecond of a round of `sequences` sequences; 0: not known. */
double adaptive_rate(const struct adaptive *adaptive, int sequences, int draft_length);
/* Did drafts that were asked for cost time, over all rounds with them? Gives tokens by second with them, and what they were without, as expected.
 * 0 where too few rounds say so, or the difference is small. */
int adaptive_drafts_cost(const struct adaptive *adaptive, double *with, double *without);
/* Expected tokens of a round where each draft stands with the same probability: equation 1. */
double adaptive_expected_tokens(double alpha, int draft_length);

#endif
