#include "launch/bench/alpha/alpha_command.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name of the option that an argument begins with, of `length`; NULL: none of them. */
static const char *own_name(const struct alpha_command_own *own, const char *argument, size_t length)
{
    for (const char *const *name = own->name; *name != NULL; name++)
        if (strlen(*name) == length && strncmp(*name, argument, length) == 0)
            return *name;
    return NULL;
}

enum status alpha_command_take(const struct alpha_command_own *own, int argc, char **argv, char **left, int *count)
{
    *count = 0;
    left[(*count)++] = argv[0];
    for (int i = 1; i < argc; i++) {
        char *argument = strncmp(argv[i], "--", 2) == 0 ? argv[i] + 2 : argv[i] + strlen(argv[i]);
        size_t length = strcspn(argument, "=");
        const char *name = own_name(own, argument, length);

        if (name == NULL) {
            left[(*count)++] = argv[i];
            continue;
        }
        if (argument[length] == '\0' && i + 1 == argc) {
            log_error("--%s needs a value", name);
            return STATUS_USAGE;
        }
        TRY(own->take(own->state, name, argument[length] == '=' ? argument + length + 1 : argv[++i]));
    }
    return STATUS_OK;
}

enum status alpha_command_read(const char *name, const char *text, int low, int most, int *value)
{
    char *end;
    long number = strtol(text, &end, 10);

    if (end != text && *end == '\0' && number >= low && number <= most) {
        *value = (int)number;
        return STATUS_OK;
    }
    log_error("--%s is '%s', expected a whole number from %d to %d", name, text, low, most);
    return STATUS_USAGE;
}

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
