/* Order statistics and lines. Spread is 1.4826 times the median absolute deviation, which is the standard deviation where values are normal and does
 * not see a single outlier. A list owns its values; the functions are pure. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_STATISTICS_H
#define TANDEM_LAUNCH_BENCH_REPORT_STATISTICS_H

#include "common/base/status.h"

/* Values that grow. All zero is empty. */
struct statistics {
    double *value;
    int count, room;
};

/* STATUS_INTERNAL without memory. */
enum status statistics_add(struct statistics *statistics, double value);
void statistics_release(struct statistics *statistics);
/* Sorts; the functions below ask for that. */
void statistics_sort(struct statistics *statistics);
/* The p-quantile, 0 <= p <= 1, between neighbours by their distance (numpy's default); 0 of nothing. */
double statistics_quantile(const struct statistics *statistics, double p);
double statistics_mean(const struct statistics *statistics);
/* The mean without the smallest and the largest fortieth, where other work of the machine shows. The values are sorted. */
double statistics_trimmed(const struct statistics *statistics);
/* The standard deviation, over n. */
double statistics_deviation(const struct statistics *statistics);
/* 1.4826 median of the distances to the median; 0 of nothing. */
double statistics_spread(const struct statistics *statistics);

/* The line of least squares through points, each with a weight. */
struct line {
    double weight, x, y, xx, xy;
};

void line_add(struct line *line, double x, double y, double weight);
/* Its value at x; the mean where the points have one x. */
double line_at(const struct line *line, double x);
double line_slope(const struct line *line);

#endif
