#include "common/base/bounds.h"

#include <math.h>

enum { HALVINGS = 100 };
#define ROUNDING 1e-9 /* smaller divergences and masses are rounding errors */
#define NORMAL_0_999 3.0902

static double term(double observed, double expected)
{
    return observed > 0 ? observed * log(observed / expected) : 0;
}

struct bounds_fit bounds_compare(const int64_t *counts, const double *expected, int cells)
{
    struct bounds_fit fit = {.df = -1};
    double n = 0;

    for (int i = 0; i < cells; i++)
        n += (double)counts[i];
    for (int i = 0; i < cells; i++) {
        double o = (double)counts[i], e = n * expected[i];

        if (expected[i] <= 0) {
            fit.impossible += counts[i] > 0;
            continue;
        }
        fit.df++;
        fit.g += 2 * term(o, e);
        fit.cell = fmax(fit.cell, term(o, e) + term(n - o, n - e));
    }
    return fit;
}

double bounds_divergence(const double *from, const double *to, int cells)
{
    double sum = 0;

    for (int i = 0; i < cells; i++)
        if (from[i] > 0)
            sum += to[i] > 0 ? from[i] * log(from[i] / to[i]) : INFINITY;
    return sum;
}

double bounds_log_p(double g, int df)
{
    double x = g / 2;

    if (df < 1)
        return 0;
    return x > df ? -x + df * (1 + log(x / df)) : 0;
}

double bounds_g(int df, double alarm)
{
    double low = df, high = 100.0 * df + 1000;

    if (df < 1)
        return 0;
    for (int i = 0; i < HALVINGS; i++) {
        double x = (low + high) / 2;

        if (bounds_log_p(2 * x, df) > log(alarm))
            low = x;
        else
            high = x;
    }
    return 2 * high;
}

double bounds_cell(int df, double alarm)
{
    return log(2.0 * (df + 1) / alarm);
}

double bounds_noncentrality(int df, double alarm)
{
    double low = 0, high = 1e6, bar = bounds_g(df, alarm);

    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;

        if (df + middle - NORMAL_0_999 * sqrt(2 * (df + 2 * middle)) < bar)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double bounds_samples(const double *wrong, const double *expected, int cells, double alarm)
{
    double possible = 0, impossible = 0, kl = 0, by_cell, by_g;
    int df = -1;

    for (int i = 0; i < cells; i++) {
        possible += expected[i] > 0 ? wrong[i] : 0;
        impossible += expected[i] > 0 ? 0 : wrong[i];
        df += expected[i] > 0;
    }
    for (int i = 0; i < cells; i++)
        kl += expected[i] > 0 ? term(wrong[i] / possible, expected[i]) : 0;
    by_cell = impossible > ROUNDING ? 2 * log(1000) / impossible : INFINITY;
    by_g = kl > ROUNDING ? bounds_noncentrality(df, alarm) / kl : INFINITY; /* the noncentrality is 2 N KL */
    return fmin(by_cell, by_g);
}

double bounds_variation(int df, double alarm, double samples)
{
    return fmin(1, sqrt(bounds_noncentrality(df, alarm) / (4 * samples)));
}

double bounds_mean(double width, double n, double alarm)
{
    return width * sqrt(log(2 / alarm) / (2 * n));
}

double bounds_mean_found(double width, double n, double alarm)
{
    return bounds_mean(width, n, alarm) + NORMAL_0_999 * width / 2 / sqrt(n); /* no value in [0, width] spreads more than half of it */
}

double bounds_martingale(double variance, double expected_variance, double alarm)
{
    /* exp(rate S - (e^rate - 1 - rate) V) is a supermartingale for every fixed rate; this one is the best for the expected variance. */
    double rate = fmin(1, sqrt(2 * log(2 / alarm) / expected_variance));

    return (log(2 / alarm) + (expm1(rate) - rate) * variance) / rate;
}
