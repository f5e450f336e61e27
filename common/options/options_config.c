/* Options from an INI file. */
#include "common/options/options_table.h"

#include "common/base/log.h"
#include "common/options/options_elsewhere.h"
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct reading {
    struct options *options;
    void (*show)(void *state, const struct option_entry *entry, const char *value); /* NULL: what is read is set */
    void *state;
    const char *path;
    FILE *file;
    int line; /* the one that was read last, from 1 */
    enum status status;
};

/* inih tells the handler no line numbers, cuts a line that is longer than its buffer in two, and takes an indented line for more of the
 * value above. So lines are read here: counted, whole, and without their indentation. */
static char *read_line(char *line, int size, void *user)
{
    struct reading *reading = user;
    size_t length, indent;

    if (reading->status != STATUS_OK || fgets(line, size, reading->file) == NULL)
        return NULL;
    reading->line++;
    length = strlen(line);
    if ((length == 0 || line[length - 1] != '\n') && !feof(reading->file)) {
        log_error("%s:%d: the line is too long, expected at most %d bytes of text", reading->path, reading->line, size - 2);
        reading->status = STATUS_USAGE;
        return NULL;
    }
    indent = strspn(line, " \t");
    memmove(line, line + indent, length - indent + 1);
    return line;
}

static enum status take_pair(const struct reading *reading, const char *name, const char *value)
{
    const struct option_entry *entry = option_find(name);
    char where[512], words[OPTIONS_ELSEWHERE];

    snprintf(where, sizeof where, "%s:%d: ", reading->path, reading->line);
    if (entry == NULL && options_elsewhere(name, 0, words, sizeof words)) {
        log_error("%skey '%s' is not supported%s", where, name, words);
        return STATUS_USAGE;
    }
    if (entry == NULL || entry->group == OPTION_HIDDEN) {
        log_error("%sunknown key '%s'; did you mean '%s'?", where, name, option_nearest(name));
        return STATUS_USAGE;
    }
    if (entry->kind == OPTION_PRINT || strcmp(entry->name, "config") == 0 || strcmp(entry->name, "dry-run") == 0) {
        log_error("%s'%s' has no place in a config file", where, name);
        return STATUS_USAGE;
    }
    if (reading->show != NULL) {
        reading->show(reading->state, entry, value);
        return STATUS_OK;
    }
    if (entry->kind != OPTION_TEXT && entry->kind != OPTION_TEXTS)
        return option_set(reading->options, entry, value, where);
    value = option_keep(reading->options, value);
    return value != NULL ? option_set(reading->options, entry, value, where) : STATUS_INTERNAL;
}

/* 1, or 0 to end with an error, which has been logged. Sections group the keys for the reader and mean nothing. */
static int take_line(void *user, const char *section, const char *name, const char *value)
{
    struct reading *reading = user;

    (void)section;
    if (reading->status == STATUS_OK)
        reading->status = take_pair(reading, name, value);
    return reading->status == STATUS_OK;
}

static enum status read_file(struct reading *given, const char *path)
{
    struct reading reading = *given;
    int bad_line, unread;
    struct stat state;

    reading.path = path;
    if (stat(path, &state) == 0 && !S_ISREG(state.st_mode) && !S_ISDIR(state.st_mode)) { /* each rank reads it, and what made the ranks' line */
        log_error("--config %s: not a regular file, which can be read more than once", path);
        return STATUS_NOINPUT;
    }
    reading.file = fopen(path, "r");
    if (reading.file == NULL) {
        log_error("--config %s: %s", path, strerror(errno));
        return STATUS_NOINPUT;
    }
    errno = 0;
    bad_line = ini_parse_stream(read_line, &reading, take_line, &reading);
    unread = ferror(reading.file) ? errno : 0;
    fclose(reading.file);
    if (unread != 0) {
        log_error("--config %s: %s", path, strerror(unread));
        return STATUS_NOINPUT;
    }
    if (reading.status == STATUS_OK && bad_line != 0) {
        log_error("%s:%d: expected [section], key = value, or a comment", path, bad_line);
        return STATUS_USAGE;
    }
    return reading.status;
}

enum status option_read_config(struct options *options, const char *path)
{
    return read_file(&(struct reading){.options = options}, path);
}

enum status option_show_config(const char *path, void (*show)(void *state, const struct option_entry *entry, const char *value), void *state)
{
    return read_file(&(struct reading){.show = show, .state = state}, path);
}
