#include "verifier/result/journal_tell.h"

#include "common/base/number_list.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lines that begin so and have an end; with "" those that are not empty. -1 where there is no such file. */
static int64_t count_lines(const char *path, const char *beginning)
{
    FILE *file = path != NULL && strcmp(path, "-") != 0 ? fopen(path, "r") : NULL;
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    int64_t count = 0;

    if (file == NULL)
        return -1;
    while ((length = getline(&line, &room, file)) >= 0)
        if (*beginning == '\0')
            count += strspn(line, " \t\r\n") < (size_t)length;
        else
            count += strncmp(line, beginning, strlen(beginning)) == 0 && line[length - 1] == '\n';
    free(line);
    fclose(file);
    return count;
}

/* Prompts of this job; -1 where that is not known. */
static int64_t count_prompts(const struct options *options)
{
    int64_t lines = count_lines(options->input.prompts, "");
    int part, parts;

    if (lines < 0 || options->input.part == NULL || !number_list_part(options->input.part, &part, &parts))
        return lines;
    return lines * (part + 1) / parts - lines * part / parts;
}

void journal_tell(const struct options *options, FILE *to)
{
    char path[PATH_MAX], of[32] = "";
    int64_t held, prompts = count_prompts(options);

    if (options->input.prompts == NULL || options->checks.size != CHECK_OFF || options->report.sweep != NULL)
        return; /* nothing was to be kept */
    if (options->results.path == NULL || strcmp(options->results.path, "-") == 0) {
        fprintf(to, "results that were not written yet are lost; with --output FILE they are kept in FILE.journal, and --resume goes on\n");
        return;
    }
    snprintf(path, sizeof path, "%s.journal", options->results.path);
    held = count_lines(path, "{\"index\"");
    if (prompts >= 0)
        snprintf(of, sizeof of, " of %lld", (long long)prompts);
    if (held >= 0)
        fprintf(to, "%lld%s results are in %s; the same command with --resume goes on\n", (long long)held, of, path);
    else if (prompts > 0 && count_lines(options->results.path, "{") == prompts)
        fprintf(to, "all %lld results are in %s\n", (long long)prompts, options->results.path);
    else if (access(options->results.path, R_OK) == 0)
        fprintf(to, "no journal is beside %s, which is whole or was there before\n", options->results.path);
    else
        fprintf(to, "nothing was finished: there is no %s\n", path);
}
