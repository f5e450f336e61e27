#include "verifier/round/adaptive_wait.h"

#include <math.h>

#define SHARE   0.05 /* of the newest round in a mean: of few, one round would say too much where some wait and others do not */
#define OUTLIER 2.0  /* over what is expected and what an answer takes, or below the mean */

enum { SURE_ROUNDS = 4 }; /* after which a mean is no outlier's */

/* Longer drafts count as the longest here. */
static int within(int length)
{
    return length < ADAPTIVE_MOST ? length : ADAPTIVE_MOST;
}

/* The nearest measured length from `length` on in steps of `by`; -1: none. */
static int measured(const struct adaptive_wait *wait, int length, int by)
{
    for (; length >= 1 && length <= ADAPTIVE_MOST; length += by)
        if (wait->rounds[length] > 0)
            return length;
    return -1;
}

/* By the line through what was measured at two lengths; never falls with the length. */
static double on_line(const struct adaptive_wait *wait, int low, int high, int length)
{
    return wait->us[low] + fmax(wait->us[high] - wait->us[low], 0) * (length - low) / (high - low);
}

double adaptive_wait_us(const struct adaptive_wait *wait, struct adaptive_wait_guess guess, int length)
{
    int low = measured(wait, within(length), -1), high = measured(wait, within(length), 1), lower = measured(wait, low - 1, -1);

    if (length <= 0)
        return 0;
    if (low < 0 && high < 0)
        return guess.first + guess.each * length;
    if (low == high)
        return wait->us[low];
    if (low < 0)
        return fmax(wait->us[high] - guess.each * (high - length), 0);
    if (high > 0)
        return on_line(wait, low, high, length);
    return lower > 0 ? on_line(wait, lower, low, length) : wait->us[low] + guess.each * (length - low);
}

double adaptive_wait_add(struct adaptive_wait *wait, struct adaptive_wait_guess guess, int length, double us, double answer_us)
{
    double expected;

    length = within(length);
    expected = adaptive_wait_us(wait, guess, length);
    if (adaptive_wait_longest(wait) == 0)
        expected = us;
    us = fmin(us, OUTLIER * fmax(expected, answer_us));
    if (OUTLIER * us < wait->us[length] && wait->rounds[length] < SURE_ROUNDS) { /* the earlier ones were outliers */
        wait->rounds[length] = 0;
        expected = us;
    }
    wait->us[length] = expected + fmax(1.0 / (++wait->rounds[length] + 1), SHARE) * (us - expected);
    return us;
}

int adaptive_wait_longest(const struct adaptive_wait *wait)
{
    int longest = measured(wait, ADAPTIVE_MOST, -1);

    return longest > 0 ? longest : 0;
}
