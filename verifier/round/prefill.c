#include "verifier/round/prefill.h"

#define GROWTH 0.14     /* share of a step that one prompt may add; bursts, noise, and keys pushed out of the caches leave it below a quarter */
#define STEP_WEIGHT 0.1 /* weight of the newest step without prompt rows */
#define ROWS_DECAY 0.99 /* decay of older steps with prompt rows, and */
#define ROWS_KEPT 1024.0 /* by their rows: a later row of a prompt attends to more places, so the cost of earlier rows says little about it */
#define OUTLIER 2.0     /* a time beyond so many times the expected one is an outlier */
#define CHEAPEST 1e-4   /* lower bound for the cost of a row, in steps: noise may say less than 0 */
#define OLD_SHARE 0.5   /* of the measures before a long rest */
#define GUESS 1.0       /* rows that a step earns before their cost is known */
enum { LOOK_AGAIN = 64, TELLING_ROWS = 16 }; /* steps with prompt rows between two without; rows that a step needs to tell the cost of one */
enum { LONGEST_REST = 256 }; /* steps without a row; then one tells anew what it costs: a measure that was far too high would forbid the next */
enum { SAVED_ROWS = 16 }; /* fewer are saved up: a lone row reads all keys of its prompt, and pushes those of who runs out of the caches */

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double most_of(double a, double b)
{
    return a > b ? a : b;
}

static int is_known(const struct prefill *prefill, int runners)
{
    return prefill->alone_us > 0 && prefill->runners == runners;
}

/* Prompt rows that a step earns: those that take GROWTH of its time. */
static double earned_by_step(const struct prefill *prefill)
{
    if (prefill->alone_us == 0 || prefill->added_rows == 0)
        return GUESS;
    return GROWTH * prefill->alone_us / most_of(prefill->added_us / prefill->added_rows, CHEAPEST * prefill->alone_us);
}

int prefill_rows(struct prefill *prefill, int readers, int runners, int most)
{
    double earned = earned_by_step(prefill);
    int rows;

    if (prefill->chunk > 0)
        return readers == 0 ? 0 : prefill->chunk < most ? prefill->chunk : most;
    if (runners == 0)
        return readers == 0 ? 0 : most;
    if (readers > 1)
        earned *= readers;
    prefill->credit = most_of(prefill->credit - earned, 0);
    if (readers == 0)
        return 0;
    if (readers > 1 && readers >= runners)
        return most;
    if ((!is_known(prefill, runners) || prefill->since >= LOOK_AGAIN) && prefill->credit > PREFILL_BURST / 2)
        return 0;
    rows = (int)most_of(most_of(PREFILL_BURST, earned) - prefill->credit, 0);
    if (rows < SAVED_ROWS && rows < most && earned < SAVED_ROWS)
        return prefill->rested < LONGEST_REST ? 0 : 1;
    return rows < most ? rows : most;
}

/* A step without prompt rows. */
static void measure_alone(struct prefill *prefill, int runners, double us)
{
    double *mean = &prefill->alone_us;

    *mean = is_known(prefill, runners) ? *mean + STEP_WEIGHT * (least(us, OUTLIER * *mean) - *mean) : us;
    prefill->runners = runners;
    prefill->since = 0;
}

/* What prompt rows added to a step. By noise it may be negative, so sums over many steps are kept. */
static void measure_rows(struct prefill *prefill, int rows, double us)
{
    double row_us = prefill->added_rows > 0 ? most_of(prefill->added_us / prefill->added_rows, 0) : us;
    double kept = least(ROWS_DECAY, most_of(1 - rows / ROWS_KEPT, 0));

    us = least(us, OUTLIER * (prefill->alone_us + rows * row_us)) - prefill->alone_us;
    prefill->added_us = kept * prefill->added_us + us;
    prefill->added_rows = kept * prefill->added_rows + rows;
}

void prefill_add_step(struct prefill *prefill, int runners, int rows, double us)
{
    if (rows == 0) {
        measure_alone(prefill, runners, us);
        prefill->rested++;
        return;
    }
    if (prefill->rested >= LONGEST_REST) { /* what was measured before may be wrong */
        prefill->added_us *= OLD_SHARE;
        prefill->added_rows *= OLD_SHARE;
    }
    prefill->rested = 0;
    if (runners == 0) {
        if (prefill->alone_us == 0 && (rows >= TELLING_ROWS || prefill->added_rows == 0)) { /* until there is a step to compare with */
            prefill->added_us = us;
            prefill->added_rows = rows;
        }
        return;
    }
    prefill->since++;
    prefill->credit = least(prefill->credit + rows, most_of(PREFILL_BURST, earned_by_step(prefill)));
    if (is_known(prefill, runners))
        measure_rows(prefill, rows, us);
}

void prefill_share(const int *left, int count, int rows, int *share)
{
    int oldest = (rows + 1) / 2;

    for (int i = 0; i < count; i++)
        share[i] = i > 0 ? 0 : oldest < left[0] ? oldest : left[0];
    for (rows -= count > 0 ? share[0] : 0; rows > 0;) {
        int shortest = -1, more;

        for (int i = 0; i < count; i++)
            if (share[i] < left[i] && (shortest < 0 || left[i] - share[i] < left[shortest] - share[shortest]))
                shortest = i;
        if (shortest < 0)
            return;
        more = left[shortest] - share[shortest];
        more = more < rows ? more : rows;
        share[shortest] += more;
        rows -= more;
    }
}
