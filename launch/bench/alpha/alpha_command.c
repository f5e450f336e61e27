#include "launch/bench/alpha/alpha_command.h"

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include "common/options/options_idle.h"
#include "common/options/options_table.h"
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The name of the option that an argument begins with, of `length`; NULL: none of them. */
static const char *own_name(const struct alpha_command_own *own, const char *argument, size_t length)
{
    for (const char *const *name = own->name; *name != NULL; name++)
        if (strlen(*name) == length && strncmp(*name, argument, length) == 0)
            return *name;
    return NULL;
}

/* Of a run, and promising something else than is done here. */
static const char *const refused[] = {"dry-run",      "output", "resume",  "merge", "synthetic-acceptance",
                                      "stats",        "trace",  "explain", "echo",  "logprobs",
                                      "explain-page", "hosts",  "check",   NULL};

static enum status refuse(const char *name, const char *command)
{
    log_error("--%s is not for tandem %s, which runs no job", name, command);
    return STATUS_USAGE;
}

/* An option of a run, with its value where that is a word of its own. */
static enum status keep(const struct alpha_command_own *own, int argc, char **argv, int *at, char **left, int *count)
{
    const char *text = argv[*at];
    char name[OPTION_NAME];
    const char *value = NULL;
    const struct option_entry *entry = NULL;

    if (strncmp(text, "--", 2) == 0) {
        value = option_cut(text, name);
        entry = option_find(name);
    }
    left[(*count)++] = argv[(*at)++];
    if (entry == NULL)
        return STATUS_OK; /* who reads the options says so */
    if (options_is_named(entry->name, refused))
        return refuse(entry->name, own->command);
    if (own->kept != NULL)
        own->kept(own->state, entry);
    if (value != NULL || !option_takes_next(entry, argc, argv, *at))
        return STATUS_OK;
    if (*at == argc) {
        log_error("--%s needs a value: %s", entry->name, entry->value);
        return STATUS_USAGE;
    }
    left[(*count)++] = argv[(*at)++];
    return STATUS_OK;
}

enum status alpha_command_take(const struct alpha_command_own *own, int argc, char **argv, char **left, int *count)
{
    *count = 0;
    left[(*count)++] = argv[0];
    for (int i = 1; i < argc;) {
        char *argument = strncmp(argv[i], "--", 2) == 0 ? argv[i] + 2 : argv[i] + strlen(argv[i]);
        size_t length = strcspn(argument, "=");
        const char *name = own_name(own, argument, length);

        if (name == NULL) {
            TRY(keep(own, argc, argv, &i, left, count));
            continue;
        }
        if (argument[length] == '\0' && ++i == argc) {
            log_error("--%s needs a value", name);
            return STATUS_USAGE;
        }
        TRY(own->take(own->state, name, argument[length] == '=' ? argument + length + 1 : argv[i]));
        i++;
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

static int changes_nothing(const struct options *options, const struct option_entry *entry, const char *const *used, int greedy)
{
    static const char *const of_jobs[] = {"verifiers", "drafters", "plain-results", "drain-seconds", NULL};
    static const char *const filled_in[] = {"draft-deadline", "max-sequences", "solo", NULL}; /* by others than the user */

    if (options_is_default(options, entry) || options_is_named(entry->name, used) || options_is_named(entry->name, filled_in))
        return 0;
    return entry->group == OPTION_SPECULATION || (greedy && entry->group == OPTION_SAMPLING) || options_is_named(entry->name, of_jobs);
}

void alpha_command_say_idle(const struct options *options, const char *command, const char *const *used, int greedy)
{
    struct options_names names = {0};

    for (int i = 0; i < option_count; i++)
        if (changes_nothing(options, &option_table[i], used, greedy))
            options_add_name(&names, option_table[i].name);
    if (names.count > 0)
        log_info("%s change%s nothing here: tandem %s runs no rounds%s", names.text, names.count > 1 ? "" : "s", command,
                 greedy ? ", and the target decodes greedily" : "");
}

enum status alpha_command_check(const struct options *options, const char *command)
{
    for (const char *const *name = refused; *name != NULL; name++)
        if (!options_is_default(options, option_find(*name)))
            return refuse(*name, command);
    if (options->input.prompts == NULL || strcmp(options->input.prompts, "-") != 0)
        return STATUS_OK;
    log_error("--prompts is -, expected a file");
    return STATUS_USAGE;
}

/* Is it among what is read: the prompts, a draft's corpus, a model or a file of its folder? */
static int is_read(const char *path, const struct options *options)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];

    snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : slash == path ? 1 : (int)(slash - path), slash == NULL ? "." : path);
    return paths_are_one(options->input.prompts, path) || paths_are_one(options->model.draft_way.file, path) ||
           paths_are_one(options->model.target, path) || paths_are_one(options->model.draft, path) || paths_are_one(options->model.target, folder) ||
           paths_are_one(options->model.draft, folder);
}

enum status alpha_command_check_json(const char *path, const struct options *const *options, int count)
{
    int is_there, is_input = 0;
    FILE *file;

    if (path == NULL)
        return STATUS_OK;
    if (strcmp(path, "-") == 0) {
        log_error("--json is -, expected a file");
        return STATUS_USAGE;
    }
    for (int i = 0; i < count; i++)
        is_input |= is_read(path, options[i]);
    if (is_input) {
        log_error("--json %s is of what is read here, expected another file", path);
        return STATUS_USAGE;
    }
    is_there = access(path, F_OK) == 0;
    file = fopen(path, "a");
    if (file != NULL && fclose(file) == 0) {
        if (!is_there)
            remove(path);
        return STATUS_OK;
    }
    log_error("--json %s: %s", path, strerror(errno));
    return STATUS_IO;
}

enum status alpha_command_write_json(const char *path, json_t *root)
{
    char *text = root != NULL ? json_text_write(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    FILE *file = text != NULL ? fopen(path, "w") : NULL;
    int failed = file == NULL || fprintf(file, "%s\n", text) < 0;

    json_decref(root);
    if (text == NULL)
        errno = ENOMEM;
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
