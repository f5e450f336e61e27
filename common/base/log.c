#include "common/base/log.h"

#include "common/base/digest.h"
#include "common/base/visible.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SAID = 16, /* more kinds of warnings than two models' files can have */ LONGEST = 2048 /* bytes of a line */ };

static struct {
    char label[64];
    enum log_level highest;
    _Atomic int fd;
    int leaves_files;
    int clears_lines;
    int said_count;
    uint64_t said[SAID]; /* digests of warnings of files */
    int holds;
    size_t held;
    char lines[4096];
} settings = {.label = "tandem", .highest = LOG_INFO, .fd = STDERR_FILENO};

void log_init(const char *label, enum log_level highest)
{
    snprintf(settings.label, sizeof settings.label, "%s", label);
    settings.highest = highest;
    settings.fd = STDERR_FILENO;
    settings.leaves_files = 0;
    settings.clears_lines = 0;
    settings.said_count = 0;
}

void log_leave_files(void)
{
    settings.leaves_files = 1;
}

void log_to(int fd)
{
    settings.fd = fd;
}

void log_clear_lines(int clear)
{
    settings.clears_lines = clear;
}

int log_shows(enum log_level level)
{
    return level <= settings.highest;
}

static void write_out(const char *bytes, size_t count)
{
    if (count > 0 && write(settings.fd, bytes, count) < 0)
        return; /* nowhere left to say it */
}

void log_hold(void)
{
    settings.holds = 1;
}

void log_let_go(int told)
{
    if (told)
        write_out(settings.lines, settings.held);
    settings.holds = 0;
    settings.held = 0;
}

void log_line(enum log_level level, const char *format, ...)
{
    static const char *const word[] = {"error: ", "warning: ", "", ""};
    const char *clear = settings.clears_lines ? "\r\033[K" : "";
    char line[LONGEST], shown[VISIBLE_MOST * LONGEST + sizeof "\r\033[K"];
    size_t count;
    va_list arguments;
    int used;

    if (!log_shows(level))
        return;
    used = snprintf(line, sizeof line, "%s: %s", settings.label, word[level]);
    va_start(arguments, format);
    used += vsnprintf(line + used, sizeof line - (size_t)used, format, arguments);
    va_end(arguments);
    if (used > LONGEST - 1)
        used = LONGEST - 1;
    /* Text that is quoted in a line may come from files or peers, so it must not end the line or move a terminal's cursor. */
    count = strlen(clear);
    memcpy(shown, clear, count);
    count += visible_write(line, (size_t)used, "", shown + count);
    count = count < LONGEST - 2 ? count : LONGEST - 2;
    shown[count++] = '\n';
    if (level != LOG_ERROR || !settings.holds) {
        write_out(shown, count);
    } else if (settings.held + count <= sizeof settings.lines) {
        memcpy(settings.lines + settings.held, shown, count);
        settings.held += count;
    }
}

static int was_said(uint64_t digest)
{
    for (int i = 0; i < settings.said_count; i++)
        if (settings.said[i] == digest)
            return 1;
    return 0;
}

void log_file_warning(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    uint64_t digest;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    digest = digest_bytes(text, strlen(text), DIGEST_EMPTY);
    if (settings.leaves_files || was_said(digest))
        return;
    if (settings.said_count < SAID)
        settings.said[settings.said_count++] = digest;
    log_warn("%s", text);
}
