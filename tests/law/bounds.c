#include "tests/law/bounds.h"

#include <math.h>

double bounds_g(int df)
{
    double low = df, high = 100.0 * df + 1000;

    for (int i = 0; i < 100; i++) {
        double x = (low + high) / 2;

        if (-x + df * (1 + log(x / df)) > log(BOUNDS_ALARM))
            low = x;
        else
            high = x;
    }
    return 2 * high;
}

double bounds_cell(int cells)
{
    return log(2.0 * cells / BOUNDS_ALARM);
}

double bounds_noncentrality(int df)
{
    double low = 0, high = 1e6, bar = bounds_g(df);

    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;

        if (df + middle - 3.0902 * sqrt(2 * (df + 2 * middle)) < bar)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double bounds_mean(double width, double n)
{
    return width * sqrt(log(2 / BOUNDS_ALARM) / (2 * n));
}
