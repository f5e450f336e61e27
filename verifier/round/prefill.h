/* Prefill decides how many rows of prompts a step takes beside the running sequences. It owns the measured cost of such rows. Without running
 * sequences it allows as many as the backend likes. With them, one prompt makes their steps longer by less than a quarter on the average, however
 * long it is: each step earns as many prompt rows as take a seventh of its time; a few are saved up before a step takes them, and up to a burst is
 * read on credit, so that a short prompt is read at once. Several prompts, fewer than run, have that much each; when more wait than run, reading
 * comes first without a bound: a step over more sequences costs little more than over few, so the job as a whole ends sooner. Only the lead's thread
 * may call. Never reads a clock, waits, sends or allocates: times come in as numbers. */
#ifndef TANDEM_VERIFIER_ROUND_PREFILL_H
#define TANDEM_VERIFIER_ROUND_PREFILL_H

enum { PREFILL_BURST = 64 }; /* rows on credit */

struct prefill {
    int chunk;       /* --prefill-chunk: so many prompt rows in each step; 0: chosen as above */
    int runners;     /* running sequences for which alone_us was measured */
    double alone_us; /* time of a step without prompt rows; 0: not known yet */
    double added_us, added_rows; /* decayed sums: the time that prompt rows added to steps, and the number of these rows */
    double credit;   /* rows read on credit, less those earned since */
    int rested;      /* steps since one with prompt rows */
    int since;       /* steps with prompt rows since alone_us was measured */
};

/* Prompt rows for the next step, at most `most`: `readers` prompts are unread, `runners` sequences take part in the step. May be 0 though there are
 * readers, so that the step shows what the runners take alone. */
int prefill_rows(struct prefill *prefill, int readers, int runners, int most);
/* Records that a step of `runners` sequences and `rows` prompt rows took `us`. */
void prefill_add_step(struct prefill *prefill, int runners, int rows, double us);
/* Shares `rows` among prompts: half to the oldest, so that none starves, the rest to those with the fewest tokens left, so that a short prompt does
 * not wait for a long one. left: [count] unread tokens of each, the oldest first  share: [count] */
void prefill_share(const int *left, int count, int rows, int *share);

#endif
