#include "launch/bench/report/forecast_table.h"

#include "launch/bench/report/summary.h"
#include <math.h>
#include <string.h>

#define NEAR 0.1

const char forecast_why[] =
    "Said before any draft was made, in prediction.json: acceptance by place from `tandem alpha` (the target's own texts, nothing drafted), v from "
    "steps "
    "of the target alone with as many rows, the draft's steps from the same offline run, messages from the latency test of these ranks. `step` is "
    "the "
    "verifying step with its sums, `wait` the lead's wait for drafts, both microseconds of a mean round; `hit` is the share of proposals that were "
    "drafted ahead. `auto` is predicted as the best fixed length.";

const char forecast_hits_why[] =
    "The share of proposals that were drafted before they were asked for, by what came of the round before: all of its drafts were accepted, or the "
    "first, second, third, fourth or a later one was rejected. `88 % (90) of 265`: 88 % of 265 proposals, where 90 % were predicted. A rejection "
    "says "
    "where the draft model errs, so its next guesses hit less often than those behind drafts that all stand.";

static int is_near(double measured, double predicted)
{
    return fabs(measured / predicted - 1) <= NEAR;
}

struct forecast_score forecast_score(const struct run *run, const struct measured_placement *all)
{
    struct forecast_score score = {0};

    for (int i = 0; i < run->cells; i++) {
        const struct measured *f = &all->cell[i];
        int near;

        if (f->repetitions == 0)
            continue;
        if (f->forecast.tokens_per_second <= 0) {
            score.others += !run->cell[i].solo;
            continue;
        }
        near = is_near(f->tokens_per_second, f->forecast.tokens_per_second);
        if (run->cell[i].solo) {
            score.solo_cells++;
            score.solo_near += near;
            continue;
        }
        score.cells++;
        score.near += near;
        score.near_speedup += f->forecast_speedup > 0 && is_near(f->speedup, f->forecast_speedup);
        score.farthest = fmax(score.farthest, fabs(f->tokens_per_second / f->forecast.tokens_per_second - 1));
    }
    return score;
}

/* Of a round's step, without the reading of prompts, which is predicted with what lies outside of rounds. */
static double step_of(const struct measured *f)
{
    return rounds_step_us(f->phase_us) - f->reading_us;
}

static double rest_of(const struct measured *f)
{
    return f->round_us - step_of(f) - f->reading_us - f->wait_us;
}

static double tokens_of(const struct measured *f)
{
    return f->rounds > 0 ? f->output_tokens / f->rounds : 0;
}

static double share_of(struct run_hits hits)
{
    return hits.rounds > 0 ? (double)hits.hits / (double)hits.rounds : 0;
}

/* What a request took outside of rounds, for each of its rounds: predicted, and measured. */
static double outside_predicted(const struct measured *f)
{
    double rounds = f->completed > 0 ? f->output_tokens / f->completed / f->forecast.tokens_per_round : 0;

    return rounds > 0 ? f->forecast.outside_us / rounds : 0;
}

static double outside_measured(const struct measured *f)
{
    return f->reading_us + (f->outside < 1 ? f->round_us * f->outside / (1 - f->outside) : 0);
}

void forecast_blame(const struct measured *f, double *part)
{
    double whole = f->forecast.round_us + outside_predicted(f), hits = f->forecast.hit_rate - share_of(f->hits), wait = f->wait_us - f->forecast.wait_us;
    double of_hits = hits * f->forecast.cold_us;

    memset(part, 0, FORECAST_PARTS * sizeof *part);
    if (whole <= 0 || f->forecast.tokens_per_round <= 0)
        return;
    part[FORECAST_ACCEPTANCE] = tokens_of(f) / f->forecast.tokens_per_round - 1;
    part[FORECAST_STEP] = (f->forecast.verify_us - step_of(f)) / whole;
    part[FORECAST_HITS] = -of_hits / whole;
    part[FORECAST_WAIT] = -(wait - of_hits) / whole;
    part[FORECAST_REST] = (f->forecast.rest_us - rest_of(f)) / whole;
    part[FORECAST_OUTSIDE] = (outside_predicted(f) - outside_measured(f)) / whole;
}

/* The part that moved the speed most in the direction in which it is off. */
static enum forecast_part worst(const struct measured *f, double off)
{
    double part[FORECAST_PARTS];
    int most = 0;

    forecast_blame(f, part);
    for (int i = 1; i < FORECAST_PARTS; i++)
        if (part[i] * off > part[most] * off)
            most = i;
    return (enum forecast_part)most;
}

/* Was it left to the lead whether to draft, and did it mostly not, where drafts were predicted? Then no part of a round is to blame. */
static int has_rested(const struct run_cell *cell, const struct measured *f)
{
    return cell->draft_length < 0 && f->forecast.draft_length > 0 && 2 * ((double)f->hits.rounds + f->fallback_rounds) < f->rounds;
}

static void write_reason(const struct run_cell *cell, const struct measured *f, double off, FILE *to)
{
    if (has_rested(cell, f)) {
        fprintf(to, "the lead drafted in %.0f %% of rounds, which %d drafts were predicted to be faster than",
                100 * (double)f->hits.rounds / f->rounds, f->forecast.draft_length);
        return;
    }
    switch (worst(f, off)) {
    case FORECAST_ACCEPTANCE:
        fprintf(to, "acceptance: %.2f tokens a round, %.2f predicted from other prompts", tokens_of(f), f->forecast.tokens_per_round);
        break;
    case FORECAST_STEP:
        fprintf(to, "v: the verifying step took %.0f us, %.0f predicted", step_of(f), f->forecast.verify_us);
        break;
    case FORECAST_HITS:
        fprintf(to, "running ahead: %.0f %% of proposals were there before they were asked for, %.0f %% predicted", 100 * share_of(f->hits),
                100 * f->forecast.hit_rate);
        break;
    case FORECAST_WAIT:
        fprintf(to, "drafting and wire: the lead waited %.0f us a round, %.0f predicted", f->wait_us, f->forecast.wait_us);
        break;
    case FORECAST_REST:
        fprintf(to, "the rest of a round, deciding and commits: %.0f us, %.0f predicted", rest_of(f), f->forecast.rest_us);
        break;
    default:
        fprintf(to, "time outside of rounds, prompts: %.0f us a round, %.0f predicted", outside_measured(f), outside_predicted(f));
        break;
    }
}

const char *forecast_prompts(const struct run *run)
{
    const char *split = json_string_value(json_object_get(json_object_get(run->prediction, "calibration"), "prompts"));

    return split != NULL ? split : "";
}

void forecast_verdict(const struct run *run, const struct measured_placement *all, const char *begin, const char *end, FILE *to)
{
    const struct forecast_score score = forecast_score(run, all);
    int told = 0;

    if (score.cells + score.solo_cells == 0)
        return;
    fprintf(to,
            "%sPredicted before any draft was made: tokens/s within 10 %% for %d of %d cells with drafts (%.0f %%), the farthest off by %.1f %%; "
            "their speedups over solo for %d of %d; solo cells %d of %d. Calibrated on ",
            begin, score.near, score.cells, score.cells > 0 ? 100.0 * score.near / score.cells : 0.0, 100 * score.farthest, score.near_speedup,
            score.cells, score.solo_near, score.solo_cells);
    table_escape(to, forecast_prompts(run));
    if (score.others > 0)
        fprintf(to, ". The offline run tells nothing of the rules of %d other cells with drafts", score.others);
    fprintf(to, ".%s", end);
    for (int i = 0; i < run->cells; i++) {
        const struct measured *f = &all->cell[i];
        double off = f->forecast.tokens_per_second > 0 ? f->tokens_per_second / f->forecast.tokens_per_second - 1 : 0;
        char name[128];

        if (fabs(off) <= NEAR || f->repetitions == 0)
            continue;
        summary_name(&run->cell[i], name, sizeof name);
        fprintf(to, "%s%s: %+.1f %% (", told++ == 0 ? begin : "; ", name, 100 * off);
        write_reason(&run->cell[i], f, off, to);
        fputc(')', to);
    }
    if (told > 0)
        fprintf(to, ".%s", end);
}

void table_forecast(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to)
{
    static struct table table;

    table_begin(&table, to, form,
                "<cell,tokens/s predicted,measured,off %,speedup predicted,measured,tokens/round predicted,measured,step predicted,measured,wait "
                "predicted,measured,hit % predicted,measured,<failed");
    for (int i = 0; i < run->cells; i++) {
        static const char *const part[] = {"acceptance", "v", "running ahead", "drafting and wire", "rest of a round", "outside of rounds"};
        const struct measured *f = &all->cell[i];
        double off = f->forecast.tokens_per_second > 0 ? f->tokens_per_second / f->forecast.tokens_per_second - 1 : 0;
        char name[128];

        if (f->forecast.tokens_per_second <= 0 || f->repetitions == 0)
            continue;
        summary_name(&run->cell[i], name, sizeof name);
        table_row(&table, "%s\t%.0f\t%.0f\t%+.1f\t%.2fx\t%.2fx\t%.2f\t%.2f\t%.0f\t%.0f\t%.1f\t%.1f\t%.0f\t%.0f\t%s", name,
                  f->forecast.tokens_per_second, f->tokens_per_second, 100 * off, f->forecast_speedup, run->cell[i].solo ? 1.0 : f->speedup,
                  f->forecast.tokens_per_round, tokens_of(f), f->forecast.verify_us, step_of(f), f->forecast.wait_us, f->wait_us,
                  100 * f->forecast.hit_rate, 100 * share_of(f->hits),
                  fabs(off) <= NEAR              ? ""
                  : has_rested(&run->cell[i], f) ? "seldom drafted"
                                                 : part[worst(f, off)]);
    }
    table_end(&table);
}

enum { HITS_SHOWN = 4 /* places of a draft, one by one */, HITS_TEXT = 40 };

static void write_hits(struct run_hits hits, int is_predicted, double predicted, char *text)
{
    char said[16] = "";

    text[0] = '\0';
    if (hits.rounds == 0)
        return;
    if (is_predicted)
        snprintf(said, sizeof said, " (%.0f)", 100 * predicted);
    snprintf(text, HITS_TEXT, "%.0f %%%s of %lld", 100 * share_of(hits), said, (long long)hits.rounds);
}

/* Of places from the fifth on, together. */
static struct run_hits hits_later(const struct measured *f)
{
    struct run_hits later = {0, 0};

    for (int i = HITS_SHOWN; i < RUN_MOST_DRAFT; i++) {
        later.rounds += f->hits_after[i].rounds;
        later.hits += f->hits_after[i].hits;
    }
    return later;
}

int table_has_hits(const struct run *run, const struct measured_placement *all)
{
    for (int i = 0; i < run->cells; i++)
        if (all->cell[i].hits.hits > 0)
            return 1;
    return 0;
}

void table_hits(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to)
{
    static struct table table;

    table_begin(&table, to, form, "<cell,<all,<all accepted,<first rejected,<second,<third,<fourth,<a later one");
    for (int i = 0; i < run->cells; i++) {
        const struct measured *f = &all->cell[i];
        const struct forecast *said = &f->forecast;
        char name[128], whole[HITS_TEXT], accepted[HITS_TEXT], later[HITS_TEXT], at[HITS_SHOWN][HITS_TEXT];
        int length = said->tokens_per_second > 0 ? said->draft_length : 0;

        if (run->cell[i].solo || f->hits.rounds == 0)
            continue;
        summary_name(&run->cell[i], name, sizeof name);
        write_hits(f->hits, length > 0, said->hit_rate, whole);
        write_hits(f->hits_after_all, length > 0, said->hits_after[length], accepted);
        for (int n = 0; n < HITS_SHOWN; n++)
            write_hits(f->hits_after[n], n < length, said->hits_after[n], at[n]);
        write_hits(hits_later(f), 0, 0, later);
        table_row(&table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", name, whole, accepted, at[0], at[1], at[2], at[3], later);
    }
    table_end(&table);
}
