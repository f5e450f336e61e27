#include "verifier/pace.h"

#define WAIT_DECAY 0.9 /* few come while drafting seems not to pay: an early hiccup must fade */
#define OUTLIER 2.0
#define MACHINE_SHARE (1.0 / 16)
#define PRIOR_JUDGED 8.0
#define PRIOR_ALPHA 0.7
#define PRIOR_WAIT 0.05    /* of a round without drafts, once and for each token: as of a draft model a twentieth of the target's size */
#define WORTH_STARTING 1.02
#define WORTH_TELLING 1.1
#define HOPEFUL_ALPHA 0.95 /* what drafts that are not asked for may have come to: beyond that no probe is of use, */
#define HOPEFUL_WAIT 0.5

enum {
    MOST_JUDGED = 256,
    GAP_ROUNDS = 64,
    PROBE_ROUNDS = 4,     /* drafters catch up in the first one */
    PROBE_SHARE = 64,     /* of the time without drafts: what probes may cost */
    HOPELESS_FACTOR = 16, /* and so much less where none can succeed unless the machine changes */
    MOST_RESTS = 5,       /* each probe that changes nothing doubles the rest until the next */
    PLAIN_FIRST = 2,      /* rounds without drafts before the first one with them, and */
    TELLING_ROUNDS = 64,
    PLAIN_FIRST_REST = 16, /* one after so many, and twice that, */
    PLAIN_LONGEST_REST = 128, /* up to this, so that what drafts are measured against stays known */
};

/* The table's knots: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ... */
static int knot_rows(int knot)
{
    return knot < 3 ? knot + 1 : (4 + (knot - 3) % 4) << ((knot - 3) / 4);
}

static int nearest_knot(int rows)
{
    int knot = 0;

    while (knot + 1 < PACE_KNOTS && 2 * rows > knot_rows(knot) + knot_rows(knot + 1))
        knot++;
    return knot;
}

int pace_warm_up_rows(int i)
{
    return i == 0 ? 1 : (2 + (i - 1) % 2) << ((i - 1) / 2);
}

/* By the line between the known knots on both sides, or through the last two; 0: fewer than two are known. */
static double shape_of(const struct pace *pace, int rows)
{
    const double *shape = pace->shape;
    int low = -1, high = -1;
    double at;

    for (int i = 0; i < PACE_KNOTS && (high < 0 || low < 0 || knot_rows(high) < rows); i++)
        if (shape[i] > 0) {
            low = high;
            high = i;
        }
    if (low < 0)
        return 0;
    at = shape[low] + (shape[high] - shape[low]) * (rows - knot_rows(low)) / (double)(knot_rows(high) - knot_rows(low));
    return at > shape[low] / 2 ? at : shape[low] / 2;
}

/* Microseconds of a round of so many rows, but for its wait; 0: not known. */
static double work_of(const struct pace *pace, int rows)
{
    return shape_of(pace, rows) * (pace->rounds > 0 ? pace->scale : 1);
}

void pace_add_step(struct pace *pace, int rows, double us)
{
    int knot = nearest_knot(rows);

    if (pace->shape[knot] == 0)
        pace->shape[knot] = us;
    for (int i = 0; i <= knot; i++) /* what took longer, for as many rows or fewer, was a hiccup */
        if (pace->shape[i] > us)
            pace->shape[i] = us;
}

int pace_is_warm(const struct pace *pace)
{
    return pace->shape[0] > 0;
}

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

/* A point far above the line is a hiccup of the machine, and counts as no more than OUTLIER times what was expected; one far below it says that
 * those before were. The first one has a line with the point that no drafts take no time. Returns y as it counts. */
static double add_wait(struct pace_line *line, double x, double y)
{
    double fixed, slope, expected = fit(line, &fixed, &slope) ? fixed + slope * x : y;

    y = y < OUTLIER * expected ? y : OUTLIER * expected;
    if (OUTLIER * y < expected)
        *line = (struct pace_line){0};
    if (line->weight == 0)
        line->weight = 1;
    line->weight = WAIT_DECAY * line->weight + 1;
    line->x = WAIT_DECAY * line->x + x;
    line->y = WAIT_DECAY * line->y + y;
    line->xx = WAIT_DECAY * line->xx + x * x;
    line->xy = WAIT_DECAY * line->xy + x * y;
    return y;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* What a round says of the machine goes for all rows; more of it is said of the nearest knot, the longer that was not looked at. So when all becomes
 * faster or slower, what there would be without drafts is not thought to have stayed. Returns the time as it counts. */
static double add_work(struct pace *pace, int rows, double us)
{
    int knot = nearest_knot(rows), gap = pace->rounds - pace->last[knot];
    double expected = work_of(pace, rows), off, of_machine, of_knot;

    if (pace->rounds++ == 0)
        pace->scale = 1;
    if (expected > 0) {
        us = us < OUTLIER * expected ? us : OUTLIER * expected;
        off = us / expected - 1;
        of_machine = larger(1.0 / pace->rounds, MACHINE_SHARE);
        of_knot = larger(1.0 / (pace->known[knot] + 2), gap < GAP_ROUNDS ? (double)gap / (2 * GAP_ROUNDS) : 0.5);
        if (pace->shape[knot] == 0)
            pace->shape[knot] = shape_of(pace, knot_rows(knot));
        pace->scale *= 1 + of_machine * off;
        pace->shape[knot] *= 1 + (1 - of_machine) * of_knot * off;
    } else {
        pace->shape[knot] = us / pace->scale;
    }
    pace->known[knot]++;
    pace->last[knot] = pace->rounds;
    return us;
}

static void add_to(struct pace_account *account, const struct pace_round *round, double us, double plain_us)
{
    account->rounds++;
    account->us += us;
    account->tokens += round->tokens;
    account->plain_us += round->tokens * plain_us / round->sequences;
}

void pace_add_round(struct pace *pace, const struct pace_round *round)
{
    double us = add_work(pace, round->rows, round->work_us), plain_us = work_of(pace, round->sequences);

    if (round->longest == 0) {
        pace->since_plain = 0;
        pace->alone_us += us;
        return;
    }
    pace->since_plain++;
    pace->alone_us = 0;
    pace->probe_rounds -= pace->probe_rounds > 0;
    us += round->caught_up ? round->wait_us : add_wait(&pace->wait, round->longest, round->wait_us);
    add_to(&pace->drafted, round, us, plain_us);
    add_to(&pace->spell, round, us, plain_us);
}

void pace_add_verdict(struct pace *pace, int drafted, int accepted)
{
    for (int i = 0; i < PACE_MOST && i < drafted && i <= accepted; i++) {
        if (pace->judged[i] >= MOST_JUDGED) {
            pace->judged[i] /= 2;
            pace->stood[i] /= 2;
        }
        pace->judged[i]++;
        pace->stood[i] += i < accepted;
    }
}

int pace_drafts_cost(const struct pace *pace, double *with, double *without)
{
    const struct pace_account *account = &pace->drafted;

    if (account->rounds < TELLING_ROUNDS || account->us < WORTH_TELLING * account->plain_us || account->plain_us <= 0)
        return 0;
    *with = 1e6 * account->tokens / account->us;
    *without = 1e6 * account->tokens / account->plain_us;
    return 1;
}

double pace_expected_tokens(double alpha, int draft_length)
{
    double sum = 1, power = 1;

    for (int i = 0; i < draft_length; i++)
        sum += power *= alpha;
    return sum;
}

/* E(K): a place that was seldom judged is like the one before it. */
static double expected_tokens(const struct pace *pace, int draft_length)
{
    double sum = 1, power = 1, alpha = PRIOR_ALPHA;

    for (int i = 0; i < draft_length; i++) {
        alpha = (pace->stood[i] + PRIOR_JUDGED * alpha) / (pace->judged[i] + PRIOR_JUDGED);
        sum += power *= alpha;
    }
    return sum;
}

static double wait_of(struct pace_line line, double plain_us, int draft_length)
{
    double fixed, slope;

    if (draft_length == 0)
        return 0;
    return fit(&line, &fixed, &slope) ? fixed + slope * draft_length : PRIOR_WAIT * plain_us * (1 + draft_length);
}

double pace_rate(const struct pace *pace, int sequences, int draft_length)
{
    double plain_us = work_of(pace, sequences), us = work_of(pace, sequences * (draft_length + 1));

    return us > 0 ? sequences * expected_tokens(pace, draft_length) / (us + wait_of(pace->wait, plain_us, draft_length)) : 0;
}

/* The length above 0 of the highest rate. */
static int best_length(const struct pace *pace, int sequences)
{
    int best = 1;

    for (int k = 2; k <= PACE_MOST; k++)
        if (pace_rate(pace, sequences, k) > pace_rate(pace, sequences, best))
            best = k;
    return best;
}

/* Could any length pay, if drafts stood as they hardly ever do, and came sooner than they did? */
static int is_hopeless(const struct pace *pace, int sequences)
{
    double plain_us = work_of(pace, sequences);

    for (int k = 1; k <= PACE_MOST; k++)
        if (plain_us * pace_expected_tokens(HOPEFUL_ALPHA, k) >
            work_of(pace, sequences * (k + 1)) + HOPEFUL_WAIT * wait_of(pace->wait, plain_us, k))
            return 0;
    return 1;
}

/* Drafting ends, or does not begin. The rest before the next probe is so long that probes like the last one take a small share of the time. */
static int rest(struct pace *pace, int sequences)
{
    double least = PROBE_ROUNDS * work_of(pace, sequences), cost = pace->spell.us - pace->spell.plain_us;

    cost = cost > least ? cost : least;
    pace->rest_us = PROBE_SHARE * cost * (1 << pace->rests) * (is_hopeless(pace, sequences) ? HOPELESS_FACTOR : 1);
    pace->rests += pace->rests < MOST_RESTS;
    pace->alone_us = 0;
    pace->drafts = 0;
    return 0;
}

static int begin(struct pace *pace, int length)
{
    pace->spell = (struct pace_account){0};
    pace->probe_rounds = PROBE_ROUNDS;
    pace->plain_rest = PLAIN_FIRST_REST;
    pace->since_plain = 0;
    pace->drafts = 1;
    return length;
}

int pace_choose(struct pace *pace, int sequences)
{
    double plain = pace_rate(pace, sequences, 0), rate;
    int best;

    if (plain <= 0) /* nothing is known: two different rounds will tell */
        return pace->drafts = pace->drafts ? 0 : PACE_START;
    best = best_length(pace, sequences);
    rate = pace_rate(pace, sequences, best);
    if (pace->known[nearest_knot(sequences)] < PLAIN_FIRST)
        return 0;
    if (pace->drafts && pace->since_plain >= pace->plain_rest) {
        pace->rests = pace->plain_rest == PLAIN_LONGEST_REST ? 0 : pace->rests; /* it paid for long */
        pace->plain_rest = pace->plain_rest < PLAIN_LONGEST_REST ? 2 * pace->plain_rest : PLAIN_LONGEST_REST;
        pace->since_plain = 0;
        return 0;
    }
    if (!pace->drafts) {
        if (rate > WORTH_STARTING * plain)
            return begin(pace, best);
        if (pace->rest_us == 0)
            return rest(pace, sequences);
        return pace->alone_us < pace->rest_us ? 0 : begin(pace, best);
    }
    if (pace->probe_rounds > 0) /* two lengths make a line */
        return pace->probe_rounds % 2 == 0 && best + 2 <= PACE_MOST ? best + 2 : best;
    if (rate <= plain)
        return rest(pace, sequences);
    return best;
}
