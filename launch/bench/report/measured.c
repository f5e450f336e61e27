#include "launch/bench/report/measured.h"

#include "common/base/median.h"
#include "common/base/try.h"
#include "launch/bench/report/account.h"
#include "launch/bench/report/forecast_file.h"
#include "launch/bench/report/theory.h"
#include <math.h>
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

static enum status add_requests(const struct run_pass *pass, struct samples *samples, struct measured *measured)
{
    for (int i = 0; i < pass->ends; i++) {
        const struct run_end *end = &pass->end[i];

        TRY(statistics_add(&samples->ttft, (double)(end->first_ns - end->started_ns) / 1e6));
        TRY(statistics_add(&samples->e2el, (double)(end->ended_ns - end->started_ns) / 1e6));
        if (end->tokens > 1)
            TRY(statistics_add(&samples->tpot, tpot_ms(end)));
        measured->input_tokens += end->prompt_tokens;
        measured->output_tokens += end->tokens;
    }
    measured->completed += pass->ends;
    return STATUS_OK;
}

static void add_hits(const struct run_hits *hits, struct run_hits *to)
{
    to->rounds += hits->rounds;
    to->hits += hits->hits;
}

static void add_counts(const struct run_pass *pass, struct measured *measured)
{
    measured->duration_s += (double)pass->wall_ns / 1e9;
    measured->rounds += (double)pass->rounds;
    measured->drafted += (double)pass->drafted;
    measured->accepted += (double)pass->accepted;
    measured->fallback_rounds += (double)pass->fallback_rounds;
    add_hits(&pass->hits, &measured->hits);
    add_hits(&pass->hits_after_all, &measured->hits_after_all);
    for (int i = 0; i < RUN_MOST_DRAFT; i++) {
        add_hits(&pass->hits_after[i], &measured->hits_after[i]);
        measured->tested[i] += (double)pass->tested[i];
        measured->accepted_at[i] += (double)pass->accepted_at[i];
        measured->all_tested += (double)pass->tested[i];
        measured->all_accepted += (double)pass->accepted_at[i];
    }
}

/* One of a rule that is not known here may. */
static int depends_on_drafts(const struct run_cell *cell)
{
    const struct rule *rule = run_rule(cell->temperature, cell->accept);

    return rule == NULL || rule->depends_on_drafts;
}

/* Where verdicts are drawn the two models have no say in them, and under some rules another. */
static int overlap_is_alpha(const struct run *run, const struct run_cell *cell)
{
    const struct rule *rule = run_rule(cell->temperature, cell->accept);

    return !run_is_drawn(run->json) && rule != NULL && rule->lossless && rule->overlaps;
}

/* A rule of point masses that share noise accepts where both draw the same, which is another share than sum min(p, q). */
static int overlap_is_hidden(const struct run_cell *cell)
{
    const struct rule *rule = run_rule(cell->temperature, cell->accept);

    return rule != NULL && rule->draw == RULE_DRAWS_NOISE;
}

/* Whose output must be solo's, token for token. */
static void compare_outputs(const struct run *run, const struct run_placement *placement, int cell, struct measured *measured)
{
    const struct run_cell *here = &run->cell[cell];
    const struct run_pass *own = pass_of(placement, cell, 0), *solo = pass_of(placement, here->baseline, 0);

    measured->outputs_equal = -1;
    if (own == NULL || solo == NULL || here->solo || depends_on_drafts(here))
        return;
    measured->outputs_equal = 0;
    for (int i = 0; i < own->ends && i < solo->ends; i++)
        measured->outputs_equal += own->end[i].tokens == solo->end[i].tokens && strcmp(own->end[i].digest, solo->end[i].digest) == 0;
    measured->outputs = own->ends;
}

int measured_counts(const struct run_pass *pass)
{
    return !pass->warm_up && pass->traced;
}

/* Drafts that a pass tested: of those its overlap is the mean. */
static double tests_of(const struct run_pass *pass)
{
    double tests = 0;

    for (int i = 0; i < RUN_MOST_DRAFT; i++)
        tests += (double)pass->tested[i];
    return tests;
}

static enum status take_passes(const struct run *run, const struct run_placement *placement, int cell, struct samples *samples,
                               struct measured *measured)
{
    double overlap = 0;

    for (int i = 0; i < placement->passes; i++) {
        const struct run_pass *pass = &placement->pass[i], *solo;

        if (pass->warm_up || pass->cell != cell)
            continue;
        measured->repetitions++;
        add_counts(pass, measured);
        overlap += pass->overlap * tests_of(pass);
        TRY(add_requests(pass, samples, measured));
        TRY(statistics_add(&samples->speed, speed_of(pass)));
        solo = pass_of(placement, run->cell[cell].baseline, pass->repetition);
        if (solo == NULL || speed_of(solo) <= 0)
            continue;
        TRY(statistics_add(&samples->speedup, speed_of(pass) / speed_of(solo)));
        if (mean_tpot(pass) > 0) /* some text has a second token */
            TRY(statistics_add(&samples->speedup_tpot, mean_tpot(solo) / mean_tpot(pass)));
    }
    measured->alpha = measured->all_tested > 0 ? measured->all_accepted / measured->all_tested : -1;
    measured->overlap_hidden = overlap_is_hidden(&run->cell[cell]);
    measured->alpha_overlap = measured->all_tested > 0 && overlap > 0 && !measured->overlap_hidden && overlap_is_alpha(run, &run->cell[cell])
                                  ? overlap / measured->all_tested
                                  : -1;
    return STATUS_OK;
}

/* When tokens came: all of a round at once. */
static enum status take_arrivals(const struct run_placement *placement, int cell, struct samples *samples, struct measured *measured)
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
        if (span->phase != TRACE_BROADCAST || pass < 0 || placement->pass[pass].cell != cell || !measured_counts(&placement->pass[pass]) ||
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
            measured->rounds_of[span->value[1]]++;
            measured->tokens_of[span->value[1]] += span->value[0];
        }
    }
    free(last);
    return status;
}

static void take_rounds(const struct run_placement *placement, const struct rounds *rounds, int cell, struct measured *measured)
{
    double proposed = 0, committed = 0, whole = 0, passes_us = 0, usual = 0, usual_us = 0, steps_us;

    for (int i = 0; i < rounds->count; i++) {
        const struct round *round = &rounds->round[i];

        if (!measured_counts(&placement->pass[round->pass]) || placement->pass[round->pass].cell != cell)
            continue;
        measured->steps++;
        measured->round_us += round->us;
        measured->wait_us += round->wait_us;
        measured->drafting_us += round->drafting_us;
        measured->hidden_us += round->drafting_us - round->phase_us[ROUND_DRAFT];
        for (int p = 0; p < ROUND_PHASES; p++)
            measured->phase_us[p] += round->phase_us[p];
        usual += !round->opens;
        usual_us += round->opens ? 0 : rounds_step_us(round->phase_us);
        if (round->propose_us != ROUND_UNKNOWN) {
            measured->propose_us += round->propose_us;
            proposed++;
        }
        if (round->commit_us != ROUND_UNKNOWN) {
            measured->commit_us += round->commit_us;
            committed++;
        }
    }
    for (int i = 0; i < placement->passes; i++)
        if (placement->pass[i].cell == cell && measured_counts(&placement->pass[i]))
            passes_us += (double)placement->pass[i].wall_ns / 1000;
    whole = measured->round_us;
    measured->outside = passes_us > 0 ? 1 - whole / passes_us : 0;
    measured->propose_us = proposed > 0 ? measured->propose_us / proposed : 0;
    measured->commit_us = committed > 0 ? measured->commit_us / committed : 0;
    if (measured->steps <= 0)
        return;
    measured->round_us /= measured->steps;
    measured->wait_us /= measured->steps;
    measured->drafting_us /= measured->steps;
    measured->hidden_us /= measured->steps;
    for (int p = 0; p < ROUND_PHASES; p++)
        measured->phase_us[p] /= measured->steps;
    steps_us = rounds_step_us(measured->phase_us);
    measured->reading_us = usual > 0 ? fmax(0, steps_us - usual_us / usual) : 0;
}

static void sum_up(struct samples *samples, struct measured *measured)
{
    static const double at[] = {0.5, 0.9, 0.99, 0.999, 1};
    double median;

    statistics_sort(&samples->speed);
    statistics_sort(&samples->speedup);
    statistics_sort(&samples->speedup_tpot);
    median = statistics_quantile(&samples->speed, 0.5);
    measured->tokens_per_second = median;
    measured->tokens_per_second_spread = median > 0 ? statistics_spread(&samples->speed) / median : 0;
    median = statistics_quantile(&samples->speedup, 0.5);
    measured->speedup = median;
    measured->speedup_spread = median > 0 ? statistics_spread(&samples->speedup) / median : 0;
    measured->speedup_error = median > 0 ? median_error_of_sorted(samples->speedup.value, samples->speedup.count) / median : 0;
    measured->speedup_tpot = statistics_quantile(&samples->speedup_tpot, 0.5);
    measured->ttft = times_of(&samples->ttft);
    measured->tpot = times_of(&samples->tpot);
    measured->itl = times_of(&samples->itl);
    measured->e2el = times_of(&samples->e2el);
    measured->round = times_of(&samples->round);
    for (int i = 0; i < 5; i++)
        measured->arrival_ms[i] = statistics_quantile(&samples->round, at[i]);
}

static enum status compute_cell(const struct run *run, const struct run_placement *placement, const struct rounds *rounds, int cell,
                                struct measured *measured)
{
    struct samples samples = {0};
    enum status status;

    TRY_TO(take_passes(run, placement, cell, &samples, measured), release_samples);
    TRY_TO(take_arrivals(placement, cell, &samples, measured), release_samples);
    take_rounds(placement, rounds, cell, measured);
    compare_outputs(run, placement, cell, measured);
    sum_up(&samples, measured);
    double tokens = 0;
    for (int k = 0; k <= RUN_MOST_DRAFT; k++)
        tokens += measured->tokens_of[k];
    measured->alpha_tokens = measured->all_tested > 0 ? theory_alpha_mixed(measured->rounds_of, RUN_MOST_DRAFT, tokens) : -1;
release_samples:
    release(&samples);
    return status;
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void take_forecast(const json_t *from, struct measured *measured)
{
    double length = fmin(fmax(number(from, "draft_length"), 0), FORECAST_LONGEST); /* a damaged file may have any */

    measured->forecast = (struct forecast){.draft_length = (int)length,
                                           .tokens_per_second = number(from, "tokens_per_second"),
                                           .tokens_per_round = number(from, "tokens_per_round"),
                                           .round_us = number(from, "round_us"),
                                           .verify_us = number(from, "verify_us"),
                                           .wait_us = number(from, "wait_us"),
                                           .rest_us = number(from, "rest_us"),
                                           .outside_us = number(from, "outside_us"),
                                           .cold_us = number(from, "cold_wait_us"),
                                           .hit_rate = number(from, "hit_rate")};
    for (int i = 0; i <= FORECAST_LONGEST; i++)
        measured->forecast.hits_after[i] = json_number_value(json_array_get(json_object_get(from, "hits_after"), (size_t)i));
    measured->forecast_speedup = number(from, "speedup");
    measured->forecast_alpha = from != NULL ? number(from, "alpha") : -1;
    measured->forecast_overlap = from != NULL ? number(from, "overlap") : -1;
}

enum status measured_compute(const struct run *run, struct measured_placement *all)
{
    for (int p = 0; p < run->placements; p++) {
        TRY(rounds_build(&run->placement[p], &all[p].rounds));
        for (int i = 0; i < run->cells; i++)
            TRY(compute_cell(run, &run->placement[p], &all[p].rounds, i, &all[p].cell[i]));
        TRY(account(run, &run->placement[p], &all[p]));
        for (int i = 0; i < run->cells; i++)
            take_forecast(forecast_of(run, run->placement[p].name, i), &all[p].cell[i]);
    }
    return STATUS_OK;
}

void measured_release(const struct run *run, struct measured_placement *all)
{
    for (int p = 0; p < run->placements; p++)
        rounds_release(&all[p].rounds);
}

static double limit_of(const struct run *run)
{
    return json_number_value(json_object_get(run->json, "noise_limit"));
}

int measured_is_noisy(const struct run *run, const struct measured *measured)
{
    return measured->speedup_error > limit_of(run);
}

static enum status add_noise(const struct run *run, const struct measured *measured, struct statistics *spreads, struct statistics *errors,
                             struct measured_noise *noise)
{
    noise->beyond += measured_is_noisy(run, measured);
    noise->least = noise->cells == 0 || measured->repetitions < noise->least ? measured->repetitions : noise->least;
    noise->most = measured->repetitions > noise->most ? measured->repetitions : noise->most;
    noise->cells++;
    TRY(statistics_add(spreads, measured->speedup_spread));
    return statistics_add(errors, measured->speedup_error);
}

struct measured_noise measured_noise(const struct run *run, const struct measured_placement *all, int placements)
{
    struct measured_noise noise = {.limit = limit_of(run)};
    struct statistics spreads = {0}, errors = {0};

    for (int p = 0; p < placements; p++)
        for (int i = 0; i < run->cells; i++)
            if (!run->cell[i].solo && all[p].cell[i].repetitions > 0 && add_noise(run, &all[p].cell[i], &spreads, &errors, &noise) != STATUS_OK)
                break;
    statistics_sort(&spreads);
    statistics_sort(&errors);
    noise.spread = statistics_quantile(&spreads, 0.5);
    noise.spread_worst = statistics_quantile(&spreads, 1);
    noise.error = statistics_quantile(&errors, 0.5);
    noise.error_worst = statistics_quantile(&errors, 1);
    statistics_release(&spreads);
    statistics_release(&errors);
    return noise;
}

int measured_withholds(const struct measured_noise *noise)
{
    return 2 * noise->beyond > noise->cells;
}

int measured_best(const struct run *run, const struct measured_placement *all, int baseline)
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

int measured_is_predicted(const struct run_cell *cell)
{
    return !cell->solo && cell->sequences == 1 && cell->draft_length != 0;
}
