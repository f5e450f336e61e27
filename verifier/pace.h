/* Pace chooses how many tokens to draft, from what was measured in this run: a step of r rows takes a + b r, a proposal of K tokens takes w + K d from
 * request to arrival, and a draft stands with probability alpha. With S sequences the rate S E(K) / (a + b S (K + 1) + w + K d), where E(K) is the
 * expected number of tokens of a round (Leviathan et al. 2023, equation 1), is largest at the K to use; it may be 0.
 *
 * Only sequences whose output cannot depend on K are paced (greedy and coupled): under rejection sampling another K is another, equally
 * lawful, text, and the same seed should give the same text. Pure: times come in as numbers. */
#ifndef TANDEM_VERIFIER_PACE_H
#define TANDEM_VERIFIER_PACE_H

enum { PACE_MOST = 12, PACE_START = 4 };

/* A line y = fixed + slope x by least squares over the recent past: decayed sums. */
struct pace_line {
    double weight, x, y, xx, xy;
    double slope; /* of the last fit */
    int fitted;
};

struct pace {
    struct pace_line step;  /* microseconds by rows */
    struct pace_line draft; /* microseconds by drafted tokens */
    double judged, stood;   /* decayed counts */
    int choices;
    int rest;         /* rounds without drafts between two probes */
    int rounds_alone; /* since the last probe, itself included */
    int probes;
};

/* A verified step of `rows` rows took `us`. */
void pace_add_step(struct pace *pace, int rows, double us);
/* A proposal of `count` tokens took `us` from request to arrival. */
void pace_add_draft(struct pace *pace, int count, double us);
/* Of `judged` drafts `stood` stood. */
void pace_add_verdict(struct pace *pace, int judged, int stood);
/* The draft length for the next round of `sequences` sequences. The first choices differ on purpose, so that the line above can be
 * fitted; later a choice of 0 is now and then replaced, so that what is known of drafting stays fresh. */
int pace_choose(struct pace *pace, int sequences);
/* Expected tokens of a round: equation 1. */
double pace_expected_tokens(double alpha, int draft_length);

#endif
