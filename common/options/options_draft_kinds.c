/* The registry of drafter kinds. */
#include "common/base/log.h"
#include "common/options/options_draft.h"

static enum status check_lookup(const struct options_draft *draft)
{
    if (draft->min <= draft->max)
        return STATUS_OK;
    log_error("--draft lookup: min is %d and max is %d, expected min <= max", draft->min, draft->max);
    return STATUS_USAGE;
}

static enum status check_self(const struct options_draft *draft)
{
    if (draft->layers > 0 || draft->bits > 0)
        return STATUS_OK;
    log_error("--draft self needs bits=4 or bits=8, to which the target's weights are rounded, or layers=N, its first N layers, or both");
    return STATUS_USAGE;
}

const struct options_draft_kind options_draft_kinds[DRAFTER_KINDS] = {
    /* This kind is chosen by giving a model's path, never by its name. */
    [DRAFT_MODEL] = {.name = "model", .own_model = 1, .trees = 1, .draws = 1, .usual = {.kind = DRAFT_MODEL}},
    [DRAFT_LOOKUP] = {.name = "lookup",
                      .architecture = "copies",
                      .usual = {.kind = DRAFT_LOOKUP, .min = 1, .max = 4},
                      .key = {{"min", offsetof(struct options_draft, min), 1, OPTIONS_DRAFT_LONGEST, "a whole number from 1 to 16"},
                              {"max", offsetof(struct options_draft, max), 1, OPTIONS_DRAFT_LONGEST, "a whole number from 1 to 16"},
                              {"job", offsetof(struct options_draft, job), 1, 1, "1"}},
                      .check = check_lookup},
    [DRAFT_SELF] = {.name = "self",
                    .target_model = 1,
                    .trees = 1,
                    .draws = 1,
                    .usual = {.kind = DRAFT_SELF},
                    .key = {{"bits", offsetof(struct options_draft, bits), 4, 8, "4 or 8"},
                            {"layers", offsetof(struct options_draft, layers), 1, 4096, "a whole number from 1 to 4096"}},
                    .check = check_self},
};
