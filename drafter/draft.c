#include "drafter/draft.h"

static const struct draft_kind *const kinds[] = {
    [DRAFT_MODEL] = &draft_model_kind,
    [DRAFT_LOOKUP] = &draft_lookup_kind,
    [DRAFT_SELF] = &draft_model_kind,
};
_Static_assert(sizeof kinds / sizeof *kinds == DRAFTER_KINDS, "each kind of common/options/options_draft.h has a row here");

const struct draft_kind *draft_kind_of(enum drafter_kind kind)
{
    return kinds[kind];
}

enum status draft_open(struct draft *draft, const struct draft_parts *terms)
{
    return kinds[terms->way->kind]->open(draft, terms);
}

int draft_context(int asked)
{
    return asked > 0 ? (asked + BACKEND_PANEL - 1) / BACKEND_PANEL * BACKEND_PANEL : MODEL_DEFAULT_CONTEXT;
}

void draft_break(struct draft *draft, enum breakage breakage)
{
    if (draft->kind->draw_wrong != NULL)
        draft->kind->draw_wrong(draft->state, breakage);
}

void draft_close(struct draft *draft)
{
    if (draft->kind != NULL)
        draft->kind->close(draft->state);
    *draft = (struct draft){0};
}
