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

enum { NOISY = 1 }; /* exit code of a report without a headline */

/* Messages and sums of the same ranks, which predictions want, too. */
static enum status time_messages(struct bench *bench, int at, int *code)
{
    char *latency = bench->text[0], *output = bench->text[1];
    struct child_words words;

    snprintf(latency, PATH_MAX, "%.3000s/raw/%s/latency.jsonl", bench->output, bench->placement[at].name);
    snprintf(output, PATH_MAX, "%.3000s/raw/%s/latency.txt", bench->output, bench->placement[at].name);
    TRY(bench_begin_words(bench, at, bench->prompts, &words));
    TRY(child_add(&words, "--programs"));
    TRY(child_add(&words, "tandem-latency"));
    TRY(child_add(&words, "--stats"));
    TRY(child_add(&words, latency));
    log_info("%s: messages and sums of these ranks", bench->placement[at].name);
    return child_run(&words, output, code);
}

/* A job that failed has said why; its code becomes ours. */
static enum status run_placement(struct bench *bench, int at, int *code)
{
    struct child_words words;

    TRY(bench_sweep_words(bench, at, bench->output, &bench->plan, &words));
    log_info("%s: %d cells, a warm-up and %d repetitions of each, and up to %g s more of those that are noisy", bench->placement[at].name,
             bench->plan.cells, bench->plan.options.repetitions, bench->plan.options.extra_s);
    return child_run(&words, NULL, code);
}

/* With the line of each, by a dry run, which says why where its code is not 0. */
static json_t *placements_of(struct bench *bench, int *code)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < bench->placements && *code == 0; i++) {
        char line[16384] = "";
        struct child_words words;

        if (bench_sweep_words(bench, i, bench->output, &bench->plan, &words) == STATUS_OK && child_add(&words, "--dry-run") == STATUS_OK)
            failed |= child_ask(&words, line, sizeof line, code) != STATUS_OK;
        failed |= json_array_append_new(array, json_pack("{s:s, s:s, s:o}", "name", bench->placement[i].name, "hosts", bench->placement[i].hosts,
                                                         "line", json_text_string(line)));
    }
    return json_text_whole(array, failed);
}

static json_t *tree_name(const struct options *run)
{
    if (run->rounds.shape.kind == TREE_OWN)
        return json_string("its own");
    return run->rounds.tree != NULL ? json_text_string(run->rounds.tree) : json_null();
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
    failed |= json_object_update_new(object,
                                     json_pack("{s:s, s:s, s:i}", "draft_name", bench->run.model.draft != NULL ? bench->run.model.draft : "embedded",
                                               "run_ahead", options_run_ahead(&bench->run), "branches", bench->run.rounds.branches));
    failed |= json_object_update_new(
        object, json_pack("{s:f, s:f}", "lenience", bench->run.request.sampling.lenience, "threshold", bench->run.request.sampling.threshold));
    failed |= json_object_set_new(object, "task", bench->task_name != NULL ? json_string(bench->task_name) : json_null());
    failed |= json_object_set_new(object, "tree", tree_name(&bench->run));
    failed |= json_object_set_new(object, "target", machine_target(&bench->run, options->max_tokens));
    failed |= json_object_set_new(object, "draft", machine_draft(&bench->run, options->max_tokens));
    return json_text_whole(object, failed);
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

/* quiet: the table of its report goes to that file; NULL: to stdout */
static enum status run_part(struct bench *bench, const char *quiet, int *code)
{
    char left_out[PLAN_TEXT];
    json_t *placements;

    TRY(placement_list(&bench->run, bench->placement, &bench->placements));
    plan_left_out(&bench->plan, left_out);
    if (*left_out != '\0')
        log_info("rules that do not decide about drafts of this shape are left out: %s", left_out);
    TRY(bench_split_prompts(bench));
    for (int i = 0; i < bench->placements; i++)
        TRY(bench_plan_job(bench, i, bench->output, &bench->plan)); /* a dry run looks at the folder, too */
    placements = placements_of(bench, code);
    if (placements == NULL || *code != 0) {
        bench_forget(bench);
        json_decref(placements);
        return *code != 0 ? STATUS_OK : STATUS_INTERNAL;
    }
    TRY(bench_write_json(bench->output, "bench.json", describe(bench, placements)));
    for (int i = 0; i < bench->placements && *code == 0; i++)
        TRY(time_messages(bench, i, code));
    if (*code == 0 && bench->split != NULL)
        TRY(bench_predict(bench, code));
    for (int i = 0; i < bench->placements && *code == 0; i++)
        TRY(run_placement(bench, i, code));
    if (*code == 0)
        bench_show_rounds(bench, code);
    if (*code != 0 && !has_measured(bench))
        bench_forget(bench);
    else if (*code != 0)
        log_info("%s: not measured to its end, so there is no report; the same command with another --output measures anew", bench->output);
    return *code == 0 ? bench_run_program("tandem-report", bench->output, NULL, quiet, code) : STATUS_OK;
}

static enum status write_set(const struct bench *bench)
{
    json_t *parts = json_array();
    char date[64], name[3 * BENCH_NAME];
    time_t now = time(NULL);
    int failed = 0;

    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S%z", localtime(&now));
    for (int i = 0; i < bench_parts(bench); i++) {
        bench_name_part(bench, i, name, sizeof name);
        failed |= json_array_append_new(parts, json_text_string(name));
    }
    return bench_write_json(bench->output, "set.json",
                            json_text_whole(json_pack("{s:i, s:o, s:s, s:o}", "tandem_bench_set", 1, "command", json_text_string(bench->command),
                                                      "date", date, "parts", parts),
                                            failed));
}

/* Each task with each draft in each shape, one behind the other, each in a folder of its own. One that is too noisy does not end the others. */
static enum status run_parts(struct bench *bench, int *code)
{
    const char *whole = bench->output;
    int noisy = 0;

    TRY(write_set(bench));
    for (int i = 0; i < bench_parts(bench) && *code == 0; i++) {
        char folder[PATH_MAX], table[PATH_MAX + 16], name[3 * BENCH_NAME];
        enum status status;

        bench_name_part(bench, i, name, sizeof name);
        snprintf(folder, sizeof folder, "%.3000s/%s", whole, name);
        snprintf(table, sizeof table, "%s/report.txt", folder);
        TRY(bench_begin_part(bench, i));
        TRY(bench_make_folder(folder));
        log_info("part %d of %d: %s", i + 1, bench_parts(bench), name);
        bench->output = folder;
        status = run_part(bench, table, code);
        bench->output = whole;
        TRY(status);
        noisy |= *code == NOISY;
        *code = *code == NOISY ? 0 : *code;
    }
    if (*code == 0)
        TRY(bench_run_program("tandem-report", whole, NULL, NULL, code));
    *code = *code == 0 && noisy ? NOISY : *code;
    return STATUS_OK;
}

/* What is wrong with any part is said before the first one begins, by a dry run of each. */
static enum status look_at_parts(struct bench *bench, int *code)
{
    for (int i = 0; i < bench_parts(bench) && *code == 0; i++) {
        char line[16384];
        struct child_words words;

        TRY(bench_begin_part(bench, i));
        TRY(placement_list(&bench->run, bench->placement, &bench->placements));
        TRY(bench_begin_words(bench, 0, bench->prompts, &words));
        TRY(child_add(&words, "--dry-run"));
        TRY(child_ask(&words, line, sizeof line, code));
    }
    return STATUS_OK;
}

static enum status run(struct bench *bench, int *code)
{
    int parts = bench_parts(bench);

    if (parts > 1)
        TRY(look_at_parts(bench, code));
    if (*code != 0)
        return STATUS_OK;
    TRY(bench_open_output(bench));
    return parts > 1 ? run_parts(bench, code) : run_part(bench, NULL, code);
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
    bench.argv = calloc((size_t)argc + 11, sizeof *bench.argv); /* and the draft, the prompts and the shape of a part */
    if (bench.argv == NULL)
        return STATUS_INTERNAL;
    paths_demo("bench.jsonl", bench.prompts, sizeof bench.prompts);
    status = bench_read_arguments(&bench, argc, argv);
    if (status == STATUS_OK)
        status = run(&bench, &code);
    options_release(&bench.run);
    free(bench.argv);
    return status != STATUS_OK ? (int)status : code;
}
