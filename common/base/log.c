#include "common/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
    char label[64];
    enum log_level highest;
} settings = {"tandem", LOG_INFO};

void log_init(const char *label, enum log_level highest)
{
    snprintf(settings.label, sizeof settings.label, "%s", label);
    settings.highest = highest;
}

int log_shows(enum log_level level)
{
    return level <= settings.highest;
}

void log_line(enum log_level level, const char *format, ...)
{
    static const char *const word[] = {"error: ", "warning: ", "", ""};
    char line[2048];
    va_list arguments;
    int used;

    if (!log_shows(level))
        return;
    used = snprintf(line, sizeof line, "%s: %s", settings.label, word[level]);
    va_start(arguments, format);
    used += vsnprintf(line + used, sizeof line - (size_t)used, format, arguments);
    va_end(arguments);
    if (used > (int)sizeof line - 2)
        used = (int)sizeof line - 2;
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)used) < 0)
        return; /* nowhere left to say it */
}
