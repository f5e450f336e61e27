#include "tests/support/e4m3.h"

#include <math.h>

enum { NOT_A_NUMBER = 0x7f };

float e4m3_wide(uint8_t byte)
{
    int exponent = byte >> 3 & 15, fraction = byte & 7;
    double size = exponent == 0 ? ldexp(fraction, -9) : ldexp(8 + fraction, exponent - 10);

    if ((byte & 0x7f) == NOT_A_NUMBER)
        size = (double)NAN;
    return (float)(byte < 0x80 ? size : -size);
}

uint8_t e4m3_nearest(float value)
{
    int nearest = 0, sign = signbit(value) ? 0x80 : 0;
    double size = fabs((double)value), best = size;

    if (isnan(value))
        return (uint8_t)(sign | NOT_A_NUMBER);
    for (int code = 1; code < NOT_A_NUMBER; code++) {
        double away = fabs((double)e4m3_wide((uint8_t)code) - size);

        if (away < best || (away == best && code % 2 == 0)) {
            best = away;
            nearest = code;
        }
    }
    return (uint8_t)(sign | (isinf(value) ? NOT_A_NUMBER - 1 : nearest));
}
