#include "common/options/options_list.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 1000000, MOST_DEVICE = 1023, MOST_DRAFT_LENGTH = 32 };

/* A number from 0 to `most` at the beginning of *text, which moves past it; -1 where there is none. */
static int take_number(const char **text, int most)
{
    int value = 0, digits = 0;

    for (; **text >= '0' && **text <= '9' && value <= most; digits++)
        value = 10 * value + (*(*text)++ - '0');
    return digits > 0 && value <= most ? value : -1;
}

int options_list_read(const char *text, int most, int *number)
{
    for (int count = 0; count < OPTIONS_LIST_MAX; text++) {
        number[count] = take_number(&text, most);
        if (number[count++] < 0)
            return -1;
        if (*text == '\0')
            return count;
        if (*text != ',')
            return -1;
    }
    return -1;
}

int options_list_part(const char *text, int *part, int *parts)
{
    *part = take_number(&text, MOST_PARTS);
    if (*part < 0 || *text++ != '/')
        return 0;
    *parts = take_number(&text, MOST_PARTS);
    return *text == '\0' && *part < *parts;
}

static enum status check_list(const char *name, const char *text, int most)
{
    int number[OPTIONS_LIST_MAX];

    if (text == NULL || options_list_read(text, most, number) > 0)
        return STATUS_OK;
    log_error("--%s is '%s', expected at most %d numbers from 0 to %d with a comma between two", name, text, OPTIONS_LIST_MAX, most);
    return STATUS_USAGE;
}

enum status options_list_check(const struct options *options)
{
    int part, parts;

    TRY(check_list("drafter-devices", options->drafter_devices, MOST_DEVICE));
    TRY(check_list("verifier-devices", options->verifier_devices, MOST_DEVICE));
    TRY(check_list("draft-lengths", options->draft_lengths, MOST_DRAFT_LENGTH));
    if (options->shard != NULL && !options_list_part(options->shard, &part, &parts)) {
        log_error("--shard is '%s', expected I/N with I from 0 to N - 1", options->shard);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}
