/* All steps of a draft by the device itself, which draws each token and feeds it to the next step. */
#include "drafter/draft_model.h"

#include "common/base/progress.h"
#include "common/base/try.h"
#include "common/sample/distribution.h"

int draft_model_is_left_to_device(const struct model_draft *state, struct mirror *const *mirrors, int count)
{
    int rows = 0;

    if (state->model == NULL || !forward_drafts(&state->forward) || state->breakage != BREAKAGE_NONE || stopping_looks(&state->stopping))
        return 0;
    for (int i = 0; i < count; i++) {
        if (!draft_model_is_answered(state, mirrors[i]))
            return 0;
        rows += mirrors[i]->length - mirrors[i]->cached + mirrors[i]->wanted - 1;
    }
    return rows <= BACKEND_MAX_ROWS && rows <= state->max_rows;
}

/* Lays out the rows of all steps: the committed tokens that each mirror's cache lacks, then one row for each drafted token but the last. Returns the
 * number of rows of the first step. */
static int lay_out_steps(struct model_draft *state, struct mirror *const *mirrors, int count)
{
    struct rows *rows = &state->rows;
    int first_rows, before = -1;

    rows->count = 0;
    for (int i = 0; i < count; i++) {
        draft_model_add_chain(state, mirrors[i], mirrors[i]->length, state->max_rows);
        state->asked[i] = rows->count - 1;
    }
    first_rows = rows->count;
    for (int step = 1; before != rows->count; step++) {
        before = rows->count;
        for (int i = 0; i < count; i++)
            if (mirrors[i]->wanted > step) {
                int place = mirrors[i]->cached++;

                mirrors[i]->tokens[place] = 0; /* the device fills it in */
                draft_model_add_row(state, mirrors[i], place, place);
            }
    }
    return first_rows;
}

/* What the device is asked to draft for a mirror; it writes supports and weights into the mirror's q. */
static struct kept_draft ask_draft(const struct model_draft *state, const struct mirror *mirror, struct kept_choice *choice)
{
    struct sparse_q *q = draft_model_q(state, mirror, mirror->output);

    for (int k = 0; k < mirror->wanted; k++)
        choice[k] = (struct kept_choice){.id = q[k].id, .weight = q[k].weight};
    return (struct kept_draft){.sampling = mirror->sampling,
                               .scale = distribution_scale(&mirror->sampling),
                               .query = draft_model_query(state, mirror, mirror->length, 0, 0, 0),
                               .wanted = mirror->wanted,
                               .choice = choice};
}

enum status draft_model_propose_on_device(struct model_draft *state, struct mirror *const *mirrors, int count, struct draft_output *const *outputs)
{
    int first_rows = lay_out_steps(state, mirrors, count);
    struct kept_draft drafts[count];

    for (int i = 0; i < count; i++)
        drafts[i] = ask_draft(state, mirrors[i], &state->choice[i * MESSAGE_MAX_DRAFT]);
    const char *before = progress_doing(state->model->computing);
    enum status status = forward_draft(&state->forward, &state->rows, first_rows, state->asked, drafts, count, state->support);

    (void)progress_doing(before);
    TRY(status);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < mirrors[i]->wanted; k++) {
            const struct kept_choice *choice = &drafts[i].choice[k];

            outputs[i]->q[k] = (struct support){.count = choice->count, .id = choice->id, .weight = choice->weight};
            outputs[i]->token[k] = mirrors[i]->tokens[mirrors[i]->length + k] = choice->token;
            outputs[i]->count = mirrors[i]->drafted = k + 1;
            draft_model_q(state, mirrors[i], mirrors[i]->output)[k].count = choice->count;
            if (state->outputs > 1)
                draft_model_listed(state, mirrors[i], mirrors[i]->output)[k].count = 0;
        }
    return STATUS_OK;
}
