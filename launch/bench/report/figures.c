#include "launch/bench/report/figures.h"

#include "common/base/try.h"
#include "common/sample/rule.h"
#include "launch/bench/report/predict.h"
#include "launch/bench/report/theory.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_REQUESTS = 1 << 16 };

/* The times of one cell, of all its requests. */
struct samples {
    struct statistics speed, speedup, speedup_tpot, ttft, tpot, itl, e2el, round;
};

static void release(struct samples *samples)
{
    struct statistics *each[] = {&samples->speed, &samples->speedup, &samples->speedup_tpot, &samples->ttft,
                                 &samples->tpot,  &samples->itl,     &samples->e2el,         &samples->round};

    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        statistics_release(each[i]);
}

static struct times times_of(struct statistics *values)
{
    statistics_sort(values);
    return (struct times){.mean = statistics_mean(values),
                          .median = statistics_quantile(values, 0.5),
                          .deviation = statistics_deviation(values),
                          .p90 = statistics_quantile(values, 0.9),
                          .p99 = statistics_quantile(values, 0.99),
                          .count = values->count};
}

static double speed_of(const struct run_pass *pass)
{
    return pass->wall_ns > 0 ? (double)pass->tokens * 1e9 / (double)pass->wall_ns : 0;
}

static double tpot_ms(const struct run_end *end)
{
    return end->tokens > 1 ? (double)(end->ended_ns - end->first_ns) / 1e6 / (end->tokens - 1) : 0;
}

static double mean_tpot(const struct run_pass *pass)
{
    double sum = 0;

    for (int i = 0; i < pass->ends; i++)
        sum += tpot_ms(&pass->end[i]);
    return pass->ends > 0 ? sum / pass->ends : 0;
}

static const struct run_pass *pass_of(const struct run_placement *placement, int cell, int repetition)
{
    for (int i = 0; i < placement->passes; i++)
        if (!placement->pass[i].warm_up && placement->pass[i].cell == cell && placement->pass[i].repetition == repetition)
            return &placement->pass[i];
    return NULL;
}

static enum status add_requests(const struct run_pass *pass, struct samples *samples, struct figures *figures)
{
    for (int i = 0; i < pass->ends; i++) {
        const struct run_end *end = &pass->end[i];

        TRY(statistics_add(&samples->ttft, (double)(end->first_ns - end->started_ns) / 1e6));
        TRY(statistics_add(&samples->e2el, (double)(end->ended_ns - end->started_ns) / 1e6));
        if (end->tokens > 1)
            TRY(statistics_add(&samples->tpot, tpot_ms(end)));
        figures->input_tokens += end->prompt_tokens;
        figures->output_tokens += end->tokens;
    }
    figures->completed += pass->ends;
    return STATUS_OK;
}

static void add_counts(const struct run_pass *pass, struct figures *figures)
{
    figures->duration_s += (double)pass->wall_ns / 1e9;
    figures->rounds += (double)pass->rounds;
    figures->drafted += (double)pass->drafted;
    figures->accepted += (double)pass->accepted;
    figures->fallback_rounds += (double)pass->fallback_rounds;
    for (int i = 0; i < RUN_MOST_DRAFT; i++) {
        figures->tested[i] += (double)pass->tested[i];
        figures->stood_at[i] += (double)pass->stood[i];
        figures->judged += (double)pass->tested[i];
        figures->stood += (double)pass->stood[i];
    }
}

/* NULL: it is not known here. */
static const struct rule *rule_of_cell(const struct run_cell *cell)
{
    const struct sampling sampling = {.temperature = cell->temperature, .accept = rule_find(cell->accept, strlen(cell->accept))};

    return rule_of(&sampling);
}

/* One of a rule that is not known here may. */
static int depends_on_drafts(const struct run_cell *cell)
{
    const struct rule *rule = rule_of_cell(cell);

    return rule == NULL || rule->depends_on_drafts;
}

/* Where verdicts are drawn the two models have no say in them, and under a rule that is not lossless another. */
static int overlap_is_alpha(const struct run *run, const struct run_cell *cell)
{
    const struct rule *rule = rule_of_cell(cell);

    return !run_is_drawn(run->json) && rule != NULL && rule->lossless;
}

/* Whose output must be solo's, token for token. */
static void compare_outputs(const struct run *run, const struct run_placement *placement, int cell, struct figures *figures)
{
    const struct run_cell *here = &run->cell[cell];
    const struct run_pass *own = pass_of(placement, cell, 0), *solo = pass_of(placement, here->baseline, 0);

    figures->outputs_equal = -1;
    if (own == NULL || solo == NULL || here->solo || depends_on_drafts(here))
        return;
    figures->outputs_equal = 0;
    for (int i = 0; i < own->ends && i < solo->ends; i++)
        figures->outputs_equal += own->end[i].tokens == solo->end[i].tokens && strcmp(own->end[i].digest, solo->end[i].digest) == 0;
    figures->outputs = own->ends;
}

int figures_counts(const struct run_pass *pass)
{
    return !pass->warm_up && pass->traced;
}

static enum status take_passes(const struct run *run, const struct run_placement *placement, int cell, struct samples *samples,
                               struct figures *figures)
{
    double overlap = 0;

    for (int i = 0; i < placement->passes; i++) {
        const struct run_pass *pass = &placement->pass[i], *solo;

        if (pass->warm_up || pass->cell != cell)
            continue;
        figures->repetitions++;
        add_counts(pass, figures);
        overlap += pass->overlap;
        TRY(add_requests(pass, samples, figures));
        TRY(statistics_add(&samples->speed, speed_of(pass)));
        solo = pass_of(placement, run->cell[cell].baseline, pass->repetition);
        if (solo == NULL || speed_of(solo) <= 0 || mean_tpot(pass) <= 0)
            continue;
        TRY(statistics_add(&samples->speedup, speed_of(pass) / speed_of(solo)));
        TRY(statistics_add(&samples->speedup_tpot, mean_tpot(solo) / mean_tpot(pass)));
    }
    figures->alpha = figures->judged > 0 ? figures->stood / figures->judged : -1;
    figures->alpha_overlap = figures->judged > 0 && overlap > 0 && overlap_is_alpha(run, &run->cell[cell]) ? overlap / figures->repetitions : -1;
    return STATUS_OK;
}

/* When tokens came: all of a round at once. */
static enum status take_arrivals(const struct run_placement *placement, int cell, struct samples *samples, struct figures *figures)
{
    const struct run_rank *lead = &placement->rank[placement->lead];
    int64_t *last = calloc(MOST_REQUESTS, sizeof *last);
    int pass = -1;
    enum status status = last != NULL ? STATUS_OK : STATUS_INTERNAL;

    for (int i = 0; i < lead->spans && status == STATUS_OK; i++) {
        const struct trace_span *span = &lead->span[i];

        while (pass + 1 < placement->passes && placement->pass[pass + 1].start_ns <= span->start_ns) {
            pass++;
            memset(last, 0, MOST_REQUESTS * sizeof *last);
        }
        if (span->phase != TRACE_BROADCAST || pass < 0 || placement->pass[pass].cell != cell || !figures_counts(&placement->pass[pass]) ||
            span->request >= MOST_REQUESTS)
            continue;
        if (last[span->request] != 0) {
            double gap = (double)(span->end_ns - last[span->request]) / 1e6;

            status = statistics_add(&samples->itl, gap);
            if (status == STATUS_OK)
                status = statistics_add(&samples->round, gap);
        }
        for (int t = 1; t < span->value[0] && status == STATUS_OK; t++)
            status = statistics_add(&samples->itl, 0);
        last[span->request] = span->end_ns;
        if (span->value[1] >= 0 && span->value[1] <= RUN_MOST_DRAFT) {
            figures->rounds_of[span->value[1]]++;
            figures->tokens_of[span->value[1]] += span->value[0];
        }
    }
    free(last);
    return status;
}

static void take_rounds(const struct run_placement *placement, const struct rounds *rounds, int cell, struct figures *figures)
{
    double proposed = 0, committed = 0, whole = 0, passes_us = 0;

    for (int i = 0; i < rounds->count; i++) {
        const struct round *round = &rounds->round[i];

        if (!figures_counts(&placement->pass[round->pass]) || placement->pass[round->pass].cell != cell)
            continue;
        figures->steps++;
        figures->round_us += round->us;
        figures->wait_us += round->wait_us;
        figures->drafting_us += round->drafting_us;
        figures->hidden_us += round->drafting_us - round->phase_us[ROUND_DRAFT];
        for (int p = 0; p < ROUND_PHASES; p++)
            figures->phase_us[p] += round->phase_us[p];
        if (round->propose_us >= 0) {
            figures->propose_us += round->propose_us;
            proposed++;
        }
        if (round->commit_us >= 0) {
            figures->commit_us += round->commit_us;
            committed++;
        }
    }
    for (int i = 0; i < placement->passes; i++)
        if (placement->pass[i].cell == cell && figures_counts(&placement->pass[i]))
            passes_us += (double)placement->pass[i].wall_ns / 1000;
    whole = figures->round_us;
    figures->outside = passes_us > 0 ? 1 - whole / passes_us : 0;
    figures->propose_us = proposed > 0 ? figures->propose_us / proposed : 0;
    figures->commit_us = committed > 0 ? figures->commit_us / committed : 0;
    if (figures->steps <= 0)
        return;
    figures->round_us /= figures->steps;
    figures->wait_us /= figures->steps;
    figures->drafting_us /= figures->steps;
    figures->hidden_us /= figures->steps;
    for (int p = 0; p < ROUND_PHASES; p++)
        figures->phase_us[p] /= figures->steps;
}

static void sum_up(struct samples *samples, struct figures *figures)
{
    static const double at[] = {0.5, 0.9, 0.99, 0.999, 1};
    double median;

    statistics_sort(&samples->speed);
    statistics_sort(&samples->speedup);
    statistics_sort(&samples->speedup_tpot);
    median = statistics_quantile(&samples->speed, 0.5);
    figures->tokens_per_second = median;
    figures->tokens_per_second_spread = median > 0 ? statistics_spread(&samples->speed) / median : 0;
    median = statistics_quantile(&samples->speedup, 0.5);
    figures->speedup = median;
    figures->speedup_spread = median > 0 ? statistics_spread(&samples->speedup) / median : 0;
    figures->speedup_tpot = statistics_quantile(&samples->speedup_tpot, 0.5);
    figures->ttft = times_of(&samples->ttft);
    figures->tpot = times_of(&samples->tpot);
    figures->itl = times_of(&samples->itl);
    figures->e2el = times_of(&samples->e2el);
    figures->round = times_of(&samples->round);
    for (int i = 0; i < 5; i++)
        figures->arrival_ms[i] = statistics_quantile(&samples->round, at[i]);
}

static enum status compute_cell(const struct run *run, const struct run_placement *placement, const struct rounds *rounds, int cell,
                                struct figures *figures)
{
    struct samples samples = {0};
    enum status status;

    TRY_TO(take_passes(run, placement, cell, &samples, figures), release_samples);
    TRY_TO(take_arrivals(placement, cell, &samples, figures), release_samples);
    take_rounds(placement, rounds, cell, figures);
    compare_outputs(run, placement, cell, figures);
    sum_up(&samples, figures);
    double tokens = 0;
    for (int k = 0; k <= RUN_MOST_DRAFT; k++)
        tokens += figures->tokens_of[k];
    figures->alpha_tokens = figures->judged > 0 ? theory_alpha_mixed(figures->rounds_of, RUN_MOST_DRAFT, tokens) : -1;
release_samples:
    release(&samples);
    return status;
}

enum status figures_compute(const struct run *run, struct figures_of_placement *all)
{
    for (int p = 0; p < run->placements; p++) {
        TRY(rounds_build(&run->placement[p], &all[p].rounds));
        for (int i = 0; i < run->cells; i++)
            TRY(compute_cell(run, &run->placement[p], &all[p].rounds, i, &all[p].cell[i]));
        TRY(predict(run, &run->placement[p], &all[p]));
    }
    return STATUS_OK;
}

void figures_release(const struct run *run, struct figures_of_placement *all)
{
    for (int p = 0; p < run->placements; p++)
        rounds_release(&all[p].rounds);
}

double figures_noise(const struct run *run, const struct figures_of_placement *all, double *worst)
{
    struct statistics spreads = {0};
    double noise;

    for (int p = 0; p < run->placements; p++)
        for (int i = 0; i < run->cells; i++)
            if (!run->cell[i].solo && all[p].cell[i].repetitions > 0 && statistics_add(&spreads, all[p].cell[i].speedup_spread) != STATUS_OK)
                break;
    statistics_sort(&spreads);
    noise = statistics_quantile(&spreads, 0.5);
    *worst = statistics_quantile(&spreads, 1);
    statistics_release(&spreads);
    return noise;
}

int figures_best(const struct run *run, const struct figures_of_placement *all, int baseline)
{
    int best = -1;

    if (!run->cell[baseline].solo || run->cell[baseline].sequences != 1)
        return best;
    for (int i = 0; i < run->cells; i++)
        if (run->cell[i].baseline == baseline && !run->cell[i].solo && run->cell[i].draft_length > 0 && all->cell[i].repetitions > 0 &&
            (best < 0 || all->cell[i].speedup > all->cell[best].speedup))
            best = i;
    return best;
}

int figures_is_predicted(const struct run_cell *cell)
{
    return !cell->solo && cell->sequences == 1 && cell->draft_length != 0;
}
