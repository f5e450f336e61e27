/* A round of S sequences with K drafts each computes for v(S (K + 1)), waits w(K) for its drafts and commits S E(K) tokens, where E(K) = 1 + a_1 +
 * a_1 a_2 + ... and a_i is how often the i-th draft of a proposal is accepted when those before it are (with one alpha for all: Leviathan et al.
 * 2023, equation 1). The K with the most tokens per microsecond is used; with K = 0 nothing is waited for and no drafter is asked.
 *
 * v is a table (adaptive_work.h) and not a line: at how many rows a step takes twice as long depends on kernels and caches. A warm-up fills it before
 * the first round, so that a job in which drafts cannot pay never asks for one; each round corrects it. Rounds with drafts and rounds without are
 * slower or faster than the table by a factor each: a drafter takes caches, memory bandwidth and often a core from the verifiers, so the time of
 * rounds with drafts says little about rounds without. Those are therefore measured by a look: three rounds without drafts, once the drafter sleeps,
 * now and then and always before drafting is given up. When drafting does not pay it rests; after a rest a probe of a few rounds with drafts tries
 * again. A rest goes on in the next job of the kind, which so begins with what the one before knew: in a short job the first probe would cost more
 * than it could ever give.
 *
 * w is a table, too (adaptive_wait.h), and before anything was waited for the drafter's own measure. The lengths beside the best one are tried now
 * and then, because what a length's wait is only rounds of that length show.
 *
 * Of a tree K is its nodes, of which some numbers alone are chosen from, and what it gives is a table as well (adaptive_tokens.h): all of the above
 * goes by the size of drafts, which of a chain is its length. */
#include "verifier/round/adaptive.h"

#include <math.h>
#include <string.h>

#define SPELL_DECAY 0.98
#define OUTLIER         2.0
#define PRIOR_WAIT 0.05    /* guess, in rounds without drafts, once and per draft: as for a draft model of a 20th of the target's size */
#define WORTH_STARTING 1.02
#define WORTH_BREAKING 1.1 /* expected gain that ends a rest early; near 1, noise would start and stop drafting */
#define WORTH_TELLING 1.1
#define HOPEFUL_ALPHA 0.95 /* a probe is hopeless if drafting would not pay even with this acceptance rate and this share of the wait */
#define HOPEFUL_WAIT 0.5
#define SLOWED          1.02 /* times what the warm-up says: rounds with drafts are slowed by something */
#define DEAREST         0.9 /* price: what is nearly sure is drafted all the same, or the price would stay what it was for ever */
#define LONGEST_LEFT_US 10e6   /* of a rest, to the next job, whose text is another one; but as long as one probe's share of the time */
#define SETTLE_US      1000.0 /* by then a drafter that is no longer asked usually sleeps */

enum {
    MOST_RECALLED = 32,   /* of an earlier job's, whose text was another one; */
    WAITS_RECALLED = 3,   /* and of rounds that waited: too few to be sure, so that the first quick one says that they were outliers */
    PROBE_ROUNDS = 4,     /* in the first one drafters still read the tokens that they have missed */
    PROBE_SHARE = 64,     /* probes may cost one part in so many of the time without drafts, */
    FIRST_SHARE = 16,     /* but the first one, without which nothing is known of the drafts, of the time until then */
    PASSING_SHARE = 8,    /* and where drafts would pay if verifiers were as fast beside a drafter as alone: what slows them may be over soon */
    HOPELESS_FACTOR = 16, /* probes are so much rarer while hopeless: only a change of the machine's speed could make drafting pay */
    PLAIN_FIRST = 2,      /* rounds without drafts before the first one with them; one where earlier jobs had some */
    TELLING_ROUNDS = 64,
    SPELL_ROUNDS = 16,       /* rounds with drafts before their total time decides whether drafting pays */
    FRESH_ROUNDS = 12,       /* rounds with drafts for which the result of a look is still valid */
    LOOK_FIRST_REST = 64,    /* rounds with drafts until the next look, doubled after each look */
    LOOK_LONGEST_REST = 256, /* but at most this */
    REACH = 2,               /* lengths above the longest whose wait was measured that may be chosen */
    TRIAL_ROUNDS = 4,        /* the first one is still of another length's drafts, or lacks those that were drafted ahead */
    TRIAL_FIRST_REST = 16,   /* rounds with drafts until the next trial, doubled after each; this again where another length has become the best */
    TRIAL_LONGEST_REST = 128,
};

/* One round of a look. The first one never counts, and none that begins before verifiers have their cores for themselves. */
static void look_at(struct adaptive *adaptive, int rows, double us)
{
    double expected = adaptive_work_us(&adaptive->work, rows, 0);

    if (adaptive->settled_us < SETTLE_US) {
        adaptive->settled_us += us;
        return;
    }
    adaptive->looked[--adaptive->look_rounds] = expected > 0 ? us / expected : 1;
    if (adaptive->look_rounds > 0)
        return;
    adaptive_work_look(&adaptive->work, adaptive->looked);
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
        adaptive_work_add(&adaptive->work, round->rows, 0, adaptive->probe_rounds > 0, round->work_us);
}

void adaptive_add_draft_step(struct adaptive *adaptive, struct adaptive_draft_step step)
{
    struct adaptive_draft_step *known = &adaptive->draft_step;

    known->rows = step.rows > known->rows ? step.rows : known->rows; /* of several drafters the slowest counts */
    known->one_us = fmax(known->one_us, step.one_us);
    known->all_us = fmax(known->all_us, step.all_us);
}

void adaptive_recall(struct adaptive *adaptive, const struct adaptive_past *past)
{
    adaptive_tokens_recall(&adaptive->tokens, &past->tokens, MOST_RECALLED);
    adaptive_work_expect_ratio(&adaptive->work, &past->ratio);
    for (int i = 0; i <= ADAPTIVE_MOST; i++) {
        adaptive->wait.us[i] = past->wait.us[i];
        adaptive->wait.rounds[i] = past->wait.rounds[i] < WAITS_RECALLED ? past->wait.rounds[i] : WAITS_RECALLED;
    }
    adaptive->rest_us = past->rest_us;
    adaptive->probe_us = past->rest_us / PROBE_SHARE;
    adaptive->alone_us = past->alone_us;
    adaptive->rests = past->rests;
    adaptive->recalled = adaptive_tokens_known(&past->tokens);
}

void adaptive_leave(const struct adaptive *adaptive, struct adaptive_past *past)
{
    struct adaptive_ratio ratio = adaptive_work_ratio(&adaptive->work);

    past->tokens = adaptive->tokens;
    if (adaptive_wait_longest(&adaptive->wait) > 0)
        past->wait = adaptive->wait;
    if (ratio.of_time > 0 && memcmp(ratio.rows, past->ratio.rows, sizeof ratio.rows) == 0)
        past->ratio.of_time = sqrt(past->ratio.of_time * ratio.of_time); /* either was measured at a moment */
    else if (ratio.of_time > 0)
        past->ratio = ratio;
    past->rest_us = adaptive->drafts ? 0 : fmin(adaptive->rest_us, fmax(LONGEST_LEFT_US, PROBE_SHARE * adaptive->probe_us));
    past->alone_us = adaptive->drafts ? 0 : adaptive->alone_us;
    past->rests = adaptive->drafts && adaptive->probe_rounds == 0 ? 0 : adaptive->rests; /* drafting that goes on has survived its probe */
}

static struct adaptive_wait_guess guess_of(const struct adaptive *adaptive, int sequences)
{
    const struct adaptive_draft_step *step = &adaptive->draft_step;
    double plain_us = adaptive_work_us(&adaptive->work, sequences, 0), more = step->rows > 1 ? (step->all_us - step->one_us) / (step->rows - 1) : 0;

    return (struct adaptive_wait_guess){.first = PRIOR_WAIT * plain_us,
                                        .each = step->rows > 0 ? step->one_us + more * (sequences - 1) : PRIOR_WAIT * plain_us};
}

static double wait_of(const struct adaptive *adaptive, int sequences, int size)
{
    return adaptive_wait_us(&adaptive->wait, guess_of(adaptive, sequences), size);
}

/* The wait of a round whose drafter read first, or of the first one with another size, is not a usual one. Returns it as it counts. */
static double add_wait(struct adaptive *adaptive, const struct adaptive_round *round)
{
    int size = adaptive_tokens_size(&adaptive->tokens, round->longest);

    if (round->longest > 0 && !round->caught_up && (!adaptive->is_changed || adaptive->probe_rounds > 0))
        return adaptive_wait_add(&adaptive->wait, guess_of(adaptive, round->sequences), size, round->wait_us, round->answer_us);
    return fmin(round->wait_us, OUTLIER * wait_of(adaptive, round->sequences, size));
}

void adaptive_add_round(struct adaptive *adaptive, const struct adaptive_round *round)
{
    double us, plain_us;

    if (round->longest == 0 && !round->asked) {
        add_plain(adaptive, round);
        return;
    }
    adaptive->longest = round->longest;
    us = adaptive_work_add(&adaptive->work, round->rows, 1, adaptive->probe_rounds > 0, round->work_us);
    plain_us = adaptive_work_us(&adaptive->work, round->sequences, 0);
    us += add_wait(adaptive, round);
    adaptive->since_look++;
    adaptive->since_trial++;
    adaptive->alone_us = 0;
    adaptive->probe_rounds -= adaptive->probe_rounds > 0;
    add_to(&adaptive->drafted, round, us, plain_us, 1);
    add_to(&adaptive->spell, round, us, plain_us, SPELL_DECAY);
}

void adaptive_add_verdict(struct adaptive *adaptive, int drafted, int accepted)
{
    adaptive_tokens_add(&adaptive->tokens, drafted, accepted);
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

/* The drafts of each sequence, and the rows of a step, of that size. */
static int drafts_of(const struct adaptive *adaptive, int size)
{
    return adaptive_tokens_drafts(&adaptive->tokens, size);
}

static int rows_of(const struct adaptive *adaptive, int sequences, int size)
{
    return sequences * (drafts_of(adaptive, size) + 1);
}

static double expected_tokens(const struct adaptive *adaptive, int size)
{
    return adaptive_tokens_expected(&adaptive->tokens, size);
}

/* Expected tokens per microsecond of a round; 0: not known. */
static double rate_of(const struct adaptive *adaptive, int sequences, int size)
{
    double us = adaptive_work_us(&adaptive->work, rows_of(adaptive, sequences, size), size > 0);

    return us > 0 ? sequences * expected_tokens(adaptive, size) / (us + wait_of(adaptive, sequences, size)) : 0;
}

double adaptive_rate(const struct adaptive *adaptive, int sequences, int draft_length)
{
    return rate_of(adaptive, sequences, adaptive_tokens_size(&adaptive->tokens, draft_length));
}

double adaptive_price(const struct adaptive *adaptive, int sequences)
{
    const struct adaptive_account *spell = &adaptive->spell;
    int rows = adaptive->work.rows[1], longest = adaptive->longest > 0 ? adaptive->longest : 1;
    double more_us;

    if (sequences <= 0 || spell->rounds == 0 || spell->us <= 0)
        return 0;
    more_us = adaptive_work_us(&adaptive->work, rows + sequences, 1) - adaptive_work_us(&adaptive->work, rows, 1);
    more_us += wait_of(adaptive, sequences, longest + 1) - wait_of(adaptive, sequences, longest);
    return fmin(DEAREST, fmax(0, more_us / sequences * spell->tokens / spell->us));
}

/* The size above 0 of the highest rate, which is *rate, a little above those whose wait was measured at most. */
static int best_size(const struct adaptive *adaptive, int sequences, double *rate)
{
    int best = 1, most = adaptive_wait_longest(&adaptive->wait) + REACH;

    most = most < ADAPTIVE_START ? ADAPTIVE_START : most < ADAPTIVE_MOST ? most : ADAPTIVE_MOST;
    *rate = rate_of(adaptive, sequences, best);
    for (int size = 2; size <= most; size++) {
        double here = rate_of(adaptive, sequences, size);

        if (here > *rate) {
            best = size;
            *rate = here;
        }
    }
    return best;
}

double adaptive_best_rate(const struct adaptive *adaptive, int sequences)
{
    double rate;

    best_size(adaptive, sequences, &rate);
    return rate;
}

void adaptive_swap(struct adaptive *adaptive, const struct adaptive_seen *seen, struct adaptive_seen *left)
{
    *left = (struct adaptive_seen){.tokens = adaptive->tokens, .wait = adaptive->wait, .spell = adaptive->spell};
    adaptive->tokens = seen->tokens;
    adaptive->wait = seen->wait;
    adaptive->spell = seen->spell;
    adaptive->size = -1; /* the next is another one, whatever it is */
    adaptive->trial_rounds = 0;
    adaptive->best = 0;
}

/* The one that gives so many tokens a round by equation 1. */
static double alpha_of(double tokens, int draft_length)
{
    double low = 0, high = 1;

    for (int i = 0; i < 40; i++) {
        double middle = (low + high) / 2;

        if (adaptive_expected_tokens(middle, draft_length) < tokens)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int adaptive_explain(const struct adaptive *adaptive, int sequences, int length, struct adaptive_terms *terms)
{
    double plain = rate_of(adaptive, sequences, 0), plain_us = adaptive_work_us(&adaptive->work, sequences, 0), rate;
    int size;

    if (plain <= 0)
        return 0;
    length = length > 0 ? length : drafts_of(adaptive, best_size(adaptive, sequences, &rate));
    size = adaptive_tokens_size(&adaptive->tokens, length);
    *terms = (struct adaptive_terms){.length = length,
                                     .rows = sequences * (length + 1),
                                     .alone = sequences,
                                     .v = adaptive_work_us(&adaptive->work, sequences * (length + 1), 1) / plain_us,
                                     .c = wait_of(adaptive, sequences, size) / length / plain_us,
                                     .alpha = alpha_of(expected_tokens(adaptive, size), length),
                                     .waited = adaptive_wait_longest(&adaptive->wait) > 0,
                                     .judged = adaptive_tokens_known(&adaptive->tokens),
                                     .speedup = rate_of(adaptive, sequences, size) / plain};
    return 1;
}

/* Would some size of drafts pay if drafted rounds were as fast as the warm-up's steps, and are they not? Virtual cores may share a real one for a
 * tenth of a second, or another process be about. */
static int is_slowed(const struct adaptive *adaptive, int sequences)
{
    double alone = adaptive_work_alone(&adaptive->work, sequences), plain_us = adaptive_work_us(&adaptive->work, sequences, 0);

    for (int size = 1; size <= ADAPTIVE_START && alone > 0 && !adaptive->shares_cores; size++) {
        int rows = rows_of(adaptive, sequences, size);
        double us = plain_us * adaptive_work_alone(&adaptive->work, rows) / alone;

        if (adaptive_work_us(&adaptive->work, rows, 1) > SLOWED * us &&
            plain_us * expected_tokens(adaptive, size) > WORTH_STARTING * (us + wait_of(adaptive, sequences, size)))
            return 1;
    }
    return 0;
}

/* Would no size of drafts pay even with an acceptance rate of HOPEFUL_ALPHA and HOPEFUL_WAIT of the measured wait? */
static int is_hopeless(const struct adaptive *adaptive, int sequences)
{
    double plain_us = adaptive_work_us(&adaptive->work, sequences, 0);

    for (int size = 1; size <= ADAPTIVE_MOST; size++)
        if (plain_us * adaptive_expected_tokens(HOPEFUL_ALPHA, drafts_of(adaptive, size)) >
            adaptive_work_us(&adaptive->work, rows_of(adaptive, sequences, size), 1) + HOPEFUL_WAIT * wait_of(adaptive, sequences, size))
            return 0;
    return 1;
}

/* Stops drafting, or does not start it. The rest is chosen so that probes like the last one take 1 / PROBE_SHARE of the time. The first one comes
 * sooner: until then what drafts are accepted for is a guess, and a job may be over before a long rest is. So do others as long as drafts pay by what
 * was measured without them. */
static int rest(struct adaptive *adaptive, int sequences)
{
    double least = PROBE_ROUNDS * (adaptive_work_us(&adaptive->work, rows_of(adaptive, sequences, 1), 1) + wait_of(adaptive, sequences, 1));
    double cost = adaptive->spell.us - adaptive->spell.plain_us;
    int slowed = is_slowed(adaptive, sequences), hopeless = !slowed && is_hopeless(adaptive, sequences);
    int first = adaptive->drafted.rounds == 0 && !adaptive->recalled;
    double share = slowed ? PASSING_SHARE : first && !hopeless ? FIRST_SHARE : PROBE_SHARE;

    cost = cost > least ? cost : least;
    adaptive->probe_us = cost;
    adaptive->rest_us = share * cost * (1 << adaptive->rests) * (hopeless ? HOPELESS_FACTOR : 1);
    adaptive->rests += adaptive->rests < ADAPTIVE_RESTS; /* it doubles after each probe that drafting did not survive, at most so often */
    adaptive->alone_us = 0;
    adaptive->drafts = 0;
    return 0;
}

static int begin(struct adaptive *adaptive, int size)
{
    adaptive->spell = (struct adaptive_account){0};
    adaptive->probe_rounds = PROBE_ROUNDS;
    adaptive_work_doubt(&adaptive->work, 1);
    if (!adaptive->recalled || adaptive->drafted.rounds > 0)
        adaptive->wait = (struct adaptive_wait){0}; /* measured too long ago: a size that then seemed slow would not be tried again */
    adaptive->look_rest = LOOK_FIRST_REST;
    adaptive->since_look = 0;
    adaptive->trial_rounds = 0;
    adaptive->best = 0;
    adaptive->drafts = 1;
    return size;
}

static int look(struct adaptive *adaptive)
{
    adaptive->rests = adaptive->look_rest == LOOK_LONGEST_REST ? 0 : adaptive->rests; /* drafting has paid for a long time */
    adaptive->look_rest = adaptive->look_rest < LOOK_LONGEST_REST ? 2 * adaptive->look_rest : LOOK_LONGEST_REST;
    adaptive->look_rounds = ADAPTIVE_LOOK;
    adaptive->settled_us = 0;
    return 0;
}

/* Either the best size is expected to be slower than no drafts, or the rounds since drafting began took longer than their tokens would have
 * without. */
static int seems_to_cost(const struct adaptive *adaptive, double rate, double plain)
{
    return rate <= plain || (adaptive->spell.rounds >= SPELL_ROUNDS && adaptive->spell.us > adaptive->spell.plain_us);
}

/* The best size, or in a trial the one above or below it. */
static int try_beside(struct adaptive *adaptive, int best)
{
    int is_above = best == 1 || (adaptive->trial_size < best && best < ADAPTIVE_MOST);

    if (adaptive->trial_rounds > 0) {
        adaptive->trial_rounds--;
        return adaptive->trial_size;
    }
    if (adaptive->best != best) {
        adaptive->best = best;
        adaptive->since_trial = 0;
        adaptive->trial_rest = TRIAL_FIRST_REST;
    }
    if (adaptive->since_trial < adaptive->trial_rest)
        return best;
    adaptive->since_trial = 0;
    adaptive->trial_rest = 2 * adaptive->trial_rest < TRIAL_LONGEST_REST ? 2 * adaptive->trial_rest : TRIAL_LONGEST_REST;
    adaptive->trial_rounds = TRIAL_ROUNDS - 1;
    adaptive->trial_size = is_above ? best + 1 : best - 1;
    return adaptive->trial_size;
}

static int go_on(struct adaptive *adaptive, int sequences, int best, double rate, double plain)
{
    if (adaptive->look_rounds > 0)
        return 0;
    if (adaptive->since_look >= adaptive->look_rest)
        return look(adaptive);
    if (adaptive->probe_rounds > 0)
        return best;
    if (!seems_to_cost(adaptive, rate, plain))
        return try_beside(adaptive, best);
    return adaptive->since_look <= FRESH_ROUNDS ? rest(adaptive, sequences) : look(adaptive);
}

static int choose(struct adaptive *adaptive, int sequences)
{
    double plain = rate_of(adaptive, sequences, 0), rate;
    int best;

    if (plain <= 0) /* nothing is known: a round with drafts and one without come first */
        return adaptive->work.speed[0].rounds < PLAIN_FIRST ? 0 : begin(adaptive, ADAPTIVE_START / 2);
    best = best_size(adaptive, sequences, &rate);
    if (adaptive->drafts)
        return go_on(adaptive, sequences, best, rate, plain);
    if (adaptive->work.speed[0].rounds < PLAIN_FIRST)
        return 0;
    if (rate > (adaptive->rests > 0 ? WORTH_BREAKING : WORTH_STARTING) * plain)
        return begin(adaptive, best);
    if (adaptive->rest_us == 0)
        return rest(adaptive, sequences);
    return adaptive->alone_us < adaptive->rest_us ? 0 : begin(adaptive, best);
}

int adaptive_choose(struct adaptive *adaptive, int sequences)
{
    int size = choose(adaptive, sequences);

    adaptive->is_changed = size != adaptive->size;
    adaptive->size = size;
    return drafts_of(adaptive, size);
}

int adaptive_next(int length, int drafted, int accepted)
{
    if (drafted == 0)
        return length;
    if (accepted < drafted)
        return length > 1 ? length - 1 : 1;
    return length + 2 < ADAPTIVE_MOST ? length + 2 : ADAPTIVE_MOST;
}
