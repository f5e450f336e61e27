/* Speeds of passes over the same prompts, with drafts and without, in turns: medians, how far they spread, and whether there are enough of them.
 * Plain data of fixed size; pure. It looks at no clock and starts no pass. */
#ifndef TANDEM_VERIFIER_JOB_COMPARISON_H
#define TANDEM_VERIFIER_JOB_COMPARISON_H

enum { COMPARISON_LEAST = 3, COMPARISON_MOST = 400 };

struct comparison {
    int passes; /* of each way */
    double solo[COMPARISON_MOST], drafted[COMPARISON_MOST]; /* tokens per second */
};

/* Adds a pass of each way; no more than COMPARISON_MOST. */
void comparison_add(struct comparison *comparison, double solo, double drafted);
/* Is the speedup known well, or would another pass of each, after `seconds` for all so far, take longer than somebody waits? */
int comparison_is_enough(const struct comparison *comparison, double seconds);
/* Is its standard error 1 % or less? Fewer passes than COMPARISON_LEAST know of none. */
int comparison_is_settled(const struct comparison *comparison);
/* The median of `count` speeds, at most COMPARISON_MOST, and its spread: the median distance from it, as a share. */
double comparison_median(const double *speed, int count, double *spread);
/* The pass whose speed is nearest to the median of `count`, one at least: what it measured is what is told beside that speed. */
int comparison_middle(const double *speed, int count);
/* The median over pairs of neighbouring passes of how much faster the drafted one was, and its standard error, as a share of it. What slows a machine
 * down for a while slows both of a pair. */
double comparison_speedup(const struct comparison *comparison, double *error);

#endif
