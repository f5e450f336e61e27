/* Bounds of the joint test that hold for every N and every law, without the chi-square approximation (Agrawal 2020, arXiv 1904.02291;
 * Hoeffding 1963), and the power that is left behind them. */
#ifndef TANDEM_TESTS_LAW_BOUNDS_H
#define TANDEM_TESTS_LAW_BOUNDS_H

/* Under a sanitizer the tests look for other faults: few requests do, and power is shown by the plain build. The bounds hold for every N. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { BOUNDS_SANITIZED = 1 };
#else
enum { BOUNDS_SANITIZED = 0 };
#endif

/* Chance of a false alarm: 1e-9 over 64 configurations of 3 statistics. */
#define BOUNDS_ALARM 5.2e-12

/* G = 2 sum O ln(O / NE) over df + 1 cells is below this but for BOUNDS_ALARM: 2x with e^-x (e x / df)^df = BOUNDS_ALARM. */
double bounds_g(int df);
/* N KL(O/N || E) of each of `cells` cells is below this but for BOUNDS_ALARM. */
double bounds_cell(int cells);
/* The noncentrality 2 N KL at which G is above bounds_g with probability 0.999: G is about normal with mean df + it and variance
 * 2 (df + 2 it). */
double bounds_noncentrality(int df);
/* |mean - expected| of n independent values in [0, width] is below this but for BOUNDS_ALARM. */
double bounds_mean(double width, double n);

#endif
