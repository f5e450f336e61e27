/* tandem-bench: `tandem bench`. Plans a sweep, starts its jobs through `tandem run`, keeps what they say in one folder, and has tandem-report
 * write the report there. */
#include "common/base/check.h"
#include "common/base/json_text.h"
#include "common/base/log.h"
#include "common/base/options.h"
#include "common/base/paths.h"
#include "launch/bench/sweep/job.h"
#include "launch/bench/sweep/machine.h"
#include "launch/bench/sweep/placement.h"
#include "launch/bench/sweep/plan.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CODE_NOISY = 1, SMALL = 64 };

struct bench {
    struct plan plan;
    const char *tandem; /* the launcher */
    const char *output;
    char made_output[PATH_MAX];
    char prompts[PATH_MAX];
    int argc; /* what is left for a run, the program's name first */
    char **argv;
    struct options run;
    struct placement placement[PLACEMENT_MOST];
    int placements;
    char text[PLACEMENT_MOST][5][PATH_MAX]; /* words of commands */
    char command[2048]; /* as it was given */
};

static void print_usage(void)
{
    struct plan_options quick, usual;

    plan_defaults(1, &quick);
    plan_defaults(0, &usual);
    printf("Usage: tandem bench [--quick] [--output DIR] [OPTION]... [any option of tandem run]\n"
           "Measures speculative decoding on these ranks, models and hosts against the target alone on the same ranks, in turns, and writes a\n"
           "report with the theory beside the measurement: DIR/report.md, report.html, summary.json, rounds.csv, trace.json.\n\n"
           "  --quick              fewer and shorter passes: under 90 seconds with the embedded pair\n"
           "  --output DIR         a new folder for everything; default tandem-bench-DATE-TIME here\n"
           "  --draft-lengths LIST 0 to 32, and auto; default 1,2,3,4,5,6,8,12,auto (--quick: 1,2,3,4,6,8,auto)\n"
           "  --temperatures LIST  default 0,1\n"
           "  --accepts LIST       rejection, coupled; default both, at temperatures above 0\n"
           "  --batches LIST       sequences at once; default 1,2,4\n"
           "  --repetitions N      passes of each cell after the warm-up; default %d (--quick: %d)\n"
           "  --requests N         prompts of a pass; default %d (--quick: %d)\n"
           "  --noise-limit P      percent that speedups may spread between repetitions before the run is refused; default %g\n\n"
           "Where --hosts or a --config names several hosts it measures with all ranks on one of them, too. --synthetic-acceptance R draws the\n"
           "verdicts, to study a network without a trained pair: NOT LOSSLESS, and marked so.\n\n"
           "Exit codes: 0 done; 1 the machine was too noisy: it says by how much, keeps what was measured, and writes no report (tandem report\n"
           "--noise-limit P DIR writes it all the same); 64 usage; 74 I/O; else that of the job that failed.\n",
           usual.repetitions, quick.repetitions, usual.prompts, quick.prompts, 100 * usual.noise_limit);
}

static enum status read_count(const char *name, const char *text, double low, double high, double *value)
{
    struct plan_list list;

    TRY(plan_read_list(name, text, low, high, 0, 0, &list));
    if (list.count == 1) {
        *value = list.value[0];
        return STATUS_OK;
    }
    log_error("--%s is '%s', expected one number from %g to %g", name, text, low, high);
    return STATUS_USAGE;
}

static enum status read_accepts(const char *text, struct plan_list *list)
{
    *list = (struct plan_list){0};
    for (const char *at = text; list->count < 2;) {
        size_t length = strcspn(at, ",");

        if (length == 9 && strncmp(at, "rejection", 9) == 0)
            list->value[list->count++] = 0;
        else if (length == 7 && strncmp(at, "coupled", 7) == 0)
            list->value[list->count++] = 1;
        else
            break;
        if (at[length] == '\0')
            return STATUS_OK;
        at += length + 1;
    }
    log_error("--accepts is '%s', expected rejection, coupled, or both with a comma between", text);
    return STATUS_USAGE;
}

/* One option of ours; *known is 0 when it is none. */
static enum status take(struct bench *bench, const char *name, const char *value, int *known)
{
    struct plan_options *options = &bench->plan.options;
    double number = 0;

    *known = 1;
    if (strcmp(name, "output") == 0)
        bench->output = value;
    else if (strcmp(name, "tandem") == 0)
        bench->tandem = value;
    else if (strcmp(name, "draft-lengths") == 0)
        return plan_read_list(name, value, 0, 32, 1, 1, &options->draft_lengths);
    else if (strcmp(name, "temperatures") == 0)
        return plan_read_list(name, value, 0, 100, 0, 0, &options->temperatures);
    else if (strcmp(name, "batches") == 0)
        return plan_read_list(name, value, 1, 256, 1, 0, &options->batches);
    else if (strcmp(name, "accepts") == 0)
        return read_accepts(value, &options->accepts);
    else if (strcmp(name, "repetitions") == 0) {
        TRY(read_count(name, value, 1, 1000, &number));
        options->repetitions = (int)number;
    } else if (strcmp(name, "requests") == 0) {
        TRY(read_count(name, value, 1, 100000, &number));
        options->prompts = (int)number;
    } else if (strcmp(name, "noise-limit") == 0) {
        TRY(read_count(name, value, 0, 1000, &number));
        options->noise_limit = number / 100;
    } else {
        *known = 0;
    }
    return STATUS_OK;
}

static int is_own(const char *name, size_t length)
{
    static const char *const names[] = {"output", "tandem", "draft-lengths", "temperatures", "batches", "accepts", "repetitions", "requests",
                                        "noise-limit"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0)
            return 1;
    return 0;
}

/* Takes ours; what is left goes to the run. */
static enum status read_arguments(struct bench *bench, int argc, char **argv)
{
    int quick = 0, known;

    for (int i = 1; i < argc; i++)
        quick |= strcmp(argv[i], "--quick") == 0;
    plan_defaults(quick, &bench->plan.options);
    bench->argv[bench->argc++] = argv[0];
    for (int i = 1; i < argc; i++) {
        const char *name = strncmp(argv[i], "--", 2) == 0 ? argv[i] + 2 : "";
        size_t length = strcspn(name, "=");
        char copy[SMALL] = "";

        if (strcmp(argv[i], "--quick") == 0)
            continue;
        if (!is_own(name, length)) {
            bench->argv[bench->argc++] = argv[i];
            continue;
        }
        snprintf(copy, sizeof copy, "%.*s", (int)length, name);
        if (name[length] == '\0' && i + 1 == argc) {
            log_error("--%s needs a value", copy);
            return STATUS_USAGE;
        }
        TRY(take(bench, copy, name[length] == '=' ? name + length + 1 : argv[++i], &known));
    }
    return STATUS_OK;
}

static enum status check_run(const struct bench *bench)
{
    const struct options *run = &bench->run;

    if (run->solo || run->drafters == 0 || (run->target != NULL && run->draft == NULL)) {
        log_error("a bench compares drafts with the target alone, expected --draft beside --target, a drafter, and no --solo");
        return STATUS_USAGE;
    }
    if (run->check != CHECK_OFF || run->dry_run || run->resume) {
        log_error("a bench takes no --check, --dry-run or --resume");
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

static enum status make_folder(const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return STATUS_OK;
    log_error("%s: %s", path, strerror(errno));
    return STATUS_IO;
}

/* A new folder, or one that is empty. */
static enum status open_output(struct bench *bench)
{
    time_t now = time(NULL);
    struct dirent *entry;
    DIR *folder;

    if (bench->output == NULL) {
        strftime(bench->made_output, sizeof bench->made_output, "tandem-bench-%Y%m%d-%H%M%S", localtime(&now));
        bench->output = bench->made_output;
    }
    TRY(make_folder(bench->output));
    folder = opendir(bench->output);
    if (folder == NULL) {
        log_error("--output %s: %s", bench->output, strerror(errno));
        return STATUS_IO;
    }
    while ((entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            break;
    closedir(folder);
    if (entry != NULL) {
        log_error("--output %s is not empty, expected a new folder: nothing that was measured is written over", bench->output);
        return STATUS_USAGE;
    }
    /* Ranks may be started elsewhere: they get the whole path. */
    if (bench->output != bench->made_output || bench->output[0] != '/') {
        char whole[PATH_MAX];

        if (realpath(bench->output, whole) == NULL)
            return STATUS_IO;
        memcpy(bench->made_output, whole, sizeof whole);
        bench->output = bench->made_output;
    }
    return STATUS_OK;
}

static enum status write_json(const char *folder, const char *name, json_t *object)
{
    char path[PATH_MAX], *text = json_text_write(object, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    FILE *file;
    int written;

    snprintf(path, sizeof path, "%.4000s/%s", folder, name);
    file = text != NULL ? fopen(path, "w") : NULL;
    written = file != NULL && fprintf(file, "%s\n", text) >= 0;
    if (file != NULL && fclose(file) != 0)
        written = 0;
    free(text);
    json_decref(object);
    if (written)
        return STATUS_OK;
    log_error("%s: %s", path, text == NULL ? "no memory" : strerror(errno));
    return STATUS_IO;
}

/* The words that every job of a placement has. */
static enum status begin_words(const struct bench *bench, int at, struct job_words *words)
{
    const struct placement *placement = &bench->placement[at];

    *words = (struct job_words){0};
    TRY(job_add(words, bench->tandem));
    TRY(job_add(words, "run"));
    for (int i = 1; i < bench->argc; i++)
        TRY(job_add(words, bench->argv[i]));
    if (placement->hosts[0] != '\0') {
        TRY(job_add(words, "--hosts"));
        TRY(job_add(words, placement->hosts));
    }
    if (bench->run.verifiers < 0 && bench->run.hosts == NULL && sysconf(_SC_NPROCESSORS_ONLN) <= 3) {
        TRY(job_add(words, "--verifiers")); /* a core for each rank, where the usual number would share them */
        TRY(job_add(words, "1"));
    }
    if (bench->run.prompt == NULL && bench->run.prompts == NULL) {
        TRY(job_add(words, "--prompts"));
        TRY(job_add(words, bench->prompts));
    }
    return STATUS_OK;
}

static enum status sweep_words(struct bench *bench, int at, struct job_words *words)
{
    char(*text)[PATH_MAX] = bench->text[at];

    TRY(begin_words(bench, at, words));
    snprintf(text[0], PATH_MAX, "%.4000s/raw/%s", bench->output, bench->placement[at].name);
    snprintf(text[1], PATH_MAX, "%.4000s/raw/%s/plan.json", bench->output, bench->placement[at].name);
    snprintf(text[2], PATH_MAX, "%d", plan_most_sequences(&bench->plan));
    snprintf(text[3], PATH_MAX, "%d", bench->plan.options.max_tokens);
    TRY(job_add(words, "--trace"));
    TRY(job_add(words, text[0]));
    TRY(job_add(words, "--sweep"));
    TRY(job_add(words, text[1]));
    TRY(job_add(words, "--max-sequences"));
    TRY(job_add(words, text[2]));
    TRY(job_add(words, "--max-tokens"));
    TRY(job_add(words, text[3]));
    TRY(job_add(words, "--ignore-eos"));
    return STATUS_OK;
}

static enum status plan_job(struct bench *bench, int at)
{
    char folder[PATH_MAX], results[PATH_MAX + 32];
    json_t *passes;

    snprintf(folder, sizeof folder, "%.4000s/raw/%s", bench->output, bench->placement[at].name);
    snprintf(results, sizeof results, "%s/passes.jsonl", folder);
    TRY(make_folder(folder));
    passes = plan_passes(&bench->plan, results);
    return write_json(folder, "plan.json", passes);
}

/* A job that failed has said why; its code becomes ours. */
static enum status run_placement(struct bench *bench, int at, int *code)
{
    char latency[PATH_MAX + 32], output[PATH_MAX + 32];
    struct job_words words;

    TRY(plan_job(bench, at));
    TRY(sweep_words(bench, at, &words));
    log_info("%s: %d cells, a warm-up and %d repetitions of each", bench->placement[at].name, bench->plan.cells, bench->plan.options.repetitions);
    TRY(job_run(&words, NULL, code));
    if (*code != 0)
        return STATUS_OK;
    TRY(begin_words(bench, at, &words));
    snprintf(latency, sizeof latency, "%s/latency.jsonl", bench->text[at][0]);
    snprintf(output, sizeof output, "%s/latency.txt", bench->text[at][0]);
    TRY(job_add(&words, "--programs"));
    TRY(job_add(&words, "tandem-latency"));
    TRY(job_add(&words, "--stats"));
    TRY(job_add(&words, latency));
    log_info("%s: messages and sums of the same ranks", bench->placement[at].name);
    return job_run(&words, output, code);
}

static json_t *placements_of(struct bench *bench)
{
    json_t *array = json_array();
    int failed = 0;

    for (int i = 0; i < bench->placements; i++) {
        char line[16384] = "";
        struct job_words words;
        int code = 0;

        if (sweep_words(bench, i, &words) == STATUS_OK && job_add(&words, "--dry-run") == STATUS_OK)
            failed |= job_ask(&words, line, sizeof line, &code) != STATUS_OK || code != 0;
        failed |= json_array_append_new(array, json_pack("{s:s, s:s, s:o}", "name", bench->placement[i].name, "hosts", bench->placement[i].hosts,
                                                         "line", json_text_string(line)));
    }
    return json_text_whole(array, failed);
}

static json_t *describe(struct bench *bench, json_t *placements)
{
    const struct plan_options *options = &bench->plan.options;
    char target[PATH_MAX], draft[PATH_MAX], date[SMALL];
    time_t now = time(NULL);
    json_t *object;
    int failed;

    paths_demo("target", target, sizeof target);
    paths_demo("draft", draft, sizeof draft);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S%z", localtime(&now));
    object = json_pack("{s:i, s:o, s:s, s:s, s:b, s:o, s:o, s:o}", "tandem_bench", 1, "command", json_text_string(bench->command), "date", date,
                       "tandem", options_version(), "quick", options->quick, "machine", machine_describe(), "cells", plan_cells(&bench->plan),
                       "placements", placements);
    failed = json_object_update_new(
        object, json_pack("{s:i, s:i, s:i, s:i, s:f, s:b, s:f}", "repetitions", options->repetitions, "warm_up", 1, "requests", options->prompts,
                          "max_tokens", options->max_tokens, "noise_limit", options->noise_limit, "lossless",
                          bench->run.synthetic_acceptance < 0, "synthetic_acceptance", bench->run.synthetic_acceptance));
    failed |= json_object_set_new(object, "target", machine_model(bench->run.target != NULL ? bench->run.target : target, options->max_tokens));
    failed |= json_object_set_new(object, "draft", machine_model(bench->run.draft != NULL ? bench->run.draft : draft, options->max_tokens));
    return json_text_whole(object, failed);
}

static enum status write_report(const struct bench *bench, int *code)
{
    char self[PATH_MAX] = "", program[PATH_MAX + 32];
    struct job_words words = {0};
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    if (length <= 0)
        return STATUS_INTERNAL;
    *strrchr(self, '/') = '\0';
    snprintf(program, sizeof program, "%s/tandem-report", self);
    TRY(job_add(&words, program));
    TRY(job_add(&words, bench->output));
    return job_run(&words, NULL, code);
}

static enum status run(struct bench *bench, int *code)
{
    char raw[PATH_MAX + 8];
    json_t *placements;

    TRY(placement_list(&bench->run, bench->placement, &bench->placements));
    TRY(open_output(bench));
    snprintf(raw, sizeof raw, "%s/raw", bench->output);
    TRY(make_folder(raw));
    for (int i = 0; i < bench->placements; i++)
        TRY(plan_job(bench, i)); /* a dry run looks at the folder, too */
    placements = placements_of(bench);
    if (placements == NULL)
        return STATUS_DATA; /* the dry run has said why */
    TRY(write_json(bench->output, "bench.json", describe(bench, placements)));
    for (int i = 0; i < bench->placements && *code == 0; i++)
        TRY(run_placement(bench, i, code));
    return *code == 0 ? write_report(bench, code) : STATUS_OK;
}

/* The command as it was typed, for the report; long ones are cut. */
static void keep_command(struct bench *bench, int argc, char **argv)
{
    size_t used = (size_t)snprintf(bench->command, sizeof bench->command, "tandem bench");

    for (int i = 1; i < argc && used < sizeof bench->command; i++) {
        if (strcmp(argv[i], "--tandem") == 0) { /* the launcher's own word */
            i++;
            continue;
        }
        used += (size_t)snprintf(bench->command + used, sizeof bench->command - used, strpbrk(argv[i], " '\"$") ? " '%s'" : " %s", argv[i]);
    }
}

int main(int argc, char **argv)
{
    static struct bench bench;
    enum status status;
    int code = 0;

    log_init("tandem bench", LOG_INFO);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) {
            print_usage();
            return 0;
        }
    bench.tandem = "tandem";
    bench.argv = calloc((size_t)argc + 1, sizeof *bench.argv);
    if (bench.argv == NULL)
        return STATUS_INTERNAL;
    keep_command(&bench, argc, argv);
    paths_demo("check.jsonl", bench.prompts, sizeof bench.prompts);
    status = read_arguments(&bench, argc, argv);
    if (status == STATUS_OK)
        status = options_parse(bench.argc, bench.argv, &bench.run);
    if (status == STATUS_OK)
        status = check_run(&bench);
    if (status == STATUS_OK) {
        bench.plan.options.synthetic = bench.run.synthetic_acceptance >= 0;
        if (bench.run.max_tokens != 128)
            bench.plan.options.max_tokens = bench.run.max_tokens;
        status = plan_make(&bench.plan.options, &bench.plan);
    }
    if (status == STATUS_OK)
        status = run(&bench, &code);
    options_release(&bench.run);
    free(bench.argv);
    return status != STATUS_OK ? (int)status : code;
}
