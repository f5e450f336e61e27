#include "verifier/pace.h"

#define STEP_DECAY 0.98
#define DRAFT_DECAY 0.9 /* few come while drafting seems not to pay: an early hiccup must fade */
#define VERDICT_DECAY 0.995
#define OUTLIER 3.0
#define PRIOR_JUDGED 8.0
#define PRIOR_ALPHA 0.7

enum { PROBE_FIRST_REST = 32, PROBE_LONGEST_REST = 2048, PROBE_ROUNDS = 2 /* in the first one drafters catch up */ };

/* The line's two numbers. Points of one x alone say nothing of the slope: then the last known one counts, and where there is none 0 is
 * returned. */
static int fit(struct pace_line *line, double *fixed, double *slope)
{
    double spread = line->weight * line->xx - line->x * line->x;

    if (spread > 1e-3 * line->x * line->x) {
        line->slope = (line->weight * line->xy - line->x * line->y) / spread;
        line->slope = line->slope > 0 ? line->slope : 0;
        line->fitted = 1;
    }
    if (!line->fitted)
        return 0;
    *slope = line->slope;
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

/* Where drafting seems not to pay, a probe now and then keeps what is known of it fresh. It costs more than a round without, because the
 * drafter must catch up, so each one that changes nothing doubles the rest until the next. */
static int probe(struct pace *pace)
{
    int length = pace->probes % 2 == 0 ? PACE_START : 2;

    if (++pace->rounds_alone <= pace->rest)
        return 0;
    if (pace->rounds_alone == pace->rest + PROBE_ROUNDS) {
        pace->rest = pace->rest < PROBE_LONGEST_REST ? 2 * pace->rest : PROBE_LONGEST_REST;
        pace->rounds_alone = 0;
        pace->probes++;
    }
    return length;
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
    if (best == 0 && pace->rest > 0)
        return probe(pace);
    pace->rest = PROBE_FIRST_REST;
    pace->rounds_alone = 0;
    return best;
}
