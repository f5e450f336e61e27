#include "verifier/job/comparison.h"

#include "common/base/median.h"
#include <math.h>
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

double comparison_median(const double *speed, int count, double *spread)
{
    double sorted[COMPARISON_MOST] = {0}, middle;

    memcpy(sorted, speed, (size_t)count * sizeof *sorted);
    median_sort(sorted, count);
    middle = median_of_sorted(sorted, count);
    for (int i = 0; i < count; i++)
        sorted[i] = fabs(sorted[i] - middle);
    median_sort(sorted, count);
    *spread = middle > 0 ? median_of_sorted(sorted, count) / middle : 0;
    return middle;
}

int comparison_middle(const double *speed, int count)
{
    double spread, median = comparison_median(speed, count, &spread);
    int middle = 0;

    for (int i = 1; i < count; i++)
        if (fabs(speed[i] - median) < fabs(speed[middle] - median))
            middle = i;
    return middle;
}

double comparison_speedup(const struct comparison *comparison, double *error)
{
    double ratio[COMPARISON_MOST] = {0}, middle;
    int passes = comparison->passes;

    *error = 0;
    if (passes <= 0)
        return 0;
    for (int i = 0; i < passes; i++)
        ratio[i] = comparison->solo[i] > 0 ? comparison->drafted[i] / comparison->solo[i] : 0;
    median_sort(ratio, passes);
    middle = median_of_sorted(ratio, passes);
    *error = middle > 0 ? median_error_of_sorted(ratio, passes) / middle : 0;
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
