#include "common/options/options_list.h"

#include "common/base/log.h"
#include "common/base/number_list.h"
#include "common/base/try.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICE = 1023 };

static enum status check_list(const char *name, const char *text, int most)
{
    int number[NUMBER_LIST_MAX];

    if (text == NULL || number_list_read(text, most, number) > 0)
        return STATUS_OK;
    log_error("--%s is '%s', expected at most %d numbers from 0 to %d with a comma between two", name, text, NUMBER_LIST_MAX, most);
    return STATUS_USAGE;
}

enum status options_list_check(const struct options *options)
{
    int part, parts;

    TRY(check_list("drafter-devices", options->ranks.drafter_devices, MOST_DEVICE));
    TRY(check_list("verifier-devices", options->ranks.verifier_devices, MOST_DEVICE));
    TRY(check_list("draft-lengths", options->slurm.draft_lengths, SAMPLING_MAX_DRAFT));
    if (options->input.part != NULL && !number_list_part(options->input.part, &part, &parts)) {
        log_error("--part is '%s', expected I/N with I from 0 to N - 1", options->input.part);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}
