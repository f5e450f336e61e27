/* tandem-bench: `tandem bench`. Plans a sweep, starts its jobs through `tandem run`, keeps what they say in one folder, and has tandem-report
 * write the report there. */
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/standard_output.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include "launch/bench/sweep/bench.h"
#include "launch/bench/sweep/child.h"
#include "launch/bench/sweep/machine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The words that every job of a placement has. */
static enum status begin_words(const struct bench *bench, int at, struct child_words *words)
{
    const struct placement *placement = &bench->placement[at];

    *words = (struct child_words){0};
    TRY(child_add(words, bench->tandem));
    TRY(child_add(words, "run"));
    for (int i = 1; i < bench->argc; i++)
        TRY(child_add(words, bench->argv[i]));
    if (placement->hosts[0] != '\0') {
        TRY(child_add(words, "--hosts"));
        TRY(child_add(words, placement->hosts));
    }
    if (bench->run.ranks.verifiers < 0 && bench->run.launch.hosts == NULL && sysconf(_SC_NPROCESSORS_ONLN) <= 3) {
        TRY(child_add(words, "--verifiers")); /* a core for each rank, where the usual number would share them */
        TRY(child_add(words, "1"));
    }
    if (bench->run.input.prompt == NULL && bench->run.input.prompts == NULL) {
        TRY(child_add(words, "--prompts"));
        TRY(child_add(words, bench->prompts));
    }
    return STATUS_OK;
}

static enum status sweep_words(struct bench *bench, int at, struct child_words *words)
{
    char(*text)[PATH_MAX] = bench->text[at];

    TRY(begin_words(bench, at, words));
    snprintf(text[0], PATH_MAX, "%.4000s/raw/%s", bench->output, bench->placement[at].name);
    snprintf(text[1], PATH_MAX, "%.4000s/raw/%s/plan.json", bench->output, bench->placement[at].name);
    snprintf(text[2], PATH_MAX, "%d", plan_most_sequences(&bench->plan));
    snprintf(text[3], PATH_MAX, "%d", bench->plan.options.max_tokens);
    TRY(child_add(words, "--trace"));
    TRY(child_add(words, text[0]));
    TRY(child_add(words, "--sweep"));
    TRY(child_add(words, text[1]));
    TRY(child_add(words, "--max-sequences"));
    TRY(child_add(words, text[2]));
    TRY(child_add(words, "--max-tokens"));
    TRY(child_add(words, text[3]));
    TRY(child_add(words, "--ignore-eos"));
    return STATUS_OK;
}

static enum status plan_job(struct bench *bench, int at)
{
    char folder[PATH_MAX], results[PATH_MAX + 32];
    json_t *passes;

    snprintf(folder, sizeof folder, "%.4000s/raw/%s", bench->output, bench->placement[at].name);
    snprintf(results, sizeof results, "%s/passes.jsonl", folder);
    TRY(bench_make_folder(folder));
    passes = plan_passes(&bench->plan, results);
    return bench_write_json(folder, "plan.json", passes);
}

/* A job that failed has said why; its code becomes ours. */
static enum status run_placement(struct bench *bench, int at, int *code)
{
    char latency[PATH_MAX + 32], output[PATH_MAX + 32];
    struct child_words words;

    TRY(plan_job(bench, at));
    TRY(sweep_words(bench, at, &words));
    log_info("%s: %d cells, a warm-up and %d repetitions of each, and up to %g s more of those that are noisy", bench->placement[at].name,
             bench->plan.cells, bench->plan.options.repetitions, bench->plan.options.extra_s);
    TRY(child_run(&words, NULL, code));
    if (*code != 0)
        return STATUS_OK;
    TRY(begin_words(bench, at, &words));
    snprintf(latency, sizeof latency, "%s/latency.jsonl", bench->text[at][0]);
    snprintf(output, sizeof output, "%s/latency.txt", bench->text[at][0]);
    TRY(child_add(&words, "--programs"));
    TRY(child_add(&words, "tandem-latency"));
    TRY(child_add(&words, "--stats"));
    TRY(child_add(&words, latency));
    log_info("%s: messages and sums of the same ranks", bench->placement[at].name);
    return child_run(&words, output, code);
}

/* With the line of each, by a dry run, which says why where its code is not 0. */
static json_t *placements_of(struct bench *bench, int *code)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < bench->placements && *code == 0; i++) {
        char line[16384] = "";
        struct child_words words;

        if (sweep_words(bench, i, &words) == STATUS_OK && child_add(&words, "--dry-run") == STATUS_OK)
            failed |= child_ask(&words, line, sizeof line, code) != STATUS_OK;
        failed |= json_array_append_new(array, json_pack("{s:s, s:s, s:o}", "name", bench->placement[i].name, "hosts", bench->placement[i].hosts,
                                                         "line", json_text_string(line)));
    }
    return json_text_whole(array, failed);
}

static json_t *describe(struct bench *bench, json_t *placements)
{
    const struct plan_options *options = &bench->plan.options;
    char date[64];
    time_t now = time(NULL);
    json_t *object;
    int failed;

    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S%z", localtime(&now));
    object = json_pack("{s:i, s:o, s:s, s:s, s:b, s:o, s:o, s:o}", "tandem_bench", 1, "command", json_text_string(bench->command), "date", date,
                       "tandem", options_version(), "quick", options->quick, "machine", machine_describe(), "cells", plan_cells(&bench->plan),
                       "placements", placements);
    failed = json_object_update_new(
        object, json_pack("{s:i, s:i, s:i, s:i, s:f, s:f, s:b, s:f}", "repetitions", options->repetitions, "warm_up", 1, "requests", options->prompts,
                          "max_tokens", options->max_tokens, "noise_limit", options->noise_limit, "extra_time", options->extra_s, "lossless",
                          plan_is_lossless(&bench->plan), "synthetic_acceptance", bench->run.rounds.synthetic_acceptance));
    failed |= json_object_set_new(object, "target", machine_target(&bench->run, options->max_tokens));
    failed |= json_object_set_new(object, "draft", machine_draft(&bench->run, options->max_tokens));
    return json_text_whole(object, failed);
}

static enum status write_report(const struct bench *bench, int *code)
{
    char folder[PATH_MAX], program[PATH_MAX + 32];
    struct child_words words = {0};

    if (!paths_programs(folder))
        return STATUS_INTERNAL;
    snprintf(program, sizeof program, "%s/tandem-report", folder);
    TRY(child_add(&words, program));
    TRY(child_add(&words, bench->output));
    return child_run(&words, NULL, code);
}

static int has_measured(const struct bench *bench)
{
    char path[PATH_MAX];
    struct stat state;
    int some = 0;

    for (int i = 0; i < bench->placements; i++) {
        snprintf(path, sizeof path, "%.4000s/raw/%s/passes.jsonl", bench->output, bench->placement[i].name);
        some |= stat(path, &state) == 0 && state.st_size > 0;
    }
    return some;
}

/* Nothing was measured: the same command, mended, is to find the folder empty again. */
static void forget_plans(const struct bench *bench)
{
    static const char *const names[] = {"plan.json", "passes.jsonl"};
    char path[PATH_MAX];

    for (int i = 0; i < bench->placements; i++) {
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            snprintf(path, sizeof path, "%.4000s/raw/%s/%s", bench->output, bench->placement[i].name, names[n]);
            unlink(path);
        }
        snprintf(path, sizeof path, "%.4000s/raw/%s", bench->output, bench->placement[i].name);
        rmdir(path);
    }
    snprintf(path, sizeof path, "%.4000s/raw", bench->output);
    rmdir(path);
    snprintf(path, sizeof path, "%.4000s/bench.json", bench->output);
    unlink(path);
}

static enum status run(struct bench *bench, int *code)
{
    char raw[PATH_MAX + 8];
    json_t *placements;

    TRY(placement_list(&bench->run, bench->placement, &bench->placements));
    TRY(bench_open_output(bench));
    snprintf(raw, sizeof raw, "%s/raw", bench->output);
    TRY(bench_make_folder(raw));
    for (int i = 0; i < bench->placements; i++)
        TRY(plan_job(bench, i)); /* a dry run looks at the folder, too */
    placements = placements_of(bench, code);
    if (placements == NULL || *code != 0) {
        forget_plans(bench);
        json_decref(placements);
        return *code != 0 ? STATUS_OK : STATUS_INTERNAL;
    }
    TRY(bench_write_json(bench->output, "bench.json", describe(bench, placements)));
    for (int i = 0; i < bench->placements && *code == 0; i++)
        TRY(run_placement(bench, i, code));
    if (*code != 0 && !has_measured(bench))
        forget_plans(bench);
    return *code == 0 ? write_report(bench, code) : STATUS_OK;
}

int main(int argc, char **argv)
{
    static struct bench bench = {.tandem = "tandem"};
    enum status status;
    int code = 0;

    log_init("tandem bench", LOG_INFO);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) {
            bench_print_usage();
            return standard_output_end(0);
        }
    bench.argv = calloc((size_t)argc + 1, sizeof *bench.argv);
    if (bench.argv == NULL)
        return STATUS_INTERNAL;
    paths_demo("check.jsonl", bench.prompts, sizeof bench.prompts);
    status = bench_read_arguments(&bench, argc, argv);
    if (status == STATUS_OK)
        status = run(&bench, &code);
    options_release(&bench.run);
    free(bench.argv);
    return status != STATUS_OK ? (int)status : code;
}
