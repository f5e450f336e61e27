/* A mean over the tokens of several texts, with its error. Tokens of one text depend on each other, so texts are what is counted: the error is that
 * of a ratio of two sums over clusters (Cochran 1977, chapter 9). Plain data; pure. */
#ifndef TANDEM_LAUNCH_BENCH_ALPHA_SHARE_H
#define TANDEM_LAUNCH_BENCH_ALPHA_SHARE_H

struct share {
    double sum, weight;                        /* over all texts */
    double sum_sum, sum_weight, weight_weight; /* of the texts' products */
    int texts;
};

/* A text's sum, of so many tokens or of another weight; one without weight says nothing. */
void share_add(struct share *share, double sum, double weight);
/* NaN where nothing was added. */
double share_mean(const struct share *share);
/* The standard error; NaN of fewer than two texts. */
double share_error(const struct share *share);

#endif
