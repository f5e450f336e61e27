/* The words of the jobs that a bench starts, and where what they write goes. */
#include "launch/bench/sweep/bench.h"

#include "common/base/paths.h"
#include "common/base/try.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LONGEST "63"
_Static_assert(SAMPLING_MAX_DRAFT == 63, "the longest draft");

enum status bench_begin_words(const struct bench *bench, int at, const char *prompts, struct child_words *words)
{
    const struct placement *placement = &bench->placement[at];

    *words = (struct child_words){0};
    TRY(child_add(words, bench->tandem));
    TRY(child_add(words, "run"));
    for (int i = 1; i < bench->part_argc; i++)
        if (strcmp(bench->argv[i], "--prompts") == 0)
            i++; /* it stands below */
        else if (strncmp(bench->argv[i], "--prompts=", 10) != 0)
            TRY(child_add(words, bench->argv[i]));
    if (placement->hosts[0] != '\0') {
        TRY(child_add(words, "--hosts"));
        TRY(child_add(words, placement->hosts));
    }
    if (bench->run.ranks.verifiers < 0 && bench->run.launch.hosts == NULL && sysconf(_SC_NPROCESSORS_ONLN) <= 3) {
        TRY(child_add(words, "--verifiers")); /* a core for each rank, where the usual number would share them */
        TRY(child_add(words, "1"));
    }
    if (bench->run.input.prompt == NULL && prompts != NULL) {
        TRY(child_add(words, "--prompts"));
        TRY(child_add(words, prompts));
    }
    return STATUS_OK;
}

static void name_job(const struct bench *bench, int at, const char *folder, const char *file, char *path)
{
    snprintf(path, PATH_MAX, "%.3000s/raw/%s%s", folder, bench->placement[at].name, file);
}

enum status bench_sweep_words(struct bench *bench, int at, const char *folder, const struct plan *plan, struct child_words *words)
{
    const char *options[] = {"--trace", "--sweep", "--max-sequences", "--max-tokens"};
    char *prompts = bench->text[4];

    snprintf(prompts, PATH_MAX, "%.3000s/prompts.jsonl", folder);
    TRY(bench_begin_words(bench, at, prompts, words));
    name_job(bench, at, folder, "", bench->text[0]);
    name_job(bench, at, folder, "/plan.json", bench->text[1]);
    snprintf(bench->text[2], PATH_MAX, "%d", plan_most_sequences(plan));
    snprintf(bench->text[3], PATH_MAX, "%d", plan->options.max_tokens);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        TRY(child_add(words, options[i]));
        TRY(child_add(words, bench->text[i]));
    }
    for (int i = 0; i < plan->cells; i++)
        if (plan->cell[i].draft_length > OPTIONS_CHAIN) { /* then steps have room for it; each pass says its own */
            TRY(child_add(words, "--draft-length"));
            TRY(child_add(words, LONGEST));
            break;
        }
    return child_add(words, "--ignore-eos");
}

enum status bench_plan_job(const struct bench *bench, int at, const char *folder, const struct plan *plan)
{
    char path[PATH_MAX], results[PATH_MAX];

    snprintf(path, sizeof path, "%.3000s/raw", folder);
    TRY(bench_make_folder(path));
    name_job(bench, at, folder, "", path);
    TRY(bench_make_folder(path));
    name_job(bench, at, folder, "/passes.jsonl", results);
    return bench_write_json(path, "plan.json", plan_passes(plan, results));
}

enum status bench_run_program(const char *name, const char *first, const char *second, const char *output, int *code)
{
    char folder[PATH_MAX], program[PATH_MAX + 32];
    struct child_words words = {0};

    if (!paths_programs(folder))
        return STATUS_INTERNAL;
    snprintf(program, sizeof program, "%s/%s", folder, name);
    TRY(child_add(&words, program));
    TRY(child_add(&words, first));
    if (second != NULL)
        TRY(child_add(&words, second));
    return child_run(&words, output, code);
}
