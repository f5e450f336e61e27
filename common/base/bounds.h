/* How far counts of independent samples may lie from the distribution that they are said to follow, and how large an error they are sure to show.
 * Every bound is proven: it holds for every number of samples and every distribution, without the chi-square or the normal approximation, so a caller
 * may state its chance of a false alarm. Owns nothing; pure. */
#ifndef TANDEM_COMMON_BASE_BOUNDS_H
#define TANDEM_COMMON_BASE_BOUNDS_H

#include <stdint.h>

struct bounds_fit {
    int impossible; /* cells of expected 0 that were hit */
    int df;         /* cells of expected above 0, less one */
    double g;       /* 2 sum O ln(O / NE) */
    double cell;    /* the largest N KL(O/N || E) of one cell against all others */
};

/* Compares counts with the distribution.  counts: [cells]  expected: [cells], sums to 1 */
struct bounds_fit bounds_compare(const int64_t *counts, const double *expected, int cells);
/* KL(from || to); infinite where `to` is 0 and `from` is not.  [cells] */
double bounds_divergence(const double *from, const double *to, int cells);

/* Log of the bound on the probability of a fit.g at least this large: log of e^-x (e x / df)^df with x = g / 2; 0 up to g = 2 df. The moments
 * of independent tables multiply (E[exp(t N KL)] <= (1 - t)^-df each), so it holds for their sum with the sum of their df. */
double bounds_log_p(double g, int df);
/* fit.g is below this but for a chance of `alarm`: 2x with e^-x (e x / df)^df = alarm (Agrawal 2020, arXiv 1904.02291). */
double bounds_g(int df, double alarm);
/* fit.cell is below this but for `alarm`: Chernoff and Hoeffding for each of df + 1 cells. */
double bounds_cell(int df, double alarm);
/* The noncentrality 2 N KL(wrong || expected) at which fit.g is above bounds_g with probability 0.999: G is about normal there, with mean df
 * + it and variance 2 (df + 2 it). */
double bounds_noncentrality(int df, double alarm);
/* The total variation over the cells from which a wrong distribution is found with probability 0.999: by Pinsker's inequality its KL is at least 2
 * TV^2, whatever its shape. For a sum over tables it is their mean, and `samples` all of them. */
double bounds_variation(int df, double alarm, double samples);

/* Samples at which `wrong` is found with twice what a chance of 0.999 needs, by G or by a cell that `expected` says is impossible; infinite where
 * they differ by rounding alone.  wrong, expected: [cells] */
double bounds_samples(const double *wrong, const double *expected, int cells, double alarm);

/* |mean - expected| of n independent values in [0, width] is below this but for `alarm` (Hoeffding 1963). */
double bounds_mean(double width, double n, double alarm);
/* The difference of means at which |mean - expected| is above that with probability 0.999. */
double bounds_mean_found(double width, double n, double alarm);
/* |sum| of martingale differences in [-1, 1] whose conditional variances sum to `variance` is below this but for `alarm` (Freedman 1975).
 * expected_variance must not depend on the samples; it is sharpest where it is about right. */
double bounds_martingale(double variance, double expected_variance, double alarm);

#endif
