#include "common/sample/logits.h"

#include "common/sample/distribution.h"
#include "common/sample/penalty.h"
#include <math.h>

/* A shard of a row. */
struct shard_row {
    float *logits;
    int first, count;
};

static float *at(const struct shard_row *row, int32_t token)
{
    int i = token - row->first;

    return i >= 0 && i < row->count ? &row->logits[i] : NULL;
}

static void ban(const struct shard_row *row, int32_t token)
{
    float *logit = at(row, token);

    if (logit != NULL)
        *logit = -INFINITY;
}

static void add_biases(const struct bias *bias, const struct shard_row *row)
{
    for (int i = 0; i < bias->tokens; i++) {
        float *logit = at(row, bias->token[i]);

        if (logit != NULL)
            *logit = (float)((double)*logit + bias->value[i]);
    }
}

/* The last token of a bad word would complete it where the text ends with its first ones. */
static void ban_words(const struct bias *bias, const struct history *history, const struct shard_row *row)
{
    for (int i = 0; i < bias->words; i++) {
        int first = bias->length[i] - 1; /* tokens before the last */

        if (history_ends_with(history, bias->word[i], first))
            ban(row, bias->word[i][first]);
    }
}

static void ban_enders(const struct bias *bias, const struct history *history, const struct shard_row *row)
{
    if (history_count(history) - history->prompt_count >= bias->min_tokens)
        return;
    for (int i = 0; i < bias->enders; i++)
        ban(row, bias->ender[i]);
}

int logits_are_processed(const struct sampling *sampling, const struct bias *bias)
{
    return !logits_are_only_scaled(sampling, bias) || (sampling->temperature != 0.0 && sampling->temperature != 1.0);
}

int logits_are_only_scaled(const struct sampling *sampling, const struct bias *bias)
{
    return !sampling_has_penalties(sampling) && bias_is_empty(bias);
}

void logits_process(const struct sampling *sampling, const struct bias *bias, const struct history *history, float *logits,
                    int vocab_first, int vocab_count, int32_t *tally)
{
    const struct shard_row row = {.logits = logits, .first = vocab_first, .count = vocab_count};
    float scale = distribution_scale(sampling);

    if (bias != NULL)
        add_biases(bias, &row);
    if (sampling_has_penalties(sampling))
        penalty_apply(sampling, history, logits, vocab_first, vocab_count, tally);
    if (bias != NULL) {
        ban_words(bias, history, &row);
        ban_enders(bias, history, &row);
    }
    for (int i = 0; scale != 1.0f && i < vocab_count; i++)
        logits[i] *= scale;
}
