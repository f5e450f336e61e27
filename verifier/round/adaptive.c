/* A round of S sequences with K drafts each computes for v(S (K + 1)), waits w + K d for its drafts and commits S E(K) tokens, where E(K) = 1 + a_1 +
 * a_1 a_2 + ... and a_i is how often the i-th draft of a proposal is accepted when those before it are (with one alpha for all: Leviathan et al.
 * 2023, equation 1). The K with the most tokens per microsecond is used; with K = 0 nothing is waited for and no drafter is asked.
 *
 * v is a table and not a line: at how many rows a step takes twice as long depends on kernels and caches. A warm-up fills it before the first round,
 * so that a job in which drafts cannot pay never asks for one; each round corrects it. Rounds with drafts and rounds without are slower or faster
 * than the table by a factor each: a drafter takes caches, memory bandwidth and often a core from the verifiers, so the time of rounds with drafts
 * says little about rounds without. Those are therefore measured by a look: three rounds without drafts, now and then and always before drafting is
 * given up. When drafting does not pay it rests; after a rest a probe of a few rounds with drafts tries again. */
#include "verifier/round/adaptive.h"

#define WAIT_DECAY 0.9 /* there are few samples while drafting does not pay, so an early outlier must fade fast */
#define SPELL_DECAY 0.98
#define OUTLIER 2.0
#define HICCUP 1.25
#define SPEED_SHARE (1.0 / 16) /* weight of the newest round in a kind's scale */
#define LOOK_SHARE 0.5         /* weight of the median of a look */
#define CHANGED 1.3            /* a look off by more than this factor replaces the scale: the machine's speed has changed */
#define PRIOR_TESTED 8.0
#define PRIOR_ALPHA 0.7
#define PRIOR_WAIT 0.05    /* guess, in rounds without drafts, once and per draft: as for a draft model of a 20th of the target's size */
#define WORTH_STARTING 1.02
#define WORTH_BREAKING 1.1 /* expected gain that ends a rest early; near 1, noise would start and stop drafting */
#define WORTH_TELLING 1.1
#define HOPEFUL_ALPHA 0.95 /* a probe is hopeless if drafting would not pay even with this acceptance rate and this share of the wait */
#define HOPEFUL_WAIT 0.5

enum {
    MOST_JUDGED = 256,
    GAP_ROUNDS = 64,
    PROBE_ROUNDS = 4,     /* in the first one drafters still read the tokens that they have missed */
    PROBE_SHARE = 64,     /* probes may cost one part in so many of the time without drafts */
    HOPELESS_FACTOR = 16, /* probes are so much rarer while hopeless: only a change of the machine's speed could make drafting pay */
    MOST_RESTS = 5,       /* the rest doubles after each probe that drafting did not survive, at most so often */
    PLAIN_FIRST = 2,      /* rounds without drafts before the first one with them */
    TELLING_ROUNDS = 64,
    SURE_ROUNDS = 4,      /* rounds after which a speed is known well enough to recognise an outlier */
    SPELL_ROUNDS = 16,    /* rounds with drafts before their total time decides whether drafting pays */
    FRESH_ROUNDS = 12,    /* rounds with drafts for which the result of a look is still valid */
    LOOK_FIRST_REST = 64, /* rounds with drafts until the next look, doubled after each look */
    LOOK_LONGEST_REST = 256, /* but at most this */
};

/* The table's knots: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ... */
static int knot_rows(int knot)
{
    return knot < 3 ? knot + 1 : (4 + (knot - 3) % 4) << ((knot - 3) / 4);
}

static int nearest_knot(int rows)
{
    int knot = 0;

    while (knot + 1 < ADAPTIVE_KNOTS && 2 * rows > knot_rows(knot) + knot_rows(knot + 1))
        knot++;
    return knot;
}

int adaptive_warm_up_rows(int i)
{
    return i == 0 ? 1 : (2 + (i - 1) % 2) << ((i - 1) / 2);
}

/* Interpolates between the two known knots around `rows`, or extrapolates from the last two; 0: fewer than two are known. */
static double shape_of(const struct adaptive *adaptive, int rows)
{
    const double *shape = adaptive->shape;
    int low = -1, high = -1;
    double at;

    for (int i = 0; i < ADAPTIVE_KNOTS && (high < 0 || low < 0 || knot_rows(high) < rows); i++)
        if (shape[i] > 0) {
            low = high;
            high = i;
        }
    if (low < 0)
        return 0;
    at = shape[low] + (shape[high] - shape[low]) * (rows - knot_rows(low)) / (double)(knot_rows(high) - knot_rows(low));
    return at > shape[low] / 2 ? at : shape[low] / 2;
}

/* The scale of this kind of round, or of the other kind where this one has not been measured. */
static double scale_of(const struct adaptive *adaptive, int drafted)
{
    const struct adaptive_speed *speed = &adaptive->speed[adaptive->speed[drafted].rounds > 0 ? drafted : !drafted];

    return speed->rounds > 0 ? speed->scale : 1;
}

/* Expected microseconds of a round of so many rows without its wait for drafts; 0: not known. */
static double work_of(const struct adaptive *adaptive, int rows, int drafted)
{
    return shape_of(adaptive, rows) * scale_of(adaptive, drafted);
}

void adaptive_add_step(struct adaptive *adaptive, int rows, double us)
{
    int knot = nearest_knot(rows);

    if (adaptive->shape[knot] == 0)
        adaptive->shape[knot] = us;
    for (int i = 0; i <= knot; i++) /* a step of as many rows or fewer cannot take longer: that time was an outlier */
        if (adaptive->shape[i] > us)
            adaptive->shape[i] = us;
}

int adaptive_is_warm(const struct adaptive *adaptive)
{
    return adaptive->shape[0] > 0;
}

/* The least-squares line. Where all points have one x the slope cannot be told, and the last known slope is used; returns 0 where there is none. */
static int fit(struct adaptive_line *line, double *fixed, double *slope)
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

/* Adds a wait of y for x drafts. A point far above the line is an outlier, and counts as at most OUTLIER times what was expected; one far below shows
 * that the earlier points were outliers, and drops them. The first point is joined by (0, 0): no drafts take no time. Returns y as it counts. */
static double add_wait(struct adaptive_line *line, double x, double y)
{
    double fixed, slope, expected = fit(line, &fixed, &slope) ? fixed + slope * x : y;

    y = y < OUTLIER * expected ? y : OUTLIER * expected;
    if (OUTLIER * y < expected)
        *line = (struct adaptive_line){0};
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

/* Measured over expected time. Outliers are always slow, never fast: the ratio is limited to HICCUP (OUTLIER while the speed is hardly known), and a
 * low ratio is taken as it is. */
static double ratio_of(const struct adaptive_speed *speed, double us, double expected)
{
    double most = speed->rounds >= SURE_ROUNDS ? HICCUP : OUTLIER;

    return us < most * expected ? us / expected : most;
}

/* `rounds` more rounds of a kind took `ratio` times what was expected: moves the kind's scale by `share` of the difference, or by all of it where
 * they took less than half. A kind without a scale starts from the other kind's. Returns the factor that the scale changed by. */
static double follow(struct adaptive *adaptive, int drafted, int rounds, double ratio, double share)
{
    struct adaptive_speed *speed = &adaptive->speed[drafted];
    double by = 1 + (OUTLIER * ratio < 1 ? 1 : share) * (ratio - 1);

    if (speed->rounds == 0)
        speed->scale = scale_of(adaptive, drafted);
    speed->rounds += rounds;
    speed->scale *= by;
    return by;
}

/* A round's time corrects the scale, which holds for all rows, and its nearest knot, the more the longer that knot was not measured. The scale of the
 * other kind follows, as the machine may have become faster or slower as a whole, except in a probe, whose first rounds show what drafting costs the
 * verifiers. Returns the time as it counts. */
static double add_work(struct adaptive *adaptive, int rows, int drafted, double us)
{
    struct adaptive_speed *speed = &adaptive->speed[drafted];
    int knot = nearest_knot(rows), gap = adaptive->rounds - adaptive->last[knot];
    double expected = work_of(adaptive, rows, drafted), ratio = 1, of_speed, of_knot, by;

    if (expected > 0) {
        ratio = ratio_of(speed, us, expected);
        of_speed = larger(1.0 / (speed->rounds + 1), SPEED_SHARE);
        of_knot = larger(1.0 / (adaptive->known[knot] + 2), gap < GAP_ROUNDS ? (double)gap / (2 * GAP_ROUNDS) : 0.5);
        if (adaptive->shape[knot] == 0)
            adaptive->shape[knot] = shape_of(adaptive, knot_rows(knot));
        by = follow(adaptive, drafted, 1, ratio, of_speed);
        if (adaptive->probe_rounds == 0)
            adaptive->speed[!drafted].scale *= by;
        adaptive->shape[knot] *= 1 + (1 - of_speed) * of_knot * (ratio - 1);
        us = ratio * expected;
    } else {
        follow(adaptive, drafted, 1, ratio, 0); /* nothing was expected yet: this is the table's first entry */
        adaptive->shape[knot] = us / speed->scale;
    }
    adaptive->known[knot]++;
    adaptive->last[knot] = ++adaptive->rounds;
    return us;
}

static double median(const double *x)
{
    double low = x[0] < x[1] ? x[0] : x[1], high = larger(x[0], x[1]);

    return x[2] < low ? low : x[2] > high ? high : x[2];
}

/* One round of a look. Its median counts, because in the first round the drafter has only just stopped. */
static void look_at(struct adaptive *adaptive, int rows, double us)
{
    double expected = work_of(adaptive, rows, 0), ratio;

    adaptive->looked[--adaptive->look_rounds] = expected > 0 ? us / expected : 1;
    if (adaptive->look_rounds > 0)
        return;
    ratio = median(adaptive->looked);
    follow(adaptive, 0, ADAPTIVE_LOOK, ratio, ratio > CHANGED || CHANGED * ratio < 1 ? 1 : LOOK_SHARE);
    adaptive->since_look = 0;
}

static void add_to(struct adaptive_account *account, const struct adaptive_round *round, double us, double plain_us, double decay)
{
    account->rounds++;
    account->us = decay * account->us + us;
    account->tokens = decay * account->tokens + round->tokens;
    account->plain_us = decay * account->plain_us + round->tokens * plain_us / round->sequences;
}

static void add_plain(struct adaptive *adaptive, const struct adaptive_round *round)
{
    adaptive->alone_us += round->work_us;
    if (adaptive->look_rounds > 0)
        look_at(adaptive, round->rows, round->work_us);
    else
        add_work(adaptive, round->rows, 0, round->work_us);
}

void adaptive_add_round(struct adaptive *adaptive, const struct adaptive_round *round)
{
    double us, plain_us;

    if (round->longest == 0) {
        add_plain(adaptive, round);
        return;
    }
    us = add_work(adaptive, round->rows, 1, round->work_us);
    us += round->caught_up ? round->wait_us : add_wait(&adaptive->wait, round->longest, round->wait_us);
    plain_us = work_of(adaptive, round->sequences, 0);
    adaptive->since_look++;
    adaptive->alone_us = 0;
    adaptive->probe_rounds -= adaptive->probe_rounds > 0;
    add_to(&adaptive->drafted, round, us, plain_us, 1);
    add_to(&adaptive->spell, round, us, plain_us, SPELL_DECAY);
}

void adaptive_add_verdict(struct adaptive *adaptive, int drafted, int accepted)
{
    for (int i = 0; i < ADAPTIVE_MOST && i < drafted && i <= accepted; i++) {
        if (adaptive->tested[i] >= MOST_JUDGED) {
            adaptive->tested[i] /= 2;
            adaptive->accepted[i] /= 2;
        }
        adaptive->tested[i]++;
        adaptive->accepted[i] += i < accepted;
    }
}

int adaptive_drafts_cost(const struct adaptive *adaptive, double *with, double *without)
{
    const struct adaptive_account *account = &adaptive->drafted;

    if (account->rounds < TELLING_ROUNDS || account->us < WORTH_TELLING * account->plain_us || account->plain_us <= 0)
        return 0;
    *with = 1e6 * account->tokens / account->us;
    *without = 1e6 * account->tokens / account->plain_us;
    return 1;
}

double adaptive_expected_tokens(double alpha, int draft_length)
{
    double sum = 1, power = 1;

    for (int i = 0; i < draft_length; i++)
        sum += power *= alpha;
    return sum;
}

/* E(K) with the measured acceptance rates. A place of the proposal that was seldom tested is assumed to be like the place before it. */
static double expected_tokens(const struct adaptive *adaptive, int draft_length)
{
    double sum = 1, power = 1, alpha = PRIOR_ALPHA;

    for (int i = 0; i < draft_length; i++) {
        alpha = (adaptive->accepted[i] + PRIOR_TESTED * alpha) / (adaptive->tested[i] + PRIOR_TESTED);
        sum += power *= alpha;
    }
    return sum;
}

static double wait_of(struct adaptive_line line, double plain_us, int draft_length)
{
    double fixed, slope;

    if (draft_length == 0)
        return 0;
    return fit(&line, &fixed, &slope) ? fixed + slope * draft_length : PRIOR_WAIT * plain_us * (1 + draft_length);
}

double adaptive_rate(const struct adaptive *adaptive, int sequences, int draft_length)
{
    double plain_us = work_of(adaptive, sequences, 0), us = work_of(adaptive, sequences * (draft_length + 1), draft_length > 0);

    return us > 0 ? sequences * expected_tokens(adaptive, draft_length) / (us + wait_of(adaptive->wait, plain_us, draft_length)) : 0;
}

/* The length above 0 of the highest rate. */
static int best_length(const struct adaptive *adaptive, int sequences)
{
    int best = 1;

    for (int k = 2; k <= ADAPTIVE_MOST; k++)
        if (adaptive_rate(adaptive, sequences, k) > adaptive_rate(adaptive, sequences, best))
            best = k;
    return best;
}

int adaptive_explain(const struct adaptive *adaptive, int sequences, int length, struct adaptive_terms *terms)
{
    double plain = adaptive_rate(adaptive, sequences, 0), plain_us = work_of(adaptive, sequences, 0), tested = 0, accepted = 0;

    if (plain <= 0)
        return 0;
    length = length > 0 ? length : best_length(adaptive, sequences);
    for (int i = 0; i < ADAPTIVE_MOST; i++) {
        tested += adaptive->tested[i];
        accepted += adaptive->accepted[i];
    }
    *terms = (struct adaptive_terms){.length = length,
                                     .rows = sequences * (length + 1),
                                     .alone = sequences,
                                     .v = work_of(adaptive, sequences * (length + 1), 1) / plain_us,
                                     .c = wait_of(adaptive->wait, plain_us, length) / length / plain_us,
                                     .alpha = tested > 0 ? accepted / tested : PRIOR_ALPHA,
                                     .waited = adaptive->wait.weight > 0,
                                     .judged = tested > 0,
                                     .speedup = adaptive_rate(adaptive, sequences, length) / plain};
    return 1;
}

/* Would no draft length pay even with an acceptance rate of HOPEFUL_ALPHA and HOPEFUL_WAIT of the measured wait? */
static int is_hopeless(const struct adaptive *adaptive, int sequences)
{
    double plain_us = work_of(adaptive, sequences, 0);

    for (int k = 1; k <= ADAPTIVE_MOST; k++)
        if (plain_us * adaptive_expected_tokens(HOPEFUL_ALPHA, k) >
            work_of(adaptive, sequences * (k + 1), 1) + HOPEFUL_WAIT * wait_of(adaptive->wait, plain_us, k))
            return 0;
    return 1;
}

/* Stops drafting, or does not start it. The rest is chosen so that probes like the last one take 1 / PROBE_SHARE of the time. */
static int rest(struct adaptive *adaptive, int sequences)
{
    double least = PROBE_ROUNDS * work_of(adaptive, sequences, 0), cost = adaptive->spell.us - adaptive->spell.plain_us;

    cost = cost > least ? cost : least;
    adaptive->rest_us = PROBE_SHARE * cost * (1 << adaptive->rests) * (is_hopeless(adaptive, sequences) ? HOPELESS_FACTOR : 1);
    adaptive->rests += adaptive->rests < MOST_RESTS;
    adaptive->alone_us = 0;
    adaptive->drafts = 0;
    return 0;
}

static int begin(struct adaptive *adaptive, int length)
{
    adaptive->spell = (struct adaptive_account){0};
    adaptive->probe_rounds = PROBE_ROUNDS;
    adaptive->speed[1].rounds = adaptive->speed[1].rounds < SURE_ROUNDS ? adaptive->speed[1].rounds : SURE_ROUNDS;
    adaptive->look_rest = LOOK_FIRST_REST;
    adaptive->since_look = 0;
    adaptive->drafts = 1;
    return length;
}

static int look(struct adaptive *adaptive)
{
    adaptive->rests = adaptive->look_rest == LOOK_LONGEST_REST ? 0 : adaptive->rests; /* drafting has paid for a long time */
    adaptive->look_rest = adaptive->look_rest < LOOK_LONGEST_REST ? 2 * adaptive->look_rest : LOOK_LONGEST_REST;
    adaptive->look_rounds = ADAPTIVE_LOOK;
    return 0;
}

/* Either the best length is expected to be slower than no drafts, or the rounds since drafting began took longer than their tokens would have
 * without. */
static int seems_to_cost(const struct adaptive *adaptive, double rate, double plain)
{
    return rate <= plain || (adaptive->spell.rounds >= SPELL_ROUNDS && adaptive->spell.us > adaptive->spell.plain_us);
}

static int go_on(struct adaptive *adaptive, int sequences, int best, double rate, double plain)
{
    if (adaptive->look_rounds > 0)
        return 0;
    if (adaptive->since_look >= adaptive->look_rest)
        return look(adaptive);
    if (adaptive->probe_rounds > 0) /* a line needs points at two lengths */
        return adaptive->probe_rounds % 2 == 0 && best + 2 <= ADAPTIVE_MOST ? best + 2 : best;
    if (!seems_to_cost(adaptive, rate, plain))
        return best;
    return adaptive->since_look <= FRESH_ROUNDS ? rest(adaptive, sequences) : look(adaptive);
}

int adaptive_choose(struct adaptive *adaptive, int sequences)
{
    double plain = adaptive_rate(adaptive, sequences, 0), rate;
    int best;

    if (plain <= 0) /* nothing is known: a round with drafts and one without come first */
        return adaptive->speed[0].rounds < PLAIN_FIRST ? 0 : begin(adaptive, ADAPTIVE_START / 2);
    best = best_length(adaptive, sequences);
    rate = adaptive_rate(adaptive, sequences, best);
    if (adaptive->drafts)
        return go_on(adaptive, sequences, best, rate, plain);
    if (adaptive->speed[0].rounds < PLAIN_FIRST)
        return 0;
    if (rate > (adaptive->rests > 0 ? WORTH_BREAKING : WORTH_STARTING) * plain)
        return begin(adaptive, best);
    if (adaptive->rest_us == 0)
        return rest(adaptive, sequences);
    return adaptive->alone_us < adaptive->rest_us ? 0 : begin(adaptive, best);
}
