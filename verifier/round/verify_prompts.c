/* The rows of prompts in a step, and log p of the tokens that follow them. */
#include "verifier/round/verify_parts.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <math.h>

void verify_add_prompt(struct verify *verify, struct sequence *sequence, int count)
{
    verify->part[verify->parts++] = (struct prompt_part){sequence, count, sequence_scored_rows(sequence, count)};
}

int verify_prompt_rows(const struct verify *verify)
{
    int rows = 0;

    for (int i = 0; i < verify->parts; i++)
        rows += verify->part[i].count;
    return rows;
}

int verify_scored_rows(const struct verify *verify)
{
    int rows = 0;

    for (int i = 0; i < verify->parts; i++)
        rows += verify->part[i].scored;
    return rows;
}

void verify_lay_out_prompts(struct verify *verify)
{
    struct step *step = &verify->team->step;
    int output = step->outputs;

    for (int i = 0; i < verify->parts; i++) {
        const struct prompt_part *part = &verify->part[i];
        const struct sequence *sequence = part->sequence;
        int first = step_add_chain(step, sequence->slot, sequence->cached, sequence->tokens + sequence->cached, part->count);

        for (int row = part->count - part->scored; row < part->count; row++)
            step->output_row[output++] = first + row;
    }
}

/* Asks for log p of each token that follows a scored row. Returns how many there are. */
static int ask_of_parts(struct verify *verify)
{
    int asked = 0;

    for (int i = 0; i < verify->parts; i++) {
        const struct prompt_part *part = &verify->part[i];
        const struct sequence *sequence = part->sequence;

        for (int row = part->count - part->scored; row < part->count; row++, asked++)
            verify->asked[asked] = (struct logprob_order){.output = verify->team->step.outputs + asked,
                                                          .token = sequence->tokens[sequence->cached + row + 1],
                                                          .top = sequence->request->logprobs};
    }
    return asked;
}

static enum status score_part(const struct prompt_part *part, const struct logprob *logprobs)
{
    for (int row = part->count - part->scored; row < part->count; row++, logprobs++) {
        if (isnan(logprobs->logprob)) {
            log_error("request %u: the target gives no finite logit: its weights are damaged", part->sequence->request->index);
            return STATUS_DATA;
        }
        *sequence_logprob(part->sequence, part->sequence->cached + row + 1) = *logprobs;
    }
    return STATUS_OK;
}

enum status verify_end_prompts(struct verify *verify)
{
    const struct logprob *logprobs = verify->logprobs;
    int asked = ask_of_parts(verify);

    if (asked > 0)
        TRY(team_logprobs(verify->team, verify->asked, asked, verify->logprobs));
    for (int i = 0; i < verify->parts; i++) {
        TRY(score_part(&verify->part[i], logprobs));
        logprobs += verify->part[i].scored;
        verify->part[i].sequence->cached += verify->part[i].count;
    }
    verify->parts = 0;
    return STATUS_OK;
}

enum status verify_read(struct verify *verify)
{
    size_t unused;

    step_layout_scored(&verify->team->step, verify_prompt_rows(verify), 0, verify_scored_rows(verify), 0);
    verify_lay_out_prompts(verify);
    TRY(team_step(verify->team, &unused));
    return verify_end_prompts(verify);
}

enum status verify_prefill(struct verify *verify, struct sequence *sequence)
{
    int most = model_prompt_rows(verify->team->shard.model);

    while (!sequence_is_read(sequence)) {
        int left = sequence->length - 1 - sequence->cached;

        verify_add_prompt(verify, sequence, left < most ? left : most);
        TRY(verify_read(verify));
    }
    return STATUS_OK;
}
