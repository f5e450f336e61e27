/* Prefill decides how many rows of prompts a step takes beside the rows of the running sequences. Without running sequences it is as many as
 * the backend likes. With them, a long prompt that comes in makes their steps longer by less than a quarter on the average, however long it is:
 * what a row of a prompt costs is measured as it grows with the places before it, and each step earns what a fifth of it buys. Of several
 * prompts, fewer than run, each has that much. Up to a burst may be read on credit, so that a short prompt is read at once. Where several
 * prompts wait and no fewer than run, reading comes first and there is no such bound, until one is left: a step over more sequences costs
 * little more than over few, so the job as a whole is done sooner. Pure: times come in as numbers. */
#ifndef TANDEM_VERIFIER_ROUND_PREFILL_H
#define TANDEM_VERIFIER_ROUND_PREFILL_H

enum { PREFILL_BURST = 64 }; /* rows on credit */

struct prefill {
    int chunk;       /* --prefill-chunk: so many rows in each step; 0: chosen as above */
    int runners;     /* sequences of the step that alone_us is of */
    double alone_us; /* what it takes without a row of a prompt; 0: not known yet */
    double added_us, added_rows; /* decayed sums: what such rows added to steps, and how many they were */
    double credit;   /* rows that were read on credit, less what was earned since */
    int since;       /* steps with such rows since alone_us was measured */
};

/* Rows of prompts for the next step, at most `most`: `readers` prompts are unread, `runners` sequences take part in the step. 0, with readers, where the
 * step is to show what the runners take alone. */
int prefill_rows(struct prefill *prefill, int readers, int runners, int most);
/* A step of `runners` sequences with `rows` rows of prompts took `us`. */
void prefill_add_step(struct prefill *prefill, int runners, int rows, double us);
/* Shares `rows` among prompts: half to the oldest, so that none waits for ever, the rest to those that lack least, so that a short one does not wait for a
 * long one. left: [count] tokens that each lacks, the oldest first  share: [count] */
void prefill_share(const int *left, int count, int rows, int *share);

#endif
