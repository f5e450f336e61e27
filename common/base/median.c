#include "common/base/median.h"

#include <math.h>
#include <stdlib.h>

static int order(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;

    return (first > second) - (first < second);
}

void median_sort(double *value, int count)
{
    if (count > 0)
        qsort(value, (size_t)count, sizeof *value, order);
}

double median_of_sorted(const double *value, int count)
{
    return count <= 0 ? 0 : (value[(count - 1) / 2] + value[count / 2]) / 2;
}

double median_error_of_sorted(const double *value, int count)
{
    int low = (int)fmax(0, (count - 1 - sqrt(count)) / 2);

    if (count <= 1)
        return count == 1 ? fabs(value[0]) : 0;
    return (value[count - 1 - low] - value[low]) / 2;
}
