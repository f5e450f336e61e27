/* A file of prompts, or stdin: its lines, or one part of several of them. What a line says is for request.c. */
#include "verifier/request/request.h"

#include "common/base/log.h"
#include "common/base/number_list.h"
#include "common/base/try.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    FILE *file;
    char *line;
    size_t room;
    int number; /* of the line, from 1 */
};

/* The length of the next line that is not empty, without white space at its end, or -1 where there is none. The mark that some editors put
 * before the first line is none of it. */
static ssize_t next_line(struct reading *reading)
{
    static const char byte_order_mark[] = "\xEF\xBB\xBF";
    ssize_t length;

    while ((length = getline(&reading->line, &reading->room, reading->file)) >= 0) {
        if (reading->number++ == 0 && length >= 3 && memcmp(reading->line, byte_order_mark, 3) == 0)
            memmove(reading->line, reading->line + 3, (size_t)(length -= 3) + 1);
        while (length > 0 && reading->line[length - 1] != '\0' && strchr(" \t\r\n", reading->line[length - 1]) != NULL)
            length--;
        if (length > 0)
            break;
    }
    return length;
}

/* The lines of --part, from 0: all where there is none. A pipe cannot be read twice, and so has no parts. */
static enum status find_part(struct reading *reading, const struct options *options, int64_t *first, int64_t *end)
{
    int part, parts;
    int64_t lines = 0;

    *first = 0;
    *end = INT64_MAX;
    if (options->input.part == NULL || !number_list_part(options->input.part, &part, &parts))
        return STATUS_OK;
    while (next_line(reading) >= 0)
        lines++;
    *first = lines * part / parts;
    *end = lines * (part + 1) / parts;
    reading->number = 0;
    if (feof(reading->file) && fseek(reading->file, 0, SEEK_SET) == 0)
        return STATUS_OK;
    log_error("--part needs --prompts with a file that can be read twice: %s", strerror(errno));
    return STATUS_NOINPUT;
}

static enum status read_lines(struct request_list *list, const struct request_terms *terms, struct reading *reading, const char *path)
{
    struct options options = *terms->options;
    struct request_terms shifted = *terms; /* a line has the number that it has in the whole file */
    int64_t first, end;
    ssize_t length;

    TRY(find_part(reading, terms->options, &first, &end));
    options.input.first_index += (int)first;
    shifted.options = &options;
    for (int64_t at = 0; at < end && (length = next_line(reading)) >= 0; at++)
        if (at >= first)
            TRY(request_add_line(list, &shifted, reading->line, (size_t)length, reading->number));
    if (feof(reading->file) || end < INT64_MAX)
        return STATUS_OK;
    log_error("--prompts %s: %s", path, strerror(errno)); /* it cannot be read, or a line has no room */
    return STATUS_NOINPUT;
}

enum status request_read(struct request_list *list, const struct request_terms *terms, const char *path)
{
    struct reading reading = {.file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r")};
    enum status status;

    if (reading.file == NULL) {
        log_error("--prompts %s: %s", path, strerror(errno));
        return STATUS_NOINPUT;
    }
    status = read_lines(list, terms, &reading, path);
    free(reading.line);
    if (reading.file != stdin)
        fclose(reading.file);
    return status;
}
