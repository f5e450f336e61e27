#include "launch/bench/report/account.h"

#include "common/base/try.h"
#include "launch/bench/report/theory.h"
#include <stdlib.h>

enum { MOST_GAMMA = 32, ENOUGH = 30, MOST_X = RUN_MOST_DRAFT + 1 };

/* A time by a number of tokens or rows: the mean, less its tails, of what was measured at that number, or a line through all where that is too
 * few. */
struct curve {
    struct line line;
    struct statistics at[MOST_X + 1];
};

/* Of one group of cells. */
struct fit {
    struct curve draft, verify, rest;
    struct statistics solo;
    double solo_us; /* a round of the target alone */
};

static enum status curve_add(struct curve *curve, int x, double us)
{
    return x >= 0 && x <= MOST_X ? statistics_add(&curve->at[x], us) : STATUS_OK;
}

static void curve_finish(struct curve *curve)
{
    for (int x = 0; x <= MOST_X; x++) {
        statistics_sort(&curve->at[x]);
        if (curve->at[x].count > 0)
            line_add(&curve->line, x, statistics_trimmed(&curve->at[x]), curve->at[x].count);
    }
}

static double curve_at(const struct curve *curve, int x)
{
    return x >= 0 && x <= MOST_X && curve->at[x].count >= ENOUGH ? statistics_trimmed(&curve->at[x]) : line_at(&curve->line, x);
}

static void fit_release(struct fit *fit)
{
    for (int x = 0; x <= MOST_X; x++) {
        statistics_release(&fit->draft.at[x]);
        statistics_release(&fit->verify.at[x]);
        statistics_release(&fit->rest.at[x]);
    }
    statistics_release(&fit->solo);
}

static enum status fit_round(const struct round *round, int solo, struct fit *fit)
{
    TRY(curve_add(&fit->verify, round->rows, rounds_step_us(round->phase_us)));
    if (solo)
        return statistics_add(&fit->solo, round->us);
    if (round->drafted == 0 || round->opens) /* a drafter that reads a prompt first is slower than it usually is */
        return STATUS_OK;
    TRY(curve_add(&fit->draft, round->drafted, round->phase_us[ROUND_DRAFT]));
    return curve_add(&fit->rest, round->drafted, round->us - rounds_step_us(round->phase_us) - round->phase_us[ROUND_DRAFT]);
}

static enum status fit_group(const struct run *run, const struct run_placement *placement, const struct rounds *rounds, int baseline, struct fit *fit)
{
    for (int i = 0; i < rounds->count; i++) {
        const struct run_pass *pass = &placement->pass[rounds->round[i].pass];
        const struct run_cell *cell = &run->cell[pass->cell];

        if (measured_counts(pass) && cell->baseline == baseline && cell->sequences == 1)
            TRY(fit_round(&rounds->round[i], cell->solo, fit));
    }
    curve_finish(&fit->draft);
    curve_finish(&fit->verify);
    curve_finish(&fit->rest);
    statistics_sort(&fit->solo);
    fit->solo_us = statistics_trimmed(&fit->solo);
    return STATUS_OK;
}

static double round_of(const struct fit *fit, int gamma)
{
    if (gamma == 0)
        return fit->solo_us;
    return curve_at(&fit->draft, gamma) + curve_at(&fit->verify, gamma + 1) + curve_at(&fit->rest, gamma);
}

static void choose_best(const struct fit *fit, double alpha, struct measured *measured)
{
    double best = 1;

    measured->best = theory_best_gamma(alpha, measured->c, MOST_GAMMA);
    measured->best_measured = 0;
    for (int gamma = 1; gamma <= MOST_GAMMA; gamma++) {
        double improvement = theory_tokens(alpha, gamma) * fit->solo_us / round_of(fit, gamma);

        if (improvement > best) {
            best = improvement;
            measured->best_measured = gamma;
        }
    }
}

/* Of rounds of several lengths, as many of each as there were; of a fixed draft length, of rounds of that alone. */
static void account_cell(const struct run_cell *cell, const struct fit *fit, double c_hat, struct measured *measured)
{
    double tokens = 0, us = 0, drafts = 0, plain = 0, verify = 0, operations = 0, rounds = 0;

    for (int k = 0; k <= RUN_MOST_DRAFT; k++) {
        double weight = cell->draft_length >= 0 ? k == cell->draft_length : measured->rounds_of[k];

        rounds += weight;
        tokens += weight * theory_tokens(measured->alpha, k);
        us += weight * round_of(fit, k);
        drafts += weight * k;
        operations += weight * (k * c_hat + k + 1);
        plain += weight * (k > 0 ? curve_at(&fit->draft, k) : 0);
        verify += weight * curve_at(&fit->verify, k + 1);
    }
    if (rounds <= 0 || us <= 0 || fit->solo_us <= 0 || drafts <= 0)
        return;
    measured->c = plain / drafts / fit->solo_us;
    measured->tokens_expected = tokens / rounds;
    measured->improvement = tokens / (drafts * measured->c + rounds);
    measured->v = verify / rounds / fit->solo_us;
    measured->improvement_measured = tokens * fit->solo_us / us;
    measured->rest = us / rounds / fit->solo_us - drafts / rounds * measured->c - measured->v;
    measured->operations = operations / tokens;
    choose_best(fit, measured->alpha, measured);
}

/* measured = predicted x by_tokens x by_round x by_outside x by_noise, exactly: what means over all the time of the passes do not explain of a median
 * over repetitions is noise. */
static void explain(const struct fit *fit, const struct measured *solo, struct measured *measured)
{
    double tokens = measured->rounds > 0 ? measured->output_tokens / measured->rounds : 0;
    double us = measured->tokens_expected * fit->solo_us / measured->improvement_measured;

    measured->by_tokens = tokens / measured->tokens_expected;
    measured->by_round = measured->round_us > 0 ? us / measured->round_us : 0;
    measured->by_outside = solo->outside < 1 ? (1 - measured->outside) / (1 - solo->outside) : 0;
    measured->by_noise = measured->speedup / (measured->improvement_measured * measured->by_tokens * measured->by_round * measured->by_outside);
}

static double operations_of(const json_t *json, const char *model)
{
    return json_number_value(json_object_get(json_object_get(json, model), "operations_per_token"));
}

static enum status account_group(const struct run *run, const struct run_placement *placement, int baseline, double c_hat,
                                 struct measured_placement *all)
{
    struct fit *fit = calloc(1, sizeof *fit);
    enum status status = fit != NULL ? fit_group(run, placement, &all->rounds, baseline, fit) : STATUS_INTERNAL;

    for (int i = 0; i < run->cells && status == STATUS_OK; i++) {
        struct measured *measured = &all->cell[i];

        if (run->cell[i].baseline != baseline || !measured_is_predicted(&run->cell[i]) || measured->alpha < 0)
            continue;
        account_cell(&run->cell[i], fit, c_hat, measured);
        if (measured->improvement_measured > 0)
            explain(fit, &all->cell[baseline], measured);
    }
    if (fit != NULL)
        fit_release(fit);
    free(fit);
    return status;
}

enum status account(const struct run *run, const struct run_placement *placement, struct measured_placement *all)
{
    double target = operations_of(run->json, "target"), draft = operations_of(run->json, "draft");

    for (int i = 0; i < run->cells; i++)
        if (run->cell[i].solo && run->cell[i].sequences == 1)
            TRY(account_group(run, placement, i, target > 0 ? draft / target : 0, all));
    return STATUS_OK;
}
