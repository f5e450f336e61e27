#include "verifier/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ENOUGH 0.02 /* of spread */
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
    double middle = median(speed, count), far[COMPARISON_MOST];

    for (int i = 0; i < count; i++)
        far[i] = fabs(speed[i] - middle);
    *spread = middle > 0 ? median(far, count) / middle : 0;
    return middle;
}

int comparison_is_enough(const struct comparison *comparison, double seconds)
{
    int passes = comparison->passes;
    double solo, drafted;

    if (passes == COMPARISON_MOST || (passes > 0 && seconds * (passes + 1) / passes > WAIT_S))
        return 1;
    comparison_median(comparison->solo, passes, &solo);
    comparison_median(comparison->drafted, passes, &drafted);
    return passes >= COMPARISON_LEAST && solo <= ENOUGH && drafted <= ENOUGH;
}
