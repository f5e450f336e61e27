#include "launch/bench/report/run_file.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include "launch/bench/report/rank_file.h"
#include "launch/bench/report/text_file.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum status parse(const char *path, int line, const char *text, size_t size, json_t **value)
{
    static const struct json_text_limits limits = {.depth = 16, .values = 1 << 24};
    char fault[JSON_TEXT_FAULT];
    enum status status = json_text_read(text, size, 0, &limits, value, fault);

    if (status == STATUS_DATA && line > 0)
        log_error("%s:%d: %s", path, line, fault);
    else if (status == STATUS_DATA)
        log_error("%s: %s", path, fault);
    return status;
}

enum status run_read_json(const char *path, int lines, json_t **value)
{
    char *text, *rest;
    size_t size;
    json_t *list, *one;
    enum status status;

    TRY(text_file_read(path, &text, &size));
    if (!lines) {
        status = parse(path, 0, text, size, value);
        free(text);
        return status;
    }
    list = json_array();
    rest = text;
    status = list != NULL ? STATUS_OK : STATUS_INTERNAL;
    for (int number = 1; status == STATUS_OK && rest != NULL; number++) {
        char *line = strsep(&rest, "\n");

        if (*line == '\0')
            continue;
        status = parse(path, number, line, strlen(line), &one);
        if (status == STATUS_OK && json_array_append_new(list, one) != 0)
            status = STATUS_INTERNAL;
    }
    free(text);
    if (status == STATUS_OK)
        *value = list;
    else
        json_decref(list);
    return status;
}

static enum status wrong(const char *path, const char *what)
{
    log_error("%s: %s", path, what);
    return STATUS_DATA;
}

static enum status check_version(const char *path, const json_t *json)
{
    const json_t *version = json_object_get(json, "tandem_bench");

    if (!json_is_integer(version))
        return wrong(path, "there is no \"tandem_bench\", expected a folder of tandem bench");
    if (json_integer_value(version) == RUN_VERSION)
        return STATUS_OK;
    log_error("%s: it is of version %lld, expected %d: the tandem that measured it can report it", path, (long long)json_integer_value(version),
              RUN_VERSION);
    return STATUS_DATA;
}

static enum status read_cells(const char *path, struct run *run)
{
    json_t *cells = json_object_get(run->json, "cells"), *from;
    size_t at;

    json_array_foreach (cells, at, from) {
        struct run_cell *cell = &run->cell[run->cells];

        if (run->cells == RUN_MOST_CELLS ||
            json_unpack(from, "{s:b, s:i, s:F, s:s, s:i, s:i}", "solo", &cell->solo, "draft_length", &cell->draft_length, "temperature",
                        &cell->temperature, "accept", &cell->accept, "sequences", &cell->sequences, "baseline", &cell->baseline) != 0 ||
            cell->draft_length < -1 || cell->draft_length > RUN_MOST_DRAFT || cell->sequences < 1 || cell->sequences > RUN_MOST_SEQUENCES)
            return wrong(path, "a cell is not one");
        run->cells++;
    }
    for (int i = 0; i < run->cells; i++)
        if (run->cell[i].baseline < 0 || run->cell[i].baseline >= run->cells || !run->cell[run->cell[i].baseline].solo)
            return wrong(path, "a cell has no baseline");
    return run->cells > 0 ? STATUS_OK : wrong(path, "there are no cells, expected a folder of tandem bench");
}

static void read_counts(json_t *from, int64_t counts[RUN_MOST_DRAFT])
{
    for (size_t i = 0; i < json_array_size(from) && i < RUN_MOST_DRAFT; i++)
        counts[i] = json_integer_value(json_array_get(from, i));
}

static struct run_hits hits_from(const json_t *from)
{
    return (struct run_hits){json_integer_value(json_object_get(from, "rounds")), json_integer_value(json_object_get(from, "hits"))};
}

static void read_ahead(const json_t *from, struct run_pass *pass)
{
    const json_t *rejected = json_object_get(from, "rejected");

    pass->hits.hits = json_integer_value(json_object_get(from, "hits"));
    pass->hits_after_all = hits_from(json_object_get(from, "all_accepted"));
    for (size_t i = 0; i < json_array_size(rejected); i++) {
        const json_t *at = json_array_get(rejected, i);
        json_int_t accepted = json_integer_value(json_object_get(at, "accepted"));

        if (accepted >= 0 && accepted < RUN_MOST_DRAFT)
            pass->hits_after[accepted] = hits_from(at);
    }
}

static enum status read_ends(const char *path, json_t *from, struct run_pass *pass)
{
    size_t count = json_array_size(from);

    pass->end = calloc(count + 1, sizeof *pass->end);
    if (pass->end == NULL)
        return STATUS_INTERNAL;
    for (size_t i = 0; i < count; i++) {
        struct run_end *end = &pass->end[i];
        json_int_t started, first, ended;

        if (json_unpack(json_array_get(from, i), "[I, I, I, i, i, s]", &started, &first, &ended, &end->prompt_tokens, &end->tokens, &end->digest) !=
                0 ||
            started < 0 || first < started || ended < first || ended > RUN_MOST_NS || end->prompt_tokens < 0 || end->tokens < 0)
            return wrong(path, "a request of a pass is not one");
        end->started_ns = started;
        end->first_ns = first;
        end->ended_ns = ended;
    }
    pass->ends = (int)count;
    return STATUS_OK;
}

static enum status read_pass(const char *path, const struct run *run, json_t *from, struct run_pass *pass)
{
    json_int_t n[10];
    json_t *tested, *accepted, *ends;

    if (json_unpack(from, "{s:i, s:i, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:F, s:o, s:o, s:o}", "cell", &pass->cell, "repetition",
                    &pass->repetition, "warm_up", &pass->warm_up, "start_ns", &n[0], "wall_ns", &n[1], "tokens", &n[2], "rounds", &n[3], "steps",
                    &n[4], "drafted", &n[5], "accepted", &n[6], "full_rounds", &n[7], "full_tokens", &n[8], "fallback_rounds", &n[9],
                    "mean_sum_min_p_q", &pass->overlap, "tested", &tested, "accepted_at", &accepted, "ends", &ends) != 0 ||
        pass->cell < 0 || pass->cell >= run->cells || n[0] < 0 || n[0] > RUN_MOST_NS || n[1] < 0 || n[1] > RUN_MOST_NS)
        return wrong(path, "a pass is not one");
    if (json_array_size(ends) == 0)
        return wrong(path, "a pass has no requests");
    pass->start_ns = n[0];
    pass->wall_ns = n[1];
    pass->tokens = n[2];
    pass->rounds = n[3];
    pass->steps = n[4];
    pass->drafted = n[5];
    pass->accepted = n[6];
    pass->full_rounds = n[7];
    pass->full_tokens = n[8];
    pass->fallback_rounds = n[9];
    pass->hits.rounds = json_integer_value(json_object_get(from, "answered_rounds"));
    if (json_object_get(from, "run_ahead") != NULL)
        read_ahead(json_object_get(from, "run_ahead"), pass);
    else /* an earlier version's */
        pass->hits.hits = json_integer_value(json_object_get(from, "ahead_hits"));
    read_counts(tested, pass->tested);
    read_counts(accepted, pass->accepted_at);
    return read_ends(path, ends, pass);
}

static enum status read_passes(const struct run *run, struct run_placement *placement)
{
    char path[PATH_MAX];
    json_t *list;
    size_t count;

    snprintf(path, sizeof path, "%.4000s/passes.jsonl", placement->folder);
    TRY(run_read_json(path, 1, &list));
    placement->job = list; /* the job's line is its first; passes point into the others */
    count = json_array_size(list);
    if (count < 2 || !json_is_object(json_array_get(list, 0)))
        return wrong(path, "no pass was measured");
    placement->pass = calloc(count, sizeof *placement->pass);
    if (placement->pass == NULL)
        return STATUS_INTERNAL;
    for (size_t i = 1; i < count; i++) {
        placement->passes++;
        TRY(read_pass(path, run, json_array_get(list, i), &placement->pass[i - 1]));
    }
    return STATUS_OK;
}

static enum status read_ranks(struct run_placement *placement)
{
    json_t *ranks = json_object_get(json_array_get(placement->job, 0), "ranks");
    size_t count = json_array_size(ranks);
    char path[PATH_MAX];

    placement->rank = calloc(count + 1, sizeof *placement->rank);
    if (placement->rank == NULL)
        return STATUS_INTERNAL;
    placement->ranks = (int)count;
    placement->lead = (int)json_integer_value(json_object_get(json_array_get(placement->job, 0), "lead"));
    if (placement->lead < 0 || placement->lead >= placement->ranks)
        return wrong(placement->folder, "the passes name no lead");
    for (int i = 0; i < placement->ranks; i++) {
        const char *device = json_string_value(json_object_get(json_array_get(ranks, (size_t)i), "device"));

        placement->rank[i].rank = i;
        placement->rank[i].device = device != NULL ? device : "";
        snprintf(path, sizeof path, "%.4000s/rank-%04d.csv", placement->folder, i);
        TRY(rank_file_read(path, &placement->rank[i]));
    }
    return rank_file_read_clocks(placement);
}

static enum status read_placement(const char *folder, struct run *run, json_t *from)
{
    struct run_placement *placement = &run->placement[run->placements];
    char path[PATH_MAX];
    FILE *latency;

    if (run->placements == RUN_MOST_PLACEMENTS || json_unpack(from, "{s:s, s:s}", "name", &placement->name, "line", &placement->line) != 0 ||
        strchr(placement->name, '/') != NULL || placement->name[0] == '.')
        return wrong(folder, "bench.json: a placement is not one");
    run->placements++;
    snprintf(placement->folder, sizeof placement->folder, "%.3000s/raw/%.60s", folder, placement->name);
    TRY(read_passes(run, placement));
    TRY(read_ranks(placement));
    snprintf(path, sizeof path, "%.4000s/latency.jsonl", placement->folder);
    latency = fopen(path, "r");
    if (latency == NULL)
        return STATUS_OK;
    fclose(latency);
    return run_read_json(path, 1, &placement->latency);
}

enum status run_read_plan(const char *folder, struct run *run)
{
    char path[PATH_MAX];

    *run = (struct run){0};
    snprintf(path, sizeof path, "%.4000s/bench.json", folder);
    TRY(run_read_json(path, 0, &run->json));
    TRY(check_version(path, run->json));
    return read_cells(path, run);
}

/* One that is not there was not made: nothing was to be predicted, or it could not be. */
static enum status read_prediction(const char *folder, struct run *run)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%.4000s/prediction.json", folder);
    return access(path, F_OK) == 0 ? run_read_json(path, 0, &run->prediction) : STATUS_OK;
}

enum status run_read(const char *folder, struct run *run)
{
    char rounds[PATH_MAX];
    json_t *from;
    size_t at;

    TRY(run_read_plan(folder, run));
    snprintf(rounds, sizeof rounds, "%.4000s/rounds.html", folder);
    run->has_rounds = access(rounds, R_OK) == 0;
    TRY(read_prediction(folder, run));
    json_array_foreach (json_object_get(run->json, "placements"), at, from)
        TRY(read_placement(folder, run, from));
    return run->placements > 0 ? STATUS_OK : wrong(folder, "bench.json: there are no placements");
}

void run_release(struct run *run)
{
    for (int p = 0; p < run->placements; p++) {
        struct run_placement *placement = &run->placement[p];

        for (int i = 0; i < placement->passes; i++)
            free(placement->pass[i].end);
        for (int i = 0; placement->rank != NULL && i < placement->ranks; i++)
            free(placement->rank[i].span);
        free(placement->pass);
        free(placement->rank);
        json_decref(placement->job);
        json_decref(placement->latency);
    }
    json_decref(run->json);
    json_decref(run->prediction);
    *run = (struct run){0};
}

const struct rule *run_rule(double temperature, const char *accept)
{
    struct sampling sampling = {.temperature = temperature};
    struct rule_asked asked;

    if (!rule_read(accept, strlen(accept), &asked))
        return NULL;
    rule_set(&asked, &sampling);
    return rule_of(&sampling);
}

/* Whatever lossless rule was asked for, it is greedy. */
static int is_any(double temperature, const char *accept)
{
    const struct rule *rule = run_rule(temperature, accept);

    return temperature == 0 && (rule == NULL || !rule->cold);
}

const char *run_terms(const struct run_cell *cell, char *text)
{
    if (is_any(cell->temperature, cell->accept))
        snprintf(text, RUN_TERMS, "T %g", cell->temperature);
    else
        snprintf(text, RUN_TERMS, "T %g %.64s", cell->temperature, cell->accept);
    return text;
}

const char *run_rule_word(double temperature, const char *accept)
{
    return is_any(temperature, accept) ? "any" : accept;
}

int run_is_drawn(const json_t *from)
{
    const json_t *rate = json_object_get(from, "synthetic_acceptance");

    return json_is_false(json_object_get(from, "lossless")) && json_number_value(rate) >= 0 && json_is_number(rate);
}

const char *run_loss(const json_t *from, char *text)
{
    text[0] = '\0';
    if (run_is_drawn(from))
        snprintf(text, RUN_LOSS, "verdicts were drawn with rate %g (--synthetic-acceptance), so times and messages are real and the text follows no "
                                 "model",
                 json_number_value(json_object_get(from, "synthetic_acceptance")));
    else if (json_is_false(json_object_get(from, "lossless")))
        snprintf(text, RUN_LOSS, "a rule of --accepts does not keep the target's distribution");
    return text;
}
