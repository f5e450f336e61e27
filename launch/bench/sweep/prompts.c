/* Which prompts are measured, and which calibrate. */
#include "launch/bench/sweep/bench.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALIBRATE = 4 /* prompts at most for each that is measured */ };

/* A line of blanks is no prompt. */
static int is_prompt(const char *line)
{
    return line[strspn(line, " \t\r\n")] != '\0';
}

static void put(const char *line, FILE *to)
{
    size_t length = strlen(line);

    fputs(line, to);
    if (length > 0 && line[length - 1] != '\n')
        fputc('\n', to);
}

/* What so few texts say of acceptance is wrong by several percent, so more calibrate than are measured, where there are more. Returns how many there
 * are of both. */
static int deal_out(FILE *from, int most, FILE *measured, FILE *calibrating)
{
    char *line = NULL, *first = NULL;
    size_t room = 0;
    int count = 0, measures = 0;

    while (count < (1 + CALIBRATE) * most && getline(&line, &room, from) >= 0)
        if (is_prompt(line)) {
            int is_measured = count++ % 2 == 0 && measures < most;

            put(line, is_measured ? measured : calibrating);
            measures += is_measured;
            if (first == NULL)
                first = strdup(line);
        }
    if (count == 1 && first != NULL)
        put(first, calibrating);
    free(first);
    free(line);
    return count;
}

static FILE *create(const char *folder, const char *name, char *path)
{
    FILE *file;

    snprintf(path, PATH_MAX, "%.3000s/%s", folder, name);
    file = fopen(path, "w");
    if (file == NULL)
        log_error("%s: %s", path, strerror(errno));
    return file;
}

static enum status close_file(FILE *file, const char *path)
{
    int failed = ferror(file);

    if ((fclose(file) | failed) == 0)
        return STATUS_OK;
    log_error("%s: it cannot be written", path);
    return STATUS_IO;
}

static const char *split_of(const struct bench *bench, int prompts)
{
    if (bench->plan.options.synthetic || bench->plan.options.shape != TREE_CHAIN)
        return NULL;
    if (bench->alphas > 0)
        return prompts > 1 ? "the texts of --alpha; v on prompts of the file that are not measured"
                           : "the texts of --alpha; v on the prompt that is measured, for there is no other";
    return prompts > 1 ? "prompts of the file that are not measured" : "the prompt that is measured, for there is no other";
}

enum status bench_split_prompts(struct bench *bench)
{
    const char *path = bench->run.input.prompts != NULL ? bench->run.input.prompts : bench->prompts;
    char folder[PATH_MAX], measured_path[PATH_MAX], calibrating_path[PATH_MAX];
    FILE *from, *measured, *calibrating = NULL;
    enum status status = STATUS_IO;

    snprintf(folder, sizeof folder, "%.3000s/calibration", bench->output);
    TRY(bench_make_folder(folder));
    bench->split = split_of(bench, 1);
    if (bench->run.input.prompt != NULL)
        return STATUS_OK;
    from = fopen(path, "r");
    if (from == NULL) {
        log_error("--prompts %s: %s", path, strerror(errno));
        bench_forget(bench);
        return STATUS_NOINPUT;
    }
    measured = create(bench->output, "prompts.jsonl", measured_path);
    if (measured != NULL)
        calibrating = create(folder, "prompts.jsonl", calibrating_path);
    if (calibrating != NULL) {
        int prompts = deal_out(from, plan_prompts(&bench->plan, plan_most_sequences(&bench->plan)), measured, calibrating);

        bench->split = split_of(bench, prompts);
        status = close_file(calibrating, calibrating_path);
    }
    if (measured != NULL && close_file(measured, measured_path) != STATUS_OK)
        status = STATUS_IO;
    fclose(from);
    return status;
}
