#include "launch/bench/report/summary.h"

#include "common/file/json_text.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

void summary_name(const struct run_cell *cell, char *name, size_t size)
{
    char terms[RUN_TERMS], length[32], sequences[32] = "";

    if (cell->solo && cell->draft_length > 0) /* of a calibration */
        snprintf(length, sizeof length, "solo, %d rows more", cell->draft_length);
    else
        snprintf(length, sizeof length, cell->solo ? "solo" : cell->draft_length < 0 ? "K auto" : "K %d", cell->draft_length);
    if (cell->sequences > 1)
        snprintf(sequences, sizeof sequences, ", %d sequences", cell->sequences);
    snprintf(name, size, "%s%s, %s", run_terms(cell, terms), sequences, length);
}

static int set_times(json_t *to, const char *name, const struct times *times)
{
    const double value[] = {times->mean, times->median, times->deviation, times->median, times->p90, times->p99};
    static const char *const which[] = {"mean", "median", "std", "p50", "p90", "p99"};
    char key[64];
    int failed = 0;

    for (int i = 0; i < 6; i++) {
        snprintf(key, sizeof key, "%s_%s_ms", which[i], name);
        failed |= json_object_set_new(to, key, json_real(value[i]));
    }
    return failed;
}

static json_t *ratios(const double *part, const double *whole, double fixed)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < RUN_MOST_DRAFT && whole[i] > 0; i++)
        failed |= json_array_append_new(array, json_real(part[i] / (fixed > 0 ? fixed : whole[i])));
    return json_text_whole(array, failed);
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* A number, or null where it cannot be told. */
static json_t *real_or_null(double value, int known)
{
    return known && isfinite(value) ? json_real(value) : json_null();
}

/* Proposals, and those that were drafted ahead. predicted: less than 0 where nothing was */
static json_t *hits_of(struct run_hits hits, double predicted)
{
    return json_pack("{s:I, s:I, s:o, s:o}", "proposals", (json_int_t)hits.rounds, "hits", (json_int_t)hits.hits, "hit_rate",
                     real_or_null(share((double)hits.hits, (double)hits.rounds), hits.rounds > 0), "predicted", real_or_null(predicted, predicted >= 0));
}

/* By what came of the round before; places of a draft up to the last at which one was rejected. */
static json_t *run_ahead_of(const struct measured *measured)
{
    const struct forecast *said = &measured->forecast;
    int length = said->tokens_per_second > 0 ? said->draft_length : 0, places = RUN_MOST_DRAFT;
    json_t *rejected = json_array();

    while (places > 0 && measured->hits_after[places - 1].rounds == 0)
        places--;
    for (int i = 0; i < places; i++)
        json_array_append_new(rejected, hits_of(measured->hits_after[i], i < length ? said->hits_after[i] : -1));
    return json_pack("{s:o, s:o, s:o}", "all", hits_of(measured->hits, length > 0 ? said->hit_rate : -1), "all_accepted",
                     hits_of(measured->hits_after_all, length > 0 ? said->hits_after[length] : -1), "rejected", rejected);
}

static json_t *speculation_of(const struct measured *measured)
{
    double drafts = measured->tested[0]; /* each round that had some tested its first, also where spans were lost */

    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:f, s:f}", "spec_decode_acceptance_rate",
                     100 * share(measured->accepted, measured->drafted), "spec_decode_acceptance_length",
                     drafts > 0 ? 1 + measured->accepted / drafts : 1, "spec_decode_num_drafts", drafts, "spec_decode_draft_tokens",
                     measured->drafted, "spec_decode_accepted_tokens", measured->accepted, "spec_decode_per_position_acceptance_rates",
                     ratios(measured->accepted_at, measured->tested, drafts), "accepted_of_tested_per_position",
                     ratios(measured->accepted_at, measured->tested, 0), "tokens_per_round", share(measured->output_tokens, measured->rounds),
                     "fallback_rounds", measured->fallback_rounds);
}

/* sum min(p, q): D_LK is 1 less it. */
static double distance_of(const struct measured *measured)
{
    return measured->overlap_hidden ? measured->forecast_overlap : measured->alpha_overlap;
}

static json_t *theory_of(const struct measured *measured)
{
    int known = measured->improvement > 0;

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "alpha",
                     real_or_null(measured->alpha, measured->alpha >= 0), "alpha_mean_sum_min_p_q",
                     real_or_null(measured->alpha_overlap, measured->alpha_overlap >= 0), "alpha_from_tokens_per_round",
                     real_or_null(measured->alpha_tokens, measured->alpha_tokens >= 0), "d_lk",
                     real_or_null(1 - distance_of(measured), distance_of(measured) >= 0), "c", real_or_null(measured->c, known), "v",
                     real_or_null(measured->v, known), "rest", real_or_null(measured->rest, known), "expected_tokens_per_round",
                     real_or_null(measured->tokens_expected, known), "theorem_3_8_improvement", real_or_null(measured->improvement, known),
                     "improvement_with_measured_v_and_wire", real_or_null(measured->improvement_measured, known), "theorem_3_11_operations",
                     real_or_null(measured->operations, known), "best_gamma_theorem_3_8", known ? json_integer(measured->best) : json_null(),
                     "best_gamma_with_measured_v_and_wire", known ? json_integer(measured->best_measured) : json_null(), "residual_tokens",
                     real_or_null(measured->by_tokens, known), "residual_round", real_or_null(measured->by_round, known), "residual_outside",
                     real_or_null(measured->by_outside, known), "residual_noise", real_or_null(measured->by_noise, known));
}

static json_t *phases_of(const struct measured *measured)
{
    json_t *object = json_object();
    int failed = 0;

    for (int p = 0; p < ROUND_PHASES; p++)
        failed |= json_object_set_new(object, rounds_phase((enum round_phase)p), json_real(measured->phase_us[p]));
    return json_text_whole(object, failed);
}

/* What was said before anything was drafted, and what stands beside it. */
static json_t *forecast_json(const struct measured *measured)
{
    const struct forecast *f = &measured->forecast;

    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "output_throughput", f->tokens_per_second, "speedup",
                     measured->forecast_speedup, "tokens_per_round", f->tokens_per_round, "round_us", f->round_us, "verify_us", f->verify_us,
                     "wait_us", f->wait_us, "hit_rate", f->hit_rate, "measured_hit_rate", share((double)measured->hits.hits, (double)measured->hits.rounds),
                     "measured_over_predicted", measured->tokens_per_second / f->tokens_per_second, "alpha",
                     real_or_null(measured->forecast_alpha, measured->forecast_alpha >= 0), "sum_min_p_q",
                     real_or_null(measured->forecast_overlap, measured->forecast_overlap >= 0));
}

static json_t *cell_of(const struct run *run, const struct run_cell *cell, const struct measured *measured)
{
    char name[128];
    json_t *object;
    int failed = 0;

    summary_name(cell, name, sizeof name);
    object = json_pack("{s:s, s:b, s:o, s:f, s:s, s:i, s:i}", "name", name, "solo", cell->solo, "draft_length",
                       cell->draft_length < 0 ? json_string("auto") : json_integer(cell->draft_length), "temperature", cell->temperature, "accept",
                       cell->accept, "max_concurrency", cell->sequences, "repetitions", measured->repetitions);
    failed |= json_object_update_new(
        object,
        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "duration", measured->duration_s, "completed", measured->completed, "total_input_tokens",
                  measured->input_tokens, "total_output_tokens", measured->output_tokens, "request_throughput",
                  share(measured->completed, measured->duration_s), "output_throughput", measured->tokens_per_second, "total_token_throughput",
                  measured->tokens_per_second * share(measured->input_tokens + measured->output_tokens, measured->output_tokens)));
    failed |= json_object_update_new(object, json_pack("{s:f, s:f, s:f, s:f}", "output_throughput_spread", measured->tokens_per_second_spread,
                                                       "speedup", measured->speedup, "speedup_spread", measured->speedup_spread, "speedup_tpot",
                                                       measured->speedup_tpot));
    failed |= set_times(object, "ttft", &measured->ttft);
    failed |= set_times(object, "tpot", &measured->tpot);
    failed |= set_times(object, "itl", &measured->itl);
    failed |= set_times(object, "e2el", &measured->e2el);
    failed |= set_times(object, "arrival", &measured->round);
    failed |= json_object_update_new(object, json_pack("{s:f, s:o, s:f, s:f, s:f, s:f, s:f, s:f}", "round_us", measured->round_us, "phase_us",
                                                       phases_of(measured), "idle_lead_us", measured->wait_us, "idle_drafter_us",
                                                       cell->solo ? measured->round_us : measured->round_us - measured->drafting_us, "overlap_us",
                                                       measured->hidden_us, "propose_one_way_us", measured->propose_us, "commit_one_way_us",
                                                       measured->commit_us, "outside_rounds", measured->outside));
    if (!cell->solo) {
        failed |= json_object_update_new(object, json_pack("{s:f, s:b}", "speedup_standard_error", measured->speedup_error, "beyond_noise_limit",
                                                           measured_is_noisy(run, measured)));
        failed |= json_object_update_new(object, speculation_of(measured));
        failed |= json_object_set_new(object, "run_ahead", run_ahead_of(measured));
        failed |= json_object_set_new(object, "theory", theory_of(measured));
    }
    if (measured->forecast.tokens_per_second > 0)
        failed |= json_object_set_new(object, "predicted_before", forecast_json(measured));
    if (measured->outputs_equal >= 0)
        failed |=
            json_object_update_new(object, json_pack("{s:i, s:i}", "outputs", measured->outputs, "outputs_equal_solo", measured->outputs_equal));
    return json_text_whole(object, failed);
}

static json_t *ranks_of(const struct run_placement *placement)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < placement->ranks; i++) {
        const struct run_rank *rank = &placement->rank[i];

        failed |= json_array_append_new(
            array, json_pack("{s:i, s:s, s:o, s:s, s:I, s:f, s:f, s:f, s:f}", "rank", rank->rank, "role", rank->role, "host",
                             json_text_string(rank->host), "device", rank->device, "spans_dropped", (json_int_t)rank->dropped,
                             "clock_offset_before_us", (double)rank->offset_ns[0] / 1000, "clock_offset_after_us", (double)rank->offset_ns[1] / 1000,
                             "clock_round_trip_before_us", (double)rank->round_trip_ns[0] / 1000, "clock_round_trip_after_us",
                             (double)rank->round_trip_ns[1] / 1000));
    }
    return json_text_whole(array, failed);
}

static json_t *placement_of(const struct run *run, const struct run_placement *placement, const struct measured_placement *all)
{
    json_t *cells = json_array(), *job = json_array_get(placement->job, 0);
    const struct measured_noise noise = measured_noise(run, all, 1);
    int failed = 0;

    for (int i = 0; i < run->cells; i++)
        failed |= json_array_append_new(cells, cell_of(run, &run->cell[i], &all->cell[i]));
    return json_pack("{s:s, s:b, s:o, s:O, s:O, s:o, s:o, s:O?}", "name", placement->name, "headline", !measured_withholds(&noise), "command_line",
                     json_text_string(placement->line), "mpi", json_object_get(job, "mpi"), "group", json_object_get(job, "group"), "ranks",
                     ranks_of(placement), "cells", json_text_whole(cells, failed), "latency", placement->latency);
}

json_t *summary_make(const struct run *run, const struct measured_placement *all)
{
    static const char *const copied[] = {"command",  "date",       "tandem",      "quick",      "machine",  "repetitions",          "warm_up",
                                         "requests", "max_tokens", "noise_limit", "extra_time", "lossless", "synthetic_acceptance", "target",
                                         "draft",    "task",       "tree",        "lenience",   "threshold"};
    json_t *object = json_object(), *placements = json_array();
    const struct measured_noise noise = measured_noise(run, all, run->placements);
    int failed = 0;

    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
        if (json_object_get(run->json, copied[i]) != NULL)
            failed |= json_object_set(object, copied[i], json_object_get(run->json, copied[i]));
    failed |= json_object_update_new(object, json_pack("{s:f, s:f, s:f, s:f, s:i, s:i}", "noise", noise.spread, "noise_worst", noise.spread_worst,
                                                       "standard_error", noise.error, "standard_error_worst", noise.error_worst, "speedups",
                                                       noise.cells, "speedups_beyond_limit", noise.beyond));
    for (int p = 0; p < run->placements; p++)
        failed |= json_array_append_new(placements, placement_of(run, &run->placement[p], &all[p]));
    failed |= json_object_set_new(object, "placements", json_text_whole(placements, failed));
    return json_text_whole(object, failed);
}
