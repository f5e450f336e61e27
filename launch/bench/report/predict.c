#include "launch/bench/report/predict.h"

#include "launch/bench/report/theory.h"

enum { MOST_GAMMA = 32 };

enum { ENOUGH = 30 };

/* A time by a number of tokens or rows: the mean of what was measured at that number, or the line through all where that is too few. */
struct curve {
    struct line line;
    double sum[RUN_MOST_DRAFT + 2], count[RUN_MOST_DRAFT + 2];
};

/* Of one group of cells. */
struct fit {
    struct curve draft, verify, rest;
    double solo_us; /* a round of the target alone */
};

static void curve_add(struct curve *curve, int x, double us)
{
    line_add(&curve->line, x, us, 1);
    if (x < 0 || x > RUN_MOST_DRAFT + 1)
        return;
    curve->sum[x] += us;
    curve->count[x]++;
}

static double curve_at(const struct curve *curve, int x)
{
    if (x >= 0 && x <= RUN_MOST_DRAFT + 1 && curve->count[x] >= ENOUGH)
        return curve->sum[x] / curve->count[x];
    return line_at(&curve->line, x);
}

static double verify_us(const struct round *round)
{
    return round->phase_us[ROUND_VERIFY] + round->phase_us[ROUND_REDUCE];
}

static struct fit fit_group(const struct run *run, const struct run_placement *placement, const struct figures_of_placement *all, int baseline)
{
    struct fit fit = {.solo_us = all->cell[baseline].round_us};

    for (int i = 0; i < all->rounds.count; i++) {
        const struct round *round = &all->rounds.round[i];
        const struct run_pass *pass = &placement->pass[round->pass];

        if (pass->warm_up || run->cell[pass->cell].baseline != baseline || run->cell[pass->cell].sequences != 1)
            continue;
        curve_add(&fit.verify, round->rows, verify_us(round));
        if (round->drafted == 0 || round->opens) /* a drafter that reads a prompt first is slower than it usually is */
            continue;
        curve_add(&fit.draft, round->drafted, round->phase_us[ROUND_DRAFT]);
        curve_add(&fit.rest, round->drafted, round->us - verify_us(round) - round->phase_us[ROUND_DRAFT]);
    }
    return fit;
}

static double round_of(const struct fit *fit, int gamma)
{
    if (gamma == 0)
        return fit->solo_us;
    return curve_at(&fit->draft, gamma) + curve_at(&fit->verify, gamma + 1) + curve_at(&fit->rest, gamma);
}

static void choose_best(const struct fit *fit, double alpha, struct figures *figures)
{
    double best = 1;

    figures->best = theory_best_gamma(alpha, figures->c, MOST_GAMMA);
    figures->best_measured = 0;
    for (int gamma = 1; gamma <= MOST_GAMMA; gamma++) {
        double improvement = theory_tokens(alpha, gamma) * fit->solo_us / round_of(fit, gamma);

        if (improvement > best) {
            best = improvement;
            figures->best_measured = gamma;
        }
    }
}

/* Of rounds of several lengths, as many of each as there were; of a fixed draft length, of rounds of that alone. */
static void predict_cell(const struct run_cell *cell, const struct fit *fit, double c_hat, struct figures *figures)
{
    double tokens = 0, us = 0, drafts = 0, plain = 0, verify = 0, operations = 0, rounds = 0;

    for (int k = 0; k <= RUN_MOST_DRAFT; k++) {
        double weight = cell->draft_length >= 0 ? k == cell->draft_length : figures->rounds_of[k];

        rounds += weight;
        tokens += weight * theory_tokens(figures->alpha, k);
        us += weight * round_of(fit, k);
        drafts += weight * k;
        operations += weight * (k * c_hat + k + 1);
        plain += weight * (k > 0 ? curve_at(&fit->draft, k) : 0);
        verify += weight * curve_at(&fit->verify, k + 1);
    }
    if (rounds <= 0 || us <= 0 || fit->solo_us <= 0 || drafts <= 0)
        return;
    figures->c = plain / drafts / fit->solo_us;
    figures->tokens_expected = tokens / rounds;
    figures->improvement = tokens / (drafts * figures->c + rounds);
    figures->v = verify / rounds / fit->solo_us;
    figures->improvement_measured = tokens * fit->solo_us / us;
    figures->rest = us / rounds / fit->solo_us - drafts / rounds * figures->c - figures->v;
    figures->operations = operations / tokens;
    choose_best(fit, figures->alpha, figures);
}

/* measured = predicted x by_tokens x by_round x by_outside, exactly, where the speeds are means over the whole time of the passes. */
static void explain(const struct fit *fit, const struct figures *solo, struct figures *figures)
{
    double tokens = figures->rounds > 0 ? figures->output_tokens / figures->rounds : 0;
    double us = figures->tokens_expected * fit->solo_us / figures->improvement_measured;

    figures->by_tokens = tokens / figures->tokens_expected;
    figures->by_round = figures->round_us > 0 ? us / figures->round_us : 0;
    figures->by_outside = solo->outside < 1 ? (1 - figures->outside) / (1 - solo->outside) : 0;
}

static double operations_of(const json_t *json, const char *model)
{
    return json_number_value(json_object_get(json_object_get(json, model), "operations_per_token"));
}

void predict(const struct run *run, const struct run_placement *placement, struct figures_of_placement *all)
{
    double target = operations_of(run->json, "target"), draft = operations_of(run->json, "draft");

    for (int baseline = 0; baseline < run->cells; baseline++) {
        struct fit fit;

        if (!run->cell[baseline].solo || run->cell[baseline].sequences != 1)
            continue;
        fit = fit_group(run, placement, all, baseline);
        for (int i = 0; i < run->cells; i++) {
            struct figures *figures = &all->cell[i];

            if (run->cell[i].baseline != baseline || !figures_is_predicted(&run->cell[i]) || figures->alpha < 0)
                continue;
            predict_cell(&run->cell[i], &fit, target > 0 ? draft / target : 0, figures);
            if (figures->improvement_measured > 0)
                explain(&fit, &all->cell[baseline], figures);
        }
    }
}
