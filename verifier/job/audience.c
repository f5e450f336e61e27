#include "verifier/job/audience.h"

#include "common/base/try.h"

static int has_result(void *state, int at)
{
    const struct audience *audience = state;

    return output_has(audience->output, at);
}

static void begin(void *state, const struct sequence *sequence)
{
    const struct audience *audience = state;

    show_prompt(audience->show, sequence);
}

static void count_read(void *state, int tokens)
{
    const struct audience *audience = state;

    show_read(audience->show, tokens);
}

static void turn(void *state, const struct figures *figures)
{
    const struct audience *audience = state;

    if (audience->beside != NULL && audience->beside->turn != NULL)
        audience->beside->turn(audience->beside->state, figures);
}

static void tell_round(void *state, const struct sequence *sequence, const struct outcome *outcome, int kept)
{
    const struct audience *audience = state;

    show_round(audience->show, sequence, outcome, sequence_latest(sequence), kept);
    show_progress(audience->show, 0, kept);
}

static enum status end(void *state, const struct request *request, const struct sequence *sequence)
{
    struct audience *audience = state;
    const struct sequence *all = NULL;

    if (audience->beside != NULL && audience->beside->end != NULL)
        TRY(audience->beside->end(audience->beside->state, request, sequence));
    if (sequence == NULL) {
        TRY(output_add(audience->output, request, NULL));
        show_skip(audience->show, request);
        return STATUS_OK;
    }
    show_end(audience->show, sequence);
    TRY(gathering_add(&audience->gathering, sequence, &all));
    if (all == NULL)
        return STATUS_OK;
    show_progress(audience->show, 1, 0);
    TRY(output_add(audience->output, request, all));
    gathering_drop(&audience->gathering, request);
    return STATUS_OK;
}

static enum status sync_results(void *state)
{
    const struct audience *audience = state;

    return output_sync(audience->output);
}

void audience_init(struct audience *audience, struct output *output, struct show *show, const struct lead_watch *beside)
{
    *audience = (struct audience){.output = output, .show = show, .beside = beside};
    audience->watch = (struct lead_watch){.state = audience,
                                          .has_result = has_result,
                                          .begin = begin,
                                          .read = count_read,
                                          .turn = turn,
                                          .round = tell_round,
                                          .end = end,
                                          .sync = sync_results};
}

void audience_release(struct audience *audience)
{
    gathering_release(&audience->gathering);
}
