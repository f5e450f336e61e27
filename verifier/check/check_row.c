#include "verifier/check/check_row.h"

#include "common/base/try.h"
#include "common/sample/distribution.h"
#include "verifier/round/sequence.h"
#include <math.h>
#include <string.h>

#define ROUNDING 1e-5 /* relative: a hundred times what sums in float may be off by */

enum status check_row_take(struct team *team, const struct request *request, const int32_t *tokens, int cached, int count,
                           float *logits)
{
    const struct config *config = &team->shard.model->config;
    struct slot_terms slot = {.sampling = request->sampling, .prompt_count = request->prompt_count};
    struct step *step = &team->step;
    int most = model_prompt_rows(team->shard.model);
    size_t unused;

    sequence_fill_bias(request, config->eos, config->eos_count, &slot.bias);
    TRY(team_open_slot(team, &slot));
    while (cached < count) {
        int chain = count - cached < most ? count - cached : most, is_last = cached + chain == count;

        step_layout(step, chain, is_last, 0);
        step_add_chain(step, 0, cached, tokens + cached, chain);
        if (is_last) {
            step->output_row[0] = chain - 1;
            step->support_first[1] = 0;
        }
        TRY(team_step(team, &unused));
        cached += chain;
    }
    return team_whole_row(team, 0, logits);
}

static void soften(const float *logits, int vocab, double *p)
{
    float max = -INFINITY;
    double sum = 0;

    for (int i = 0; i < vocab; i++)
        max = logits[i] > max ? logits[i] : max;
    for (int i = 0; i < vocab; i++)
        sum += p[i] = exp((double)logits[i] - (double)max);
    for (int i = 0; i < vocab; i++)
        p[i] /= sum;
}

/* How many tokens stay when the cuts of top-p and min-p are shifted by `factor`. */
static int kept_at(const struct sampling *sampling, const struct scored_token *order, int vocab, double sum, double factor, double *p)
{
    struct sampling shifted = *sampling;

    shifted.top_p = sampling->top_p < 1 ? fmin(sampling->top_p * factor, 1) : 1;
    shifted.min_p = sampling->min_p / factor;
    return distribution_truncate(&shifted, order, vocab, 1, sum, p);
}

int check_row_law(const struct sampling *sampling, const float *logits, int vocab, struct scored_token *order, double *kept, double *p)
{
    double sum = 0;
    int count, is_sure;

    soften(logits, vocab, p);
    if (!distribution_truncates(sampling))
        return 1;
    for (int i = 0; i < vocab; i++)
        order[i] = (struct scored_token){.score = logits[i], .token = i};
    distribution_sort(order, vocab);
    for (int i = 0; i < vocab; i++)
        sum += exp((double)order[i].score - (double)order[0].score);
    is_sure = kept_at(sampling, order, vocab, sum, 1 - ROUNDING, kept) == kept_at(sampling, order, vocab, sum, 1 + ROUNDING, kept);
    count = kept_at(sampling, order, vocab, sum, 1, kept);
    memset(p, 0, (size_t)vocab * sizeof *p);
    for (int i = 0; i < count; i++)
        p[order[i].token] = kept[i];
    return is_sure;
}
