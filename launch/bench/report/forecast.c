#include "launch/bench/report/forecast.h"

#include "drafter/outcomes.h"
#include <string.h>

#define WINDOW_SHARE 0.75 /* and */
#define LEAST_SHARE  0.04 /* as drafters plan by (drafter/run_ahead.c) */
#define TAKE_US      12   /* of both sides, for a draft with its q; a Commit says what it is and what is therefore sent */
#define MANY         1e9  /* verdicts, beside which what a drafter assumes before the first is nothing */

enum { MOST_TOKENS = 4096 };

_Static_assert((int)FORECAST_GUESSES == (int)MIRROR_GUESSES, "a drafter's guesses");

void forecast_line_add(struct forecast_line *line, double x, double us)
{
    if (line->count == FORECAST_POINTS)
        return;
    line->x[line->count] = x;
    line->us[line->count++] = us;
}

double forecast_line_at(const struct forecast_line *line, double x)
{
    int i = 1;
    double us;

    if (line->count < 2)
        return line->count > 0 ? line->us[0] : 0;
    if (x <= line->x[0])
        return line->us[0];
    while (i + 1 < line->count && line->x[i] < x)
        i++;
    us = line->us[i - 1] + (line->us[i] - line->us[i - 1]) * (x - line->x[i - 1]) / (line->x[i] - line->x[i - 1]);
    return us > 0 ? us : 0;
}

static double accepted_at(const struct forecast_draft *draft, int place)
{
    return draft->place[place < FORECAST_PLACES ? place : FORECAST_PLACES - 1];
}

/* A step of the drafter, of so many texts, with their tokens. */
static double draft_step(const struct forecast_draft *draft, int rows)
{
    return draft->step.count > 0 ? forecast_line_at(&draft->step, rows) + rows * draft->choose_us : 0;
}

/* How many texts a drafter goes on with while the lead verifies: as many as are whole before the commit usually comes. */
static int affordable(const struct forecast_draft *draft, const struct forecast_ranks *ranks, int length, int sequences)
{
    double window = forecast_line_at(&ranks->verify, sequences * (length + 1)) + forecast_line_at(&ranks->rest, sequences * (length + 1));
    double left = WINDOW_SHARE * window - draft_step(draft, sequences);
    int branches = 1;

    if (ranks->branches > 0)
        return ranks->branches < MIRROR_BRANCHES ? ranks->branches : MIRROR_BRANCHES;
    while (branches < MIRROR_BRANCHES && length * draft_step(draft, sequences * (branches + 1)) <= left)
        branches++;
    return branches;
}

static void fill(const struct forecast_draft *draft, struct outcomes *outcomes)
{
    double corrected = 1, bonus = 1;

    memset(outcomes, 0, sizeof *outcomes);
    for (int n = 0; n < MIRROR_GUESSES; n++) {
        corrected -= draft->corrected[n];
        bonus -= draft->bonus[n];
        outcomes->bonus[n] = MANY * draft->bonus[n];
    }
    outcomes->bonus[MIRROR_GUESSES] = MANY * bonus;
    for (int place = 0; place < MESSAGE_MAX_DRAFT; place++) {
        outcomes->tested[place] = MANY;
        outcomes->accepted[place] = MANY * accepted_at(draft, place);
        for (int n = 0; n < MIRROR_GUESSES; n++)
            outcomes->corrected[place][n] = MANY * draft->corrected[n];
        outcomes->corrected[place][MIRROR_GUESSES] = MANY * corrected;
    }
}

/* The share of rounds whose proposal is drafted before it is asked for, and in *there of those that have it without a message, too: a q takes the
 * lead time, and is sent beforehand where its text is probable enough. after: [length + 1] the first, of rounds by what was accepted before them */
static double hits(const struct forecast_draft *draft, const struct forecast_ranks *ranks, int length, int sequences, double *there, double *after)
{
    struct outcomes outcomes;
    struct outcome_choice choice[MIRROR_BRANCHES];
    int guesses[MESSAGE_MAX_DRAFT + 1], count;
    double all = 0, wire = forecast_line_at(&ranks->wire, length);

    *there = 0;
    memset(after, 0, (size_t)(length + 1) * sizeof *after);
    if (!ranks->ahead || draft->step.count == 0 || length == 0)
        return 0;
    fill(draft, &outcomes);
    for (int i = 0; i <= length; i++)
        guesses[i] = MIRROR_GUESSES;
    count = outcomes_choose(&outcomes, length, guesses, affordable(draft, ranks, length, sequences), ranks->branches > 0 ? 0 : LEAST_SHARE, choice);
    for (int i = 0; i < count; i++) {
        double share = outcomes_share(&outcomes, length, choice[i].after, choice[i].guess);

        all += share;
        after[choice[i].after] += choice[i].after < length ? draft->corrected[choice[i].guess] : draft->bonus[choice[i].guess];
        *there += draft->support == 0 || share * wire >= TAKE_US * length ? share : 0;
    }
    return all;
}

/* The times of a step with so many drafts for each sequence. */
struct parts {
    double rounds, verify, rest, wait, cold, hit;
};

static struct parts parts_of(const struct forecast_draft *draft, const struct forecast_ranks *ranks, int length, int sequences, double *hits_after)
{
    struct parts parts = {
        .rounds = 1,
        .verify = forecast_line_at(&ranks->verify, sequences * (length + 1)),
        .rest = forecast_line_at(&ranks->rest, sequences * (length + 1)),
    };
    double all_hit = 1, all_there = 1, there, wire;

    if (length == 0)
        return parts;
    wire = forecast_line_at(&ranks->wire, length);
    parts.cold = length * draft_step(draft, sequences) + wire;
    parts.hit = hits(draft, ranks, length, sequences, &there, hits_after);
    for (int s = 0; s < sequences; s++) { /* a step waits for the last of them */
        all_hit *= parts.hit;
        all_there *= there;
    }
    /* where all is there the lead sends its commits all the same, and looks: half a round trip of the smallest */
    parts.wait = (1 - all_hit) * parts.cold + (all_hit - all_there) * wire + all_there * forecast_line_at(&ranks->wire, 1) / 2;
    return parts;
}

static void add(const struct parts *parts, double weight, struct parts *to)
{
    to->rounds += weight * parts->rounds;
    to->verify += weight * parts->verify;
    to->rest += weight * parts->rest;
    to->wait += weight * parts->wait;
    to->cold += weight * parts->cold;
    to->hit += weight * parts->hit;
}

/* Adds a round with `length` drafts and what comes after it. rest: [tokens that are left] the sums of completions that lack so many */
static void add_round(const struct forecast_draft *draft, const struct parts *round, int length, double weight, int left, const struct parts *sums,
                      struct parts *to)
{
    double all = weight;

    add(round, weight, to);
    for (int accepted = 0; accepted <= length; accepted++) {
        double share = accepted < length ? all * (1 - accepted_at(draft, accepted)) : all;

        if (left > accepted + 1)
            add(&sums[left - accepted - 1], share, to);
        all -= accepted < length ? share : 0;
    }
}

static double step_us(const struct parts *parts)
{
    return parts->verify + parts->rest + parts->wait;
}

static void finish(const struct forecast_ranks *ranks, const struct parts *all, int sequences, int tokens, struct forecast *forecast)
{
    double request = ranks->outside + step_us(all) / sequences;

    forecast->tokens_per_second = request > 0 ? 1e6 * tokens / request : 0;
    forecast->tokens_per_round = tokens / all->rounds;
    forecast->round_us = step_us(all) / all->rounds;
    forecast->verify_us = all->verify / all->rounds;
    forecast->wait_us = all->wait / all->rounds;
    forecast->rest_us = all->rest / all->rounds;
    forecast->cold_us = all->cold / all->rounds;
    forecast->hit_rate = all->hit / all->rounds;
    forecast->outside_us = ranks->outside;
}

void forecast_cell(const struct forecast_draft *draft, const struct forecast_ranks *ranks, int draft_length, int sequences, int tokens,
                   struct forecast *forecast)
{
    struct parts round[FORECAST_LONGEST + 1], sums[MOST_TOKENS + 1] = {{0}};
    int most = tokens < MOST_TOKENS ? tokens : MOST_TOKENS;

    *forecast = (struct forecast){.draft_length = draft_length};
    for (int k = 0; k <= draft_length; k++)
        round[k] = parts_of(draft, ranks, k, sequences, forecast->hits_after); /* the last, of the whole length, stays */
    for (int left = 1; left <= most; left++) {
        int k = draft_length < left ? draft_length : left - 1;
        double there = k > 0 ? draft->proposals : 0;

        if (there > 0)
            add_round(draft, &round[k], k, there, left, sums, &sums[left]);
        if (there < 1)
            add_round(draft, &round[0], 0, 1 - there, left, sums, &sums[left]);
    }
    if (most > 0 && draft_length > 0) { /* nobody runs ahead of the first round */
        int k = draft_length < most ? draft_length : most - 1;

        sums[most].wait += draft->proposals * (round[k].cold - round[k].wait);
        sums[most].hit -= draft->proposals * round[k].hit;
    }
    if (most > 0)
        finish(ranks, &sums[most], sequences, most, forecast);
}

void forecast_best(const struct forecast_draft *draft, const struct forecast_ranks *ranks, int sequences, int tokens, struct forecast *forecast)
{
    forecast_cell(draft, ranks, 0, sequences, tokens, forecast);
    for (int k = 1; k <= FORECAST_CHOSEN; k++) {
        struct forecast here;

        forecast_cell(draft, ranks, k, sequences, tokens, &here);
        if (here.tokens_per_second > forecast->tokens_per_second)
            *forecast = here;
    }
}
