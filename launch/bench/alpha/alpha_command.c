#include "launch/bench/alpha/alpha_command.h"

#include "common/base/log.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status alpha_command_check(const struct options *options, const char *command)
{
    const struct {
        int is_set;
        const char *name;
    } unused[] = {{options->launch.dry_run, "dry-run"},
                  {options->results.path != NULL, "output"},
                  {options->results.resume, "resume"},
                  {options->rounds.merge.count > 0, "merge"},
                  {options->rounds.synthetic_acceptance >= 0, "synthetic-acceptance"},
                  {options->report.stats != NULL, "stats"},
                  {options->report.trace != NULL, "trace"},
                  {options->report.explain_page != NULL, "explain-page"},
                  {options->launch.hosts != NULL, "hosts"},
                  {options->checks.size != CHECK_OFF, "check"}};

    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
        if (unused[i].is_set) {
            log_error("--%s is not for tandem %s, which runs no job", unused[i].name, command);
            return STATUS_USAGE;
        }
    if (options->input.prompts == NULL || strcmp(options->input.prompts, "-") != 0)
        return STATUS_OK;
    log_error("--prompts is -, expected a file");
    return STATUS_USAGE;
}

enum status alpha_command_check_json(const char *path)
{
    FILE *file = path != NULL ? fopen(path, "a") : NULL;

    if (path == NULL || (file != NULL && fclose(file) == 0))
        return STATUS_OK;
    log_error("--json %s: %s", path, strerror(errno));
    return STATUS_IO;
}

enum status alpha_command_write_json(const char *path, json_t *root)
{
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    FILE *file = text != NULL ? fopen(path, "w") : NULL;
    int failed = file == NULL || fprintf(file, "%s\n", text) < 0;

    json_decref(root);
    if (file != NULL)
        failed |= fclose(file) != 0;
    free(text);
    if (!failed)
        return STATUS_OK;
    log_error("--json %s: %s", path, strerror(errno));
    return STATUS_IO;
}

json_t *alpha_command_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

void alpha_command_print(double value)
{
    if (isfinite(value))
        printf("%6.3f", value);
    else
        printf("     -");
}
