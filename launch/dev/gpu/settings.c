#include "launch/dev/gpu/settings.h"

#include "common/base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status read_contexts(const char *text, struct settings *settings)
{
    int last = 0;

    settings->contexts = 0;
    for (const char *at = text; *at != '\0';) {
        char *end;
        long value = strtol(at, &end, 10);

        if (end == at || (*end != ',' && *end != '\0') || value <= last || value > 1 << 20 || settings->contexts == SETTINGS_CONTEXTS) {
            log_error("contexts=%s: expected at most %d rising numbers of tokens", text, SETTINGS_CONTEXTS);
            return STATUS_USAGE;
        }
        settings->context[settings->contexts++] = last = (int)value;
        at = *end == ',' ? end + 1 : end;
    }
    return STATUS_OK;
}

static enum status read_number(const char *name, const char *text, struct settings *settings)
{
    const struct {
        const char *name;
        int *value, least, most;
    } numbers[] = {
        {"repetitions", &settings->repetitions, 1, 10000},
        {"tokens", &settings->tokens, 1, 1 << 20},
        {"first", &settings->first, 1, 1000},
        {"length", &settings->length, 1, BACKEND_MAX_ROWS - 1},
        {"threads", &settings->threads, 1, 1024},
        {"turns", &settings->turns, 0, 1},
    };
    char *end;
    double value = strtod(text, &end);

    if (strcmp(name, "further") == 0 && end != text && *end == '\0' && value >= 0 && value <= 16) {
        settings->further = (float)value;
        return STATUS_OK;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(name, numbers[i].name) == 0 && end != text && *end == '\0' && value >= numbers[i].least && value <= numbers[i].most) {
            *numbers[i].value = (int)value;
            return STATUS_OK;
        }
    log_error("%s=%s: no such setting, or not in its range", name, text);
    return STATUS_USAGE;
}

static enum status read_word(char *word, struct settings *settings)
{
    char *equals = strchr(word, '=');

    if (equals == NULL) {
        log_error("'%s': expected NAME=VALUE", word);
        return STATUS_USAGE;
    }
    *equals = '\0';
    if (strcmp(word, "backend") == 0) {
        settings->backend = equals + 1;
        return STATUS_OK;
    }
    if (strcmp(word, "contexts") == 0)
        return read_contexts(equals + 1, settings);
    return read_number(word, equals + 1, settings);
}

static int is_mode(const char *word)
{
    static const char *const modes[] = {"steps", "decode", "speculation", "replays"};

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(word, modes[i]) == 0)
            return 1;
    return 0;
}

enum status settings_read(int count, char **words, struct settings *settings)
{
    if (count < 3) {
        log_error("usage: %s steps|decode|speculation|replays 1b|8b|tiny [NAME=VALUE]...", words[0]);
        return STATUS_USAGE;
    }
    *settings = (struct settings){.mode = words[1],
                                  .shape = seeded_shape_find(words[2]),
                                  .backend = "cuda",
                                  .contexts = 3,
                                  .context = {128, 2048, 8192},
                                  .repetitions = 15,
                                  .tokens = 256,
                                  .first = 2,
                                  .length = 4,
                                  .further = 0.1f,
                                  .threads = 1};
    if (!is_mode(words[1])) {
        log_error("there is no measurement '%s', expected steps, decode, speculation or replays", words[1]);
        return STATUS_USAGE;
    }
    if (settings->shape == NULL)
        return STATUS_USAGE;
    for (int i = 3; i < count; i++) {
        enum status status = read_word(words[i], settings);

        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

int settings_next_turn(const struct settings *settings, int turn)
{
    char line[64];

    if (!settings->turns)
        return turn == 0;
    if (turn > 0) {
        printf("done\n");
        fflush(stdout);
    } else {
        printf("ready\n");
        fflush(stdout);
    }
    return fgets(line, sizeof line, stdin) != NULL;
}
