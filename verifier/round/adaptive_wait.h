/* How long rounds wait for drafts, by draft length. It owns a mean for each length that was measured. Where a drafter runs ahead the wait is no line:
 * it begins at the length whose drafting takes as long as verifying, and is nothing in one round and all of an answer in the next: both are usual.
 * Never reads a clock: times come in as numbers. */
#ifndef TANDEM_VERIFIER_ROUND_ADAPTIVE_WAIT_H
#define TANDEM_VERIFIER_ROUND_ADAPTIVE_WAIT_H

enum { ADAPTIVE_MOST = 12 };

struct adaptive_wait {
    double us[ADAPTIVE_MOST + 1]; /* [length] decayed mean */
    int rounds[ADAPTIVE_MOST + 1]; /* [length] measured; 0: no mean */
};

/* What is taken for the wait where nothing was measured: `first` microseconds for a proposal and `each` for a draft. */
struct adaptive_wait_guess {
    double first, each;
};

/* A round with drafts of this length, 1 ..., waited for so long. answer_us: what an answer takes that was not drafted ahead, 0: not known. Returns
 * the time as it counts: an outlier counts for less. */
double adaptive_wait_add(struct adaptive_wait *wait, struct adaptive_wait_guess guess, int length, double us, double answer_us);
/* Microseconds that a round with drafts of this length, 0 ..., is expected to wait. */
double adaptive_wait_us(const struct adaptive_wait *wait, struct adaptive_wait_guess guess, int length);
/* The longest length that was measured; 0: none. */
int adaptive_wait_longest(const struct adaptive_wait *wait);

#endif
