#include "verifier/job/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ENOUGH 0.01 /* of standard error */
#define WAIT_S 10.0 /* for all passes together */

void comparison_add(struct comparison *comparison, double solo, double drafted)
{
    if (comparison->passes == COMPARISON_MOST)
        return;
    comparison->solo[comparison->passes] = solo;
    comparison->drafted[comparison->passes++] = drafted;
}

static int order(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;

    return (first > second) - (first < second);
}

static double median(const double *values, int count)
{
    double sorted[COMPARISON_MOST];

    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, order);
    return count == 0 ? 0 : (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

double comparison_median(const double *speed, int count, double *spread)
{
    double middle = median(speed, count), far[COMPARISON_MOST] = {0};

    for (int i = 0; i < count; i++)
        far[i] = fabs(speed[i] - middle);
    *spread = middle > 0 ? median(far, count) / middle : 0;
    return middle;
}

/* The standard error of the median: it lies within about sqrt(passes) / 2 places of the true one among the sorted values, whatever their
 * distribution, and some pairs are far off where others use the machine. Rounded so that few passes are not trusted too much. */
double comparison_speedup(const struct comparison *comparison, double *error)
{
    double ratio[COMPARISON_MOST] = {0}, middle;
    int passes = comparison->passes, low = (int)fmax(0, (passes - 1 - sqrt(passes)) / 2);

    *error = 0;
    if (passes <= 0)
        return 0;
    for (int i = 0; i < passes; i++)
        ratio[i] = comparison->solo[i] > 0 ? comparison->drafted[i] / comparison->solo[i] : 0;
    middle = median(ratio, passes);
    qsort(ratio, (size_t)passes, sizeof *ratio, order);
    *error = middle > 0 ? (ratio[passes - 1 - low] - ratio[low]) / 2 / middle : 0;
    return middle;
}

int comparison_is_settled(const struct comparison *comparison)
{
    double error;

    comparison_speedup(comparison, &error);
    return comparison->passes >= COMPARISON_LEAST && error <= ENOUGH;
}

int comparison_is_enough(const struct comparison *comparison, double seconds)
{
    int passes = comparison->passes;

    if (passes == COMPARISON_MOST || (passes > 0 && seconds * (passes + 1) / passes > WAIT_S))
        return 1;
    return comparison_is_settled(comparison);
}
