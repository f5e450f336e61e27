/* Any bytes as a command line, one argument a line, and behind the first NUL the config file that it names: refused, or every number is in
 * its range. */
#include "common/options/options_table.h"
#include "tests/fuzz/fuzz_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_texts(const struct option_texts *texts, int most)
{
    require(texts->count >= 0 && texts->count <= most);
    for (int i = 0; i < texts->count; i++)
        require(texts->text[i][0] != '\0');
}

static void check(const struct options *options)
{
    char reason[160];

    for (int i = 0; i < option_count; i++) {
        const struct option_entry *entry = &option_table[i];
        const void *at = (const char *)options + entry->at;
        double value = entry->kind == OPTION_INT ? *(const int *)at : entry->kind == OPTION_DOUBLE ? *(const double *)at : entry->low;

        require((value >= entry->low && value <= entry->high) || value == -1); /* -1: what decides has not been seen yet */
    }
    check_texts(&options->request.stop, OPTIONS_MAX_STOPS);
    check_texts(&options->request.bad_word, OPTIONS_MAX_TEXTS);
    require(options->request.stop_token.count >= 0 && options->request.stop_token.count <= OPTIONS_MAX_IDS);
    require(bias_check(&options->request.bias, INT32_MAX, reason, sizeof reason) == STATUS_OK);
    if (options->print == OPTIONS_PRINT_NOTHING)
        require(sampling_check(&options->request.sampling, reason, sizeof reason) == STATUS_OK);
}

/* Cuts the text into lines; other config files than ours are none of this. */
static int cut(char *text, char *config, char **argv)
{
    int argc = 1;

    argv[0] = (char *)(uintptr_t)"fuzz";
    if (config != NULL)
        argv[argc++] = config;
    for (char *line = strtok(text, "\n"); line != NULL && argc < ARGUMENTS; line = strtok(NULL, "\n"))
        if (strncmp(line, "--config", 8) != 0)
            argv[argc++] = line;
    argv[argc] = NULL;
    return argc;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const uint8_t *nul = size > 0 ? memchr(bytes, 0, size) : NULL;
    size_t first = nul != NULL ? (size_t)(nul - bytes) : size;
    char *argv[ARGUMENTS + 1], *text = malloc(first + 1), config[96];
    struct options options;
    int argc;

    require(text != NULL);
    if (first > 0)
        memcpy(text, bytes, first);
    text[first] = '\0';
    if (nul != NULL)
        snprintf(config, sizeof config, "--config=%s", fuzz_file(0, nul + 1, size - first - 1));
    argc = cut(text, nul != NULL ? config : NULL, argv);
    if (options_parse(argc, argv, &options) == STATUS_OK) {
        check(&options);
        options_release(&options);
    }
    free(text);
    return 0;
}
