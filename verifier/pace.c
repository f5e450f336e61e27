#include "verifier/pace.h"

#define STEP_DECAY 0.98
#define DRAFT_DECAY 0.9 /* few come while drafting seems not to pay: an early hiccup must fade */
#define VERDICT_DECAY 0.995
#define OUTLIER 3.0
#define PRIOR_JUDGED 8.0
#define PRIOR_ALPHA 0.7

enum { PROBE_EVERY = 32 };

/* The line's two numbers. Points of one x alone say nothing of the slope: then 0 is returned. */
static int fit(const struct pace_line *line, double *fixed, double *slope)
{
    double spread = line->weight * line->xx - line->x * line->x;

    if (spread <= 1e-3 * line->x * line->x)
        return 0;
    *slope = (line->weight * line->xy - line->x * line->y) / spread;
    if (*slope < 0)
        *slope = 0;
    *fixed = (line->y - *slope * line->x) / line->weight;
    if (*fixed < 0)
        *fixed = 0;
    return 1;
}

/* A point far above the line is a hiccup of the machine, and counts as no more than OUTLIER times what was expected. */
static void add(struct pace_line *line, double decay, double x, double y)
{
    double fixed, slope;

    if (fit(line, &fixed, &slope) && y > OUTLIER * (fixed + slope * x))
        y = OUTLIER * (fixed + slope * x);
    line->weight = decay * line->weight + 1;
    line->x = decay * line->x + x;
    line->y = decay * line->y + y;
    line->xx = decay * line->xx + x * x;
    line->xy = decay * line->xy + x * y;
}

void pace_add_step(struct pace *pace, int rows, double us)
{
    add(&pace->step, STEP_DECAY, rows, us);
}

void pace_add_draft(struct pace *pace, int count, double us)
{
    if (count > 0)
        add(&pace->draft, DRAFT_DECAY, count, us);
}

void pace_add_verdict(struct pace *pace, int judged, int stood)
{
    pace->judged = VERDICT_DECAY * pace->judged + judged;
    pace->stood = VERDICT_DECAY * pace->stood + stood;
}

double pace_expected_tokens(double alpha, int draft_length)
{
    double sum = 1, power = 1;

    for (int i = 0; i < draft_length; i++)
        sum += power *= alpha;
    return sum;
}

int pace_choose(struct pace *pace, int sequences)
{
    static const int first[] = {4, 2, 6, 3, 5, 1, 4, 2, 6, 3, 5, 4};
    enum { FIRST = sizeof first / sizeof *first };
    double alpha = (pace->stood + PRIOR_ALPHA * PRIOR_JUDGED) / (pace->judged + PRIOR_JUDGED), best_rate = 0;
    double step, row, wire, token;
    int best = 0;

    pace->choices++;
    if (pace->choices <= FIRST)
        return first[pace->choices - 1];
    if (!fit(&pace->step, &step, &row) || !fit(&pace->draft, &wire, &token))
        return pace->choices % 2 == 0 ? PACE_START : PACE_START - 1; /* two lengths make a line */
    for (int k = 0; k <= PACE_MOST; k++) {
        double us = step + row * sequences * (k + 1) + (k > 0 ? wire + k * token : 0);
        double rate = pace_expected_tokens(alpha, k) / us;

        if (rate > best_rate) {
            best_rate = rate;
            best = k;
        }
    }
    /* Two rounds at a time: in the first one drafters catch up. */
    if (best == 0 && pace->choices % PROBE_EVERY < 2)
        return pace->choices / PROBE_EVERY % 2 == 0 ? PACE_START : 2;
    return best;
}
