#include "launch/bench/report/forecast_file.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include "launch/bench/report/alpha_file.h"
#include "launch/bench/report/rounds.h"
#include "launch/bench/report/statistics.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ALPHA = 64, FEW_ROUNDS = 5 };

struct making {
    struct run plan;  /* what is to be predicted */
    struct run timed; /* the target alone */
    json_t *alpha[MOST_ALPHA];
    int alphas;
    json_t *latency; /* of the current placement; NULL: none */
    struct rounds rounds;
};

static int is_under(const struct run_cell *cell, const struct run_cell *terms)
{
    return cell->temperature == terms->temperature && strcmp(cell->accept, terms->accept) == 0 && cell->sequences == terms->sequences;
}

/* Of the calibrating rounds under these terms that had so many rows of all sequences together, what the step and all else took. Those at the end of a
 * text have fewer than their cell says. */
static enum status time_rounds(const struct making *making, const struct run_placement *placement, const struct run_cell *terms, int rows,
                               struct statistics *verify, struct statistics *rest)
{
    for (int i = 0; i < making->rounds.count; i++) {
        const struct round *round = &making->rounds.round[i];
        const struct run_pass *pass = &placement->pass[round->pass];
        double step = rounds_step_us(round->phase_us);

        if (!is_under(&making->timed.cell[pass->cell], terms) || pass->warm_up || !pass->traced || round->opens ||
            round->sequences != terms->sequences || round->rows != rows)
            continue;
        TRY(statistics_add(verify, step));
        TRY(statistics_add(rest, round->us - step));
    }
    return STATUS_OK;
}

/* What no round has, for each request, and what its first one, which reads its prompt, has beyond a usual round. */
static double outside_us(const struct making *making, const struct run_placement *placement, int cell, double usual_us)
{
    double us = 0, requests = 0;

    for (int i = 0; i < placement->passes; i++)
        if (placement->pass[i].cell == cell && !placement->pass[i].warm_up && placement->pass[i].traced) {
            us += (double)placement->pass[i].wall_ns / 1000;
            requests += placement->pass[i].ends;
        }
    for (int i = 0; i < making->rounds.count; i++) {
        const struct round *round = &making->rounds.round[i];
        const struct run_pass *pass = &placement->pass[round->pass];

        if (pass->cell == cell && !pass->warm_up && pass->traced)
            us -= round->opens ? usual_us : round->us;
    }
    return requests > 0 && us > 0 ? us / requests : 0;
}

/* The longest draft length that was timed under these terms; -1: none was. */
static int longest_timed(const struct making *making, const struct run_cell *terms)
{
    int longest = -1;

    for (int i = 0; i < making->timed.cells; i++)
        if (is_under(&making->timed.cell[i], terms) && making->timed.cell[i].draft_length > longest)
            longest = making->timed.cell[i].draft_length;
    return longest;
}

static enum status time_ranks(const struct making *making, const struct run_placement *placement, const struct run_cell *terms,
                              struct forecast_ranks *ranks)
{
    int longest = longest_timed(making, terms);

    for (int length = 0; length <= longest; length++) {
        struct statistics verify = {0}, rest = {0};
        int rows = terms->sequences * (length + 1);
        enum status status = time_rounds(making, placement, terms, rows, &verify, &rest);

        if (status == STATUS_OK && verify.count >= FEW_ROUNDS) {
            forecast_line_add(&ranks->verify, rows, statistics_mean(&verify));
            forecast_line_add(&ranks->rest, rows, statistics_mean(&rest));
        }
        statistics_release(&verify);
        statistics_release(&rest);
        TRY(status);
    }
    for (int i = 0; i < making->timed.cells; i++)
        if (is_under(&making->timed.cell[i], terms) && making->timed.cell[i].draft_length == 0)
            ranks->outside = outside_us(making, placement, i,
                                        forecast_line_at(&ranks->verify, terms->sequences) + forecast_line_at(&ranks->rest, terms->sequences));
    return STATUS_OK;
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* A round trip with so many drafts, by support. */
static void trip_by_support(const json_t *latency, int length, struct forecast_line *line)
{
    for (size_t i = 0; i < json_array_size(latency); i++) {
        const json_t *row = json_array_get(latency, i);
        const char *kind = json_string_value(json_object_get(row, "message"));
        double support = number(row, "support");

        if (kind != NULL && strcmp(kind, "round") == 0 && (int)number(row, "draft_length") == length &&
            (line->count == 0 || support > line->x[line->count - 1]))
            forecast_line_add(line, support, number(row, "avg_us"));
    }
}

static void read_wire(const json_t *latency, double support, struct forecast_line *wire)
{
    for (int length = 1; length <= FORECAST_LONGEST; length++) {
        struct forecast_line line = {0};

        trip_by_support(latency, length, &line);
        if (line.count > 0)
            forecast_line_add(wire, length, forecast_line_at(&line, support));
    }
}

/* Do the threads of all ranks on the lead's host have a core each? Drafters run ahead by themselves only there. */
static int has_cores(const struct run_placement *placement)
{
    return !json_is_true(json_object_get(json_array_get(placement->job, 0), "crowded"));
}

static int runs_ahead(const struct making *making, const struct run_placement *placement)
{
    const char *when = json_string_value(json_object_get(making->plan.json, "run_ahead"));

    return when == NULL || strcmp(when, "auto") == 0 ? has_cores(placement) : strcmp(when, "on") == 0;
}

static int find_draft(const struct making *making, const struct run_cell *cell, struct forecast_draft *draft)
{
    const char *name = json_string_value(json_object_get(making->plan.json, "draft_name"));

    for (int i = 0; i < making->alphas; i++)
        if (name != NULL && alpha_file_is_of(making->alpha[i], cell->temperature, cell->accept))
            return alpha_file_draft(making->alpha[i], name, draft);
    return 0;
}

static json_t *cell_json(int cell, const struct forecast *f, double solo, const struct forecast_draft *draft)
{
    json_t *hits_after = json_array();

    for (int i = 0; i <= f->draft_length && f->draft_length > 0; i++)
        json_array_append_new(hits_after, json_real(f->hits_after[i]));
    return json_pack("{s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:f, s:f}", "cell", cell, "draft_length", f->draft_length,
                     "tokens_per_second", f->tokens_per_second, "speedup", solo > 0 ? f->tokens_per_second / solo : 0, "tokens_per_round",
                     f->tokens_per_round, "round_us", f->round_us, "verify_us", f->verify_us, "wait_us", f->wait_us, "rest_us", f->rest_us,
                     "outside_us", f->outside_us, "cold_wait_us", f->cold_us, "hit_rate", f->hit_rate, "hits_after", hits_after, "alpha", draft != NULL ? draft->alpha : -1,
                     "overlap", draft != NULL ? draft->overlap : -1);
}

static enum status forecast_one(const struct making *making, const struct run_placement *placement, int at, json_t *cells)
{
    const struct run_cell *cell = &making->plan.cell[at];
    int tokens = (int)number(making->plan.json, "max_tokens");
    struct forecast_ranks *ranks = calloc(1, sizeof *ranks);
    struct forecast_draft draft;
    struct forecast solo, here;
    int known = !cell->solo && find_draft(making, cell, &draft);
    enum status status = ranks != NULL ? time_ranks(making, placement, cell, ranks) : STATUS_INTERNAL;

    if (status == STATUS_OK && ranks->verify.count > (cell->solo || cell->draft_length == 0 ? 0 : 1) && (cell->solo || known)) {
        ranks->ahead = runs_ahead(making, placement);
        ranks->branches = (int)number(making->plan.json, "branches");
        forecast_cell(NULL, ranks, 0, cell->sequences, tokens, &solo);
        here = solo;
        if (known)
            read_wire(making->latency, draft.support, &ranks->wire);
        if (known && cell->draft_length < 0)
            forecast_best(&draft, ranks, cell->sequences, tokens, &here);
        else if (known)
            forecast_cell(&draft, ranks, cell->draft_length, cell->sequences, tokens, &here);
        if (json_array_append_new(cells, cell_json(at, &here, solo.tokens_per_second, known ? &draft : NULL)) != 0)
            status = STATUS_INTERNAL;
    }
    free(ranks);
    return status;
}

static enum status forecast_placement(struct making *making, const char *folder, int at, json_t *placements)
{
    const struct run_placement *placement = &making->timed.placement[at];
    json_t *cells = json_array();
    char path[PATH_MAX];
    enum status status;

    snprintf(path, sizeof path, "%.3000s/raw/%.60s/latency.jsonl", folder, placement->name);
    json_decref(making->latency);
    making->latency = NULL;
    status = run_read_json(path, 1, &making->latency);
    if (status == STATUS_OK)
        status = rounds_build(placement, &making->rounds);
    for (int i = 0; i < making->plan.cells && status == STATUS_OK; i++)
        status = forecast_one(making, placement, i, cells);
    rounds_release(&making->rounds);
    if (json_array_append_new(placements, json_pack("{s:s, s:o}", "name", placement->name, "cells", cells)) != 0)
        return STATUS_INTERNAL;
    return status;
}

static enum status read_alphas(struct making *making, const char *folder)
{
    const json_t *names = json_object_get(making->timed.json, "alpha");
    char path[PATH_MAX];

    for (size_t i = 0; i < json_array_size(names) && making->alphas < MOST_ALPHA; i++) {
        const char *name = json_string_value(json_array_get(names, i));

        if (name == NULL || strchr(name, '/') != NULL)
            continue;
        snprintf(path, sizeof path, "%.3000s/calibration/%.60s", folder, name);
        TRY(alpha_file_read(path, &making->alpha[making->alphas]));
        making->alphas++;
    }
    return STATUS_OK;
}

static enum status write_file(const char *folder, json_t *object)
{
    char path[PATH_MAX], *text = json_text_write(object, JSON_INDENT(1) | JSON_REAL_PRECISION(7));
    FILE *file;
    int written;

    json_decref(object);
    snprintf(path, sizeof path, "%.4000s/prediction.json", folder);
    file = text != NULL ? fopen(path, "w") : NULL;
    written = file != NULL && fprintf(file, "%s\n", text) >= 0;
    if (file != NULL && fclose(file) != 0)
        written = 0;
    free(text);
    if (written)
        return STATUS_OK;
    log_error("%s: %s", path, text == NULL ? "no memory" : strerror(errno));
    return STATUS_IO;
}

enum status forecast_make(const char *folder)
{
    struct making *making = calloc(1, sizeof *making);
    json_t *placements = json_array();
    char path[PATH_MAX];
    enum status status = making != NULL && placements != NULL ? STATUS_OK : STATUS_INTERNAL;

    TRY_TO(status, release);
    snprintf(path, sizeof path, "%.3000s/calibration", folder);
    TRY_TO(run_read_plan(folder, &making->plan), release);
    TRY_TO(run_read(path, &making->timed), release);
    TRY_TO(read_alphas(making, folder), release);
    for (int p = 0; p < making->timed.placements; p++)
        TRY_TO(forecast_placement(making, folder, p, placements), release);
    status =
        write_file(folder, json_pack("{s:O?, s:O}", "calibration", json_object_get(making->timed.json, "calibration"), "placements", placements));
release:
    json_decref(placements);
    for (int i = 0; making != NULL && i < making->alphas; i++)
        json_decref(making->alpha[i]);
    if (making != NULL) {
        json_decref(making->latency);
        run_release(&making->timed);
        run_release(&making->plan);
    }
    free(making);
    return status;
}

const json_t *forecast_of(const struct run *run, const char *placement, int cell)
{
    const json_t *placements = json_object_get(run->prediction, "placements"), *cells = NULL;

    for (size_t i = 0; i < json_array_size(placements); i++) {
        const json_t *from = json_array_get(placements, i);
        const char *name = json_string_value(json_object_get(from, "name"));

        if (name != NULL && strcmp(name, placement) == 0)
            cells = json_object_get(from, "cells");
    }
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *number = json_object_get(json_array_get(cells, i), "cell");

        if (json_is_integer(number) && json_integer_value(number) == cell)
            return json_array_get(cells, i);
    }
    return NULL;
}
