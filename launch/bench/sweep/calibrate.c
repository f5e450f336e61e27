/* What predictions are made from, before any draft is made: the target alone on these ranks, timed by rows of a step, and what drafts are worth on
 * texts of its own (tandem alpha). */
#include "launch/bench/sweep/bench.h"

#include "common/base/cores.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include "common/model/config.h"
#include "common/options/options_paths.h"
#include "common/sample/rule.h"
#include "launch/bench/report/alpha_file.h"
#include "launch/bench/report/run_file.h"
#include <stdio.h>
#include <string.h>

/* Threads of the drafter's rank in a job (world_threads), of which offline steps are to take as long. */
static int draft_threads(const struct bench *bench, int ranks)
{
    char path[PATH_MAX];
    struct config config;

    options_draft_path(&bench->run, path);
    if (path[0] != '\0' && config_read(path, &config) == STATUS_OK &&
        config_is_large(&config, options_draft_layers(&bench->run.model.draft_way, config.layers), 1))
        ranks = bench->run.ranks.drafters > 0 ? bench->run.ranks.drafters : 1;
    return cores_share(bench->run.ranks.threads, ranks);
}

static const char *host_of(const json_t *ranks, size_t i)
{
    return json_string_value(json_object_get(json_array_get(ranks, i), "host"));
}

/* Ranks of the first placement that stand beside its drafter. */
static int ranks_beside(const struct bench *bench, const char *folder)
{
    char path[PATH_MAX];
    const json_t *ranks;
    const char *first;
    json_t *lines = NULL;
    int beside = 0;

    snprintf(path, sizeof path, "%.3000s/raw/%s/passes.jsonl", folder, bench->placement[0].name);
    if (run_read_json(path, 1, &lines) != STATUS_OK)
        return 1;
    ranks = json_object_get(json_array_get(lines, 0), "ranks");
    first = host_of(ranks, 0);
    for (size_t i = 0; i < json_array_size(ranks); i++)
        beside += first == NULL || host_of(ranks, i) == NULL || strcmp(host_of(ranks, i), first) == 0;
    json_decref(lines);
    return beside > 0 ? beside : 1;
}

static enum status time_steps(struct bench *bench, const char *folder, int *code)
{
    for (int i = 0; i < bench->placements && *code == 0; i++) {
        struct child_words words;

        TRY(bench_plan_job(bench, i, folder, &bench->calibration));
        TRY(bench_sweep_words(bench, i, folder, &bench->calibration, &words));
        log_info("%s: the target alone, in %d cells, to predict from", bench->placement[i].name, bench->calibration.cells);
        TRY(child_run(&words, NULL, code));
    }
    return STATUS_OK;
}

/* The options of the run that are for offline texts, too: it has no hosts. */
static enum status add_own(const struct bench *bench, struct child_words *words)
{
    for (int i = 1; i < bench->part_argc; i++)
        if (strcmp(bench->argv[i], "--hosts") == 0)
            i++;
        else if (strncmp(bench->argv[i], "--hosts=", 8) != 0)
            TRY(child_add(words, bench->argv[i]));
    return STATUS_OK;
}

static enum status alpha_words(struct bench *bench, const char *folder, const struct plan_cell *terms, int number, int threads,
                               struct child_words *words)
{
    const char *options[] = {"--prompts", "--temperature", "--accept", "--max-tokens", "--threads", "--json"};

    *words = (struct child_words){0};
    snprintf(bench->text[0], PATH_MAX, "%.3000s/prompts.jsonl", folder);
    snprintf(bench->text[1], PATH_MAX, "%.17g", terms->temperature);
    snprintf(bench->text[2], PATH_MAX, "%s", rule_name(terms->rule.accept));
    snprintf(bench->text[3], PATH_MAX, "%d", bench->plan.options.max_tokens);
    snprintf(bench->text[4], PATH_MAX, "%d", threads);
    snprintf(bench->text[5], PATH_MAX, "%.3000s/alpha-%d.json", folder, number);
    TRY(child_add(words, bench->tandem));
    TRY(child_add(words, "alpha"));
    TRY(add_own(bench, words));
    for (size_t i = bench->run.input.prompt != NULL; i < sizeof options / sizeof *options; i++) {
        TRY(child_add(words, options[i]));
        TRY(child_add(words, bench->text[i]));
    }
    return child_add(words, "--ignore-eos");
}

/* What tandem alpha tells is of rules that accept the share which the two models agree in. */
static int is_told(const struct plan_cell *cell)
{
    const struct sampling sampling = {.temperature = cell->temperature, .accept = cell->rule.accept};

    return rule_of(&sampling)->overlaps;
}

/* One run for each temperature and rule that is measured, where it can tell of it. alphas: the names of what they write. */
static enum status decode_texts(struct bench *bench, const char *folder, json_t *alphas, int *code)
{
    int threads = draft_threads(bench, ranks_beside(bench, folder));

    for (int i = 0; i < bench->plan.cells && *code == 0; i++) {
        const struct plan_cell *cell = &bench->plan.cell[i];
        int number = (int)json_array_size(alphas);
        struct child_words words;

        if (!cell->solo || cell->sequences != 1 || !is_told(cell))
            continue;
        TRY(alpha_words(bench, folder, cell, number, threads, &words));
        snprintf(bench->text[6], PATH_MAX, "%.3000s/alpha-%d.txt", folder, number);
        log_info("T %g %s: what drafts are worth on other texts", cell->temperature, rule_name(cell->rule.accept));
        TRY(child_run(&words, bench->text[6], code));
        if (json_array_append_new(alphas, json_sprintf("alpha-%d.json", number)) != 0)
            return STATUS_INTERNAL;
    }
    return STATUS_OK;
}

/* Files of --alpha are kept with what they predict. */
static enum status copy_texts(const struct bench *bench, const char *folder, json_t *alphas)
{
    for (int i = 0; i < bench->alphas; i++) {
        char name[32];
        json_t *json;

        snprintf(name, sizeof name, "alpha-%d.json", i);
        TRY(alpha_file_read(bench->alpha[i], &json));
        TRY(bench_write_json(folder, name, json));
        if (json_array_append_new(alphas, json_string(name)) != 0)
            return STATUS_INTERNAL;
    }
    return STATUS_OK;
}

/* The calibration is a bench of the target alone: the same files, read by the same reader. Takes alphas over. */
static enum status describe(const struct bench *bench, const char *folder, json_t *alphas)
{
    json_t *placements = json_array();
    int failed = 0;

    for (int i = 0; i < bench->placements; i++)
        failed |= json_array_append_new(placements, json_pack("{s:s, s:s}", "name", bench->placement[i].name, "line", ""));
    return bench_write_json(folder, "bench.json",
                            json_text_whole(json_pack("{s:i, s:o, s:o, s:o, s:{s:s}}", "tandem_bench", 1, "cells", plan_cells(&bench->calibration),
                                                      "placements", placements, "alpha", alphas, "calibration", "prompts", bench->split),
                                            failed));
}

enum status bench_predict(struct bench *bench, int *ended)
{
    char folder[PATH_MAX];
    json_t *alphas = json_array();
    enum status status = alphas != NULL ? STATUS_OK : STATUS_INTERNAL;
    int code = 0;

    snprintf(folder, sizeof folder, "%.3000s/calibration", bench->output);
    plan_calibration(&bench->plan, &bench->calibration);
    if (status == STATUS_OK)
        status = time_steps(bench, folder, &code);
    if (status == STATUS_OK && code == 0)
        status = bench->alphas > 0 ? copy_texts(bench, folder, alphas) : decode_texts(bench, folder, alphas, &code);
    if (status != STATUS_OK || code != 0)
        json_decref(alphas);
    else
        status = describe(bench, folder, alphas);
    if (status == STATUS_OK && code == 0)
        status = bench_run_program("tandem-report", "--predict", bench->output, NULL, &code);
    if (status == STATUS_OK && code != 0 && child_told() != 0)
        *ended = code;
    else if (status == STATUS_OK && code != 0)
        log_warn("nothing is predicted: what it would follow from could not be had (exit code %d, said above)", code);
    return status;
}
