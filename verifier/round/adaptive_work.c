#include "verifier/round/adaptive_work.h"

#include <math.h>

#define OUTLIER 2.0
#define HICCUP 1.25
#define SPEED_SHARE (1.0 / 16) /* weight of the newest round in a kind's scale */
#define LOOK_SHARE  0.5        /* weight of the median of a look */
#define CHANGED 1.3            /* a look off by more than this factor replaces the scale: the machine's speed has changed */

enum {
    GAP_ROUNDS = 64,
    SURE_ROUNDS = 4 /* rounds after which a speed is known well enough to recognise an outlier */
};

/* The table's knots: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ... */
int adaptive_work_knot_rows(int knot)
{
    return knot < 3 ? knot + 1 : (4 + (knot - 3) % 4) << ((knot - 3) / 4);
}

int adaptive_work_knot(int rows)
{
    int knot = 0;

    while (knot + 1 < ADAPTIVE_KNOTS && 2 * rows > adaptive_work_knot_rows(knot) + adaptive_work_knot_rows(knot + 1))
        knot++;
    return knot;
}

int adaptive_work_warm_up_rows(int i)
{
    return i == 0 ? 1 : (2 + (i - 1) % 2) << ((i - 1) / 2);
}

/* Interpolates between the two known knots around `rows`, or extrapolates from the last two; 0: fewer than two are known. */
static double shape_of(const double *shape /* [ADAPTIVE_KNOTS] */, int rows)
{
    int low = -1, high = -1;
    double at;

    for (int i = 0; i < ADAPTIVE_KNOTS && (high < 0 || low < 0 || adaptive_work_knot_rows(high) < rows); i++)
        if (shape[i] > 0) {
            low = high;
            high = i;
        }
    if (low < 0)
        return 0;
    at = shape[low] +
         (shape[high] - shape[low]) * (rows - adaptive_work_knot_rows(low)) / (double)(adaptive_work_knot_rows(high) - adaptive_work_knot_rows(low));
    return at > shape[low] / 2 ? at : shape[low] / 2;
}

/* The scale of this kind of round, or of the other kind where this one has not been measured. */
static double scale_of(const struct adaptive_work *work, int drafted)
{
    const struct adaptive_speed *speed = &work->speed[work->speed[drafted].rounds > 0 ? drafted : !drafted];

    return speed->rounds > 0 ? speed->scale : 1;
}

double adaptive_work_us(const struct adaptive_work *work, int rows, int drafted)
{
    return shape_of(work->shape, rows) * scale_of(work, drafted);
}

double adaptive_work_alone(const struct adaptive_work *work, int rows)
{
    return shape_of(work->step, rows);
}

void adaptive_work_add_step(struct adaptive_work *work, int rows, double us)
{
    int knot = adaptive_work_knot(rows);

    work->step[knot] = work->step[knot] > 0 ? fmin(work->step[knot], us) : us;
    if (work->shape[knot] == 0)
        work->shape[knot] = us;
    for (int i = 0; i <= knot; i++) { /* a step of as many rows or fewer cannot take longer: that time was an outlier */
        work->shape[i] = fmin(work->shape[i], us);
        work->step[i] = fmin(work->step[i], us);
    }
}

int adaptive_work_is_known(const struct adaptive_work *work)
{
    return work->shape[0] > 0;
}

/* By what both have timed; 0: nothing. An outlier is slow, so of several ratios the smallest is believed. */
static double slower_by(const struct adaptive_work *work, const struct adaptive_times *earlier)
{
    double by = 0;

    for (int i = 0; i < ADAPTIVE_KNOTS; i++)
        if (earlier->us[i] > 0 && work->step[i] > 0 && (by == 0 || work->step[i] / earlier->us[i] < by))
            by = work->step[i] / earlier->us[i];
    return by;
}

void adaptive_work_recall(struct adaptive_work *work, const struct adaptive_times *earlier)
{
    double by = slower_by(work, earlier), least = 0;

    for (int i = 0; i < ADAPTIVE_KNOTS; i++) {
        if (work->shape[i] == 0 && by * earlier->us[i] > least)
            work->shape[i] = by * earlier->us[i];
        least = fmax(least, work->shape[i]);
    }
}

int adaptive_work_leave(const struct adaptive_work *work, struct adaptive_times *times)
{
    double by = slower_by(work, times);

    if (work->step[0] == 0)
        return 0;
    for (int i = 0; i < ADAPTIVE_KNOTS; i++)
        times->us[i] = work->step[i] > 0 ? work->step[i] : by * times->us[i];
    return 1;
}

/* Measured over expected time. Outliers are always slow, never fast: the ratio is limited to HICCUP (OUTLIER while the speed is hardly known), and a
 * low ratio is taken as it is. */
static double ratio_of(const struct adaptive_speed *speed, double us, double expected)
{
    double most = speed->rounds >= SURE_ROUNDS ? HICCUP : OUTLIER;

    return us < most * expected ? us / expected : most;
}

/* `rounds` more rounds of a kind took `ratio` times what was expected: moves the kind's scale by `share` of the difference, or by all of it where
 * they took less than half. A kind without a scale starts from the other kind's. Returns the factor that the scale changed by. */
static double follow(struct adaptive_work *work, int drafted, int rounds, double ratio, double share)
{
    struct adaptive_speed *speed = &work->speed[drafted];
    double by = 1 + (OUTLIER * ratio < 1 ? 1 : share) * (ratio - 1);

    if (speed->rounds == 0)
        speed->scale = scale_of(work, drafted);
    speed->rounds += rounds;
    speed->scale *= by;
    return by;
}

double adaptive_work_add(struct adaptive_work *work, int rows, int drafted, int in_probe, double us)
{
    struct adaptive_speed *speed = &work->speed[drafted];
    int knot = adaptive_work_knot(rows), gap = work->rounds - work->last[knot];
    double expected = adaptive_work_us(work, rows, drafted), ratio = 1, of_speed, of_knot, by;

    if (expected > 0) {
        ratio = ratio_of(speed, us, expected);
        of_speed = fmax(1.0 / (speed->rounds + 1), SPEED_SHARE);
        of_knot = fmax(1.0 / (work->known[knot] + 2), gap < GAP_ROUNDS ? (double)gap / (2 * GAP_ROUNDS) : 0.5);
        if (work->shape[knot] == 0)
            work->shape[knot] = shape_of(work->shape, adaptive_work_knot_rows(knot));
        by = follow(work, drafted, 1, ratio, of_speed);
        if (!in_probe)
            work->speed[!drafted].scale *= by;
        work->shape[knot] *= 1 + (1 - of_speed) * of_knot * (ratio - 1);
        us = ratio * expected;
    } else {
        follow(work, drafted, 1, ratio, 0); /* nothing was expected yet: this is the table's first entry */
        work->shape[knot] = us / speed->scale;
    }
    work->known[knot]++;
    work->rows[drafted] = rows;
    work->last[knot] = ++work->rounds;
    return us;
}

static double median(const double *x)
{
    double low = fmin(x[0], x[1]), high = fmax(x[0], x[1]);

    return fmax(low, fmin(x[2], high));
}

void adaptive_work_look(struct adaptive_work *work, const double *looked)
{
    double ratio = median(looked);

    (void)follow(work, 0, ADAPTIVE_LOOK, ratio, ratio > CHANGED || CHANGED * ratio < 1 ? 1 : LOOK_SHARE);
}

struct adaptive_ratio adaptive_work_ratio(const struct adaptive_work *work)
{
    struct adaptive_ratio ratio = {.rows = {work->rows[0], work->rows[1]}};
    double without = ratio.rows[0] > 0 && ratio.rows[1] > 0 ? adaptive_work_us(work, ratio.rows[0], 0) : 0;

    ratio.of_time = without > 0 ? adaptive_work_us(work, ratio.rows[1], 1) / without : 0;
    return ratio;
}

void adaptive_work_expect_ratio(struct adaptive_work *work, const struct adaptive_ratio *ratio)
{
    double with = shape_of(work->shape, ratio->rows[1]);

    if (ratio->of_time <= 0 || with <= 0)
        return;
    work->speed[0] = (struct adaptive_speed){.scale = 1, .rounds = 1};
    work->speed[1] = (struct adaptive_speed){.scale = ratio->of_time * shape_of(work->shape, ratio->rows[0]) / with, .rounds = 1};
}

void adaptive_work_doubt(struct adaptive_work *work, int drafted)
{
    struct adaptive_speed *speed = &work->speed[drafted];

    speed->rounds = speed->rounds < SURE_ROUNDS ? speed->rounds : SURE_ROUNDS;
}
