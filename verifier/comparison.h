/* Speeds of passes over the same prompts, with drafts and without, in turns: medians, how far they spread, and whether there are enough of them. Pure. */
#ifndef TANDEM_VERIFIER_COMPARISON_H
#define TANDEM_VERIFIER_COMPARISON_H

enum { COMPARISON_LEAST = 3, COMPARISON_MOST = 9 };

struct comparison {
    int passes; /* of each way */
    double solo[COMPARISON_MOST], drafted[COMPARISON_MOST]; /* tokens per second */
};

/* Adds a pass of each way; no more than COMPARISON_MOST. */
void comparison_add(struct comparison *comparison, double solo, double drafted);
/* Are both medians known well, or would another pass of each, after `seconds` for all so far, take longer than somebody waits? */
int comparison_is_enough(const struct comparison *comparison, double seconds);
/* The median of `count` speeds, at most COMPARISON_MOST, and its spread: the median distance from it, as a share. */
double comparison_median(const double *speed, int count, double *spread);

#endif
